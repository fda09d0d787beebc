// Entry point of the image: `answer(request)`.
//
// request: {source, language, stubs: {file name: text}, session, names: {name: type}, known: [name], check, erase};
// `names` and `known` are the names of a session's earlier programs, with and without their types.
// answer: {problems: […], syntax: […], code?, names?}: type errors, syntax errors, the program without types, and the names
// that it declares for later programs.

var MAX_PROBLEMS = 10;

function problemsOf(file, stubs, request) {
  const files = Object.fromEntries([file, ...stubs].map((each) => [each.fileName, each]));
  const declared = Object.entries(request.names ?? {}).map(([name, type]) => `declare var ${name}: ${type};`);
  if (request.names) files[SESSION] = parse(SESSION, declared.join("\n"));
  const program = programOf(files);
  const checker = program.getTypeChecker();
  const diagnostics = program.getSemanticDiagnostics(file).filter((each) => each.file === file);
  const facts = {
    file,
    // No diagnostics and no `any`: the compiler knows every type.
    isFullyTyped: !diagnostics.length && !/\bany\b/.test(file.text),
    isTypeScript: request.language === "typescript",
    known: new Set(request.known),
    misinferredCalls: [], // calls whose diagnostics are noise
    misinferredVariables: new Set(), // variables whose diagnostics are noise
    ...scanProgram(file),
  };
  for (const diagnostic of diagnostics) recordMisinference(diagnostic, checker, facts);
  const mistakes = diagnostics.filter((each) => isMistake(each, checker, facts));
  const all = [
    ...mergeInputDiagnostics(mistakes, new ToolInputs(checker, facts).findings()),
    ...interpolatedPromises(checker, facts),
    ...atMisusedResults(mistakes, checker, facts),
  ];
  const places = new Map(); // the first message at a position is the cause
  for (const mistake of all) {
    const each = atMissingAwait(mistake, checker, facts);
    if (!places.has(each.start)) places.set(each.start, each);
  }
  const ordered = [...places.values()].sort((one, other) => one.start - other.start);
  return ordered.slice(0, MAX_PROBLEMS).map((each) => report(each, checker));
}

globalThis.answer = (request) => {
  const isTypeScript = request.language === "typescript";
  const file = parse(isTypeScript ? "/main.ts" : "/main.js", request.source);
  const syntax = file.parseDiagnostics.slice(0, MAX_PROBLEMS).map(reportSyntax);
  if (syntax.length) return { syntax, problems: [] };
  const answer = { syntax: [], problems: [] };
  const stubs = Object.entries(request.stubs ?? {}).map(([name, text]) => parse("/" + name, text));
  if (request.erase) {
    const erased = erase(file, request.session, stubs);
    if (erased.problems) return { syntax: erased.problems.slice(0, MAX_PROBLEMS), problems: [] };
    answer.code = erased.code;
  }
  if (request.check) {
    answer.names = declaredNames(file);
    answer.problems = problemsOf(file, stubs, request);
  }
  return answer;
};

// ---- sessions: the names that a program declares for later ones, with the types of imports from stubs.

// The module that a constant is initialised with: `require("host:mcp-tracker")`, `await import("host:mcp-tracker")`.
function requiredModule({ initializer, parent }) {
  if (!initializer || !(parent.flags & ts.NodeFlags.Const)) return undefined;
  const isImport = ts.isAwaitExpression(initializer) && ts.isImportCall(initializer.expression);
  const call = isImport ? initializer.expression : isRequire(initializer);
  const specifier = call?.arguments[0];
  return specifier && ts.isStringLiteralLike(specifier) ? `import(${JSON.stringify(specifier.text)})` : undefined;
}

function addRequiredNames({ name }, module, names) {
  if (ts.isIdentifier(name)) names[name.text] = `typeof ${module}`;
  else if (ts.isObjectBindingPattern(name)) for (const each of name.elements) {
    const isPlain = ts.isIdentifier(each.name) && !each.initializer && !each.dotDotDotToken;
    const taken = keyOf(each.propertyName ?? each.name) ?? "";
    if (isPlain && /^[\w$]+$/.test(taken)) names[each.name.text] = `typeof ${module}.${taken}`;
  }
}

function addImportedNames(node, names) {
  const clause = node.importClause;
  if (!clause || !ts.isStringLiteral(node.moduleSpecifier)) return;
  const module = `import(${JSON.stringify(node.moduleSpecifier.text)})`;
  if (clause.name) names[clause.name.text] = `typeof ${module}`;
  const bindings = clause.namedBindings;
  if (bindings === undefined) return;
  if (ts.isNamespaceImport(bindings)) names[bindings.name.text] = `typeof ${module}`;
  else for (const each of bindings.elements) {
    const imported = (each.propertyName ?? each.name).text;
    names[each.name.text] = /^[\w$]+$/.test(imported) ? `typeof ${module}.${imported}` : "any";
  }
}

/** Name → type, in the syntax of a declaration. */
function declaredNames(file) {
  const names = {};
  for (const statement of file.statements) {
    if (ts.isVariableStatement(statement)) {
      for (const each of statement.declarationList.declarations) {
        for (const name of boundNames(each.name)) names[name] = "any";
        const module = requiredModule(each);
        if (module !== undefined) addRequiredNames(each, module, names);
      }
    } else if (ts.isImportDeclaration(statement)) {
      addImportedNames(statement, names);
    } else if (statement.name && ts.isIdentifier(statement.name)) {
      names[statement.name.text] = "any";
    }
  }
  return names;
}

// ---- warm-up: binds the library and resolves its most used types while the image is built, not in every check.
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

// The library is complete: a program of common features has no diagnostics.
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
