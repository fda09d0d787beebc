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

warmUp(`
interface Row { id: number; title: string; state: "open" | "closed"; labels: string[]; owner: string | null; parts: { size: number }[] }
declare function get(input: { place: string; count?: number; kind?: "a" | "b" }): { rows: Row[]; total: number; next?: string | null };
declare function later(input: { id: number }): Promise<Row>;
const { rows, total } = get({ place: "a" });
const titles = rows.map((row) => row.title.trim().toLowerCase()).filter((title) => title.includes("a"));
const sizes = rows.flatMap(({ parts }) => parts.map((part) => part.size)).reduce((sum, size) => sum + size, 0);
const byState: Record<string, Row[]> = {};
for (const row of rows) (byState[row.state] ??= []).push(row);
const groups = new Map<string, number>();
for (const [state, some] of Object.entries(byState)) groups.set(state, (groups.get(state) ?? 0) + some.length);
const unique = [...new Set(rows.flatMap((row) => row.labels))].sort((one, other) => one.localeCompare(other));
const all = await Promise.all(rows.slice(0, 5).map((row) => later({ id: row.id })));
const settled = await Promise.allSettled(all.map(async (row) => row.owner ?? "nobody"));
const best = rows.find((row) => row.id === 1), newest = [...rows].sort((one, other) => other.id - one.id)[0];
async function first(id: number): Promise<string> {
  try {
    const row = await later({ id });
    if (row.owner === null) throw new Error("nobody");
    return row.owner.split(" ").map((part) => part[0].toUpperCase() + part.slice(1)).join(" ");
  } catch (error) {
    return String(error);
  }
}
const since = new Date(Date.now() - 864e5).toISOString().slice(0, 10), digits = /(\\d+)/.exec(titles[0])?.[1];
console.log(JSON.stringify({ total, sizes, since, digits, unique }), Math.max(...rows.map((row) => row.id)).toFixed(2));
console.log(settled.length, best?.title, newest.title, Number(digits), parseFloat("1"), Object.keys(byState), Array.from(groups.keys()), await first(1));
rows.some((row) => row.labels.length > 1) && rows.every((row) => Array.isArray(row.parts)) ? [...groups].length : Object.fromEntries(groups);
`);
