// The image's own program: a request comes in as one value, and the answer is the value of the run.
//
// request: {source, language, stubs: {file name: text}, session, names: {name: type}, known: [name], check, erase}
// `names` and `known` are what earlier programs of a session left: with a type, and of whatever type.
// answer: {problems: […], syntax: […], code?, names?}: what is wrong, what can't be read, the program without types, and
// what it leaves to the next ones.

var MOST_PROBLEMS = 10;

function declarationsOf(names) {
  return Object.entries(names).map(([name, type]) => `declare var ${name}: ${type};`).join("\n");
}

function problemsOf(file, stubs, request) {
  const files = Object.fromEntries([file, ...stubs].map((each) => [each.fileName, each]));
  if (request.names) files[SESSION] = parse(SESSION, declarationsOf(request.names));
  const program = programOf(files);
  const checker = program.getTypeChecker();
  const diagnostics = program.getSemanticDiagnostics(file).filter((each) => each.file === file);
  const facts = {
    file,
    // Nothing in it is of a type that the author didn't say or the compiler couldn't find out.
    isUndisputed: !diagnostics.length && !/\bany\b/.test(file.text),
    isTypeScript: request.language === "typescript",
    known: new Set(request.known),
    misunderstood: [], // calls about which a complaint was no mistake
    reassigned: new Set(), // variables of which the same is true
    ...assignments(file),
  };
  for (const diagnostic of diagnostics) noteGuess(diagnostic, checker, facts);
  const mistakes = diagnostics.filter((each) => isMistake(each, checker, facts));
  const all = [
    ...withInputs(mistakes, new Inputs(checker, facts).judged()),
    ...writtenPromises(checker, facts),
    ...whereTaken(mistakes, checker, facts),
  ];
  const places = new Map(); // what is said first of a place is the cause
  for (const mistake of all) {
    const each = whereForgotten(mistake, checker, facts);
    if (!places.has(each.start)) places.set(each.start, each);
  }
  const ordered = [...places.values()].sort((one, other) => one.start - other.start);
  return ordered.slice(0, MOST_PROBLEMS).map((each) => report(each, checker));
}

globalThis.answer = (request) => {
  const isTypeScript = request.language === "typescript";
  const file = parse(isTypeScript ? "/main.ts" : "/main.js", request.source);
  const syntax = file.parseDiagnostics.slice(0, MOST_PROBLEMS).map((each) => report(each));
  if (syntax.length) return { syntax, problems: [] };
  const answer = { syntax: [], problems: [] };
  const stubs = Object.entries(request.stubs ?? {}).map(([name, text]) => parse("/" + name, text));
  if (request.erase) {
    const erased = erase(file, request.session, stubs);
    if (erased.problems) return { syntax: erased.problems.slice(0, MOST_PROBLEMS), problems: [] };
    answer.code = erased.code;
  }
  if (request.check) {
    answer.names = declaredNames(file);
    answer.problems = problemsOf(file, stubs, request);
  }
  return answer;
};
