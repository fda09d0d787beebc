// Warms the compiler up: the library is bound and its most used types are made when the image is, not by every check.
for (const language of ["typescript", "javascript"]) {
  answer({
    source: 'import { get } from "host:warm"; const rows = get({ place: "a" }).rows.map((row) => row.a).filter(Boolean);\n' +
      "console.log(rows.length, new Map(Object.entries({ a: 1 })), JSON.stringify(rows)); await Promise.all([]);\n" +
      (language === "typescript" ? "enum E { A }; const x: number = E.A as number;\n" : "") + "rows.join()",
    language,
    stubs: { "warm.d.ts": 'declare module "host:warm" { export function get(input: { place: string }): { rows: { a: number }[] } }' },
    names: { earlier: "any" },
    known: [],
    check: true,
    erase: language === "typescript",
  });
}

// The library must be whole: nothing that every program uses may be missing from it.
{
  const program = programOf({ "/main.ts": parse("/main.ts", "[].map(String); new Map().keys().toArray();") });
  const wrong = [...program.getGlobalDiagnostics(), ...program.getOptionsDiagnostics(), ...program.getSemanticDiagnostics()];
  if (wrong.length) throw new Error("the library: " + ts.flattenDiagnosticMessageText(wrong[0].messageText, " "));
}
