// TypeScript programs: ECMAScript and our globals (parsed when the image is built), the stubs, and one warmed type checker.
var compilerOptions = {
  target: ts.ScriptTarget.ESNext,
  module: ts.ModuleKind.ESNext,
  moduleResolution: ts.ModuleResolutionKind.Bundler,
  moduleDetection: ts.ModuleDetectionKind.Force,
  strict: true,
  strictPropertyInitialization: false,
  useUnknownInCatchVariables: false,
  noImplicitThis: false,
  allowJs: true,
  checkJs: true,
  allowSyntheticDefaultImports: true,
  allowUnreachableCode: true,
  allowUnusedLabels: true,
  experimentalDecorators: false,
  noEmit: true,
  noLib: true,
  noResolve: false,
  verbatimModuleSyntax: true, // erase.js finds unused imports itself
  types: [],
  skipLibCheck: true,
};

var parseOptions = {
  languageVersion: ts.ScriptTarget.ESNext,
  impliedNodeFormat: ts.ModuleKind.ESNext,
  jsDocParsingMode: ts.JSDocParsingMode.ParseNone,
  setExternalModuleIndicator: (file) => { // a program is a module, a stub is a script
    file.externalModuleIndicator = file.isDeclarationFile && !/^export \{\};/m.test(file.text) ? undefined : true;
  },
};

// Declaration files get their parent pointers when they are bound.
function parse(name, text) {
  return ts.createSourceFile(name, text, parseOptions, !name.endsWith(".d.ts"));
}

var libraryFiles = new Map();
for (const [name, text] of Object.entries(libraryTexts)) {
  const file = parse("/" + name, text);
  if (file.parseDiagnostics.length) throw new Error(`${name}: ${ts.flattenDiagnosticMessageText(file.parseDiagnostics[0].messageText, " ")}`);
  libraryFiles.set("/" + name, file);
}
libraryTexts = undefined;

/** A TypeScript program of these files (name → source file) and the library. */
function programOf(files) {
  const all = new Map([...libraryFiles, ...Object.entries(files)]);
  const host = {
    getSourceFile: (name) => all.get(name),
    getDefaultLibFileName: () => "/library.d.ts",
    getCurrentDirectory: () => "/",
    getCanonicalFileName: (name) => name,
    useCaseSensitiveFileNames: () => true,
    getNewLine: () => "\n",
    fileExists: (name) => all.has(name),
    readFile: () => undefined,
    directoryExists: () => false,
    getDirectories: () => [],
    writeFile() {},
    checkerFor,
    resolveModuleNameLiterals: (names) => names.map(() => ({ resolvedModule: undefined })),
  };
  return ts.createProgram({ rootNames: [...all.keys()], options: compilerOptions, host });
}

// Most of a check's work is types of the library (members of arrays, strings, promises …), the same for every program:
// one checker keeps them, and is handed each program's files.
var warmed; // {checker, world}: `world` is the program that the checker sees, overwritten by the one to check
var SESSION = "/session.d.ts"; // declarations of a session's earlier programs
// Globals that stubs augment; the warm-up leaves them alone.
var STUB_GLOBALS = new Set(["NodeJS", "require"]);

// Whether a file redeclares library globals, which the warmed checker has resolved already.
function augmentsLibrary(file) {
  if (file.moduleAugmentations.length || file.jsGlobalAugmentations) return true;
  if (ts.isExternalOrCommonJsModule(file) || file.fileName === SESSION) return false;
  return [...file.locals.keys()].some((name) => !STUB_GLOBALS.has(name) && warmed.checker.hasGlobal(name));
}

/** The checker for a program: the warmed one, unless the program changes the library's types. */
function checkerFor(program) {
  const files = program.getSourceFiles().filter((file) => !libraryFiles.has(file.fileName));
  for (const file of files) ts.bindSourceFile(file, compilerOptions);
  if (warmed === undefined || files.some(augmentsLibrary)) return ts.createTypeChecker(program);
  Object.assign(warmed.world, program);
  for (const file of files) {
    if (file.fileName === SESSION) warmed.checker.shadowGlobals(file); // `const URL = "https://…"`: what was known by that name is gone
    else warmed.checker.addFile(file);
  }
  return warmed.checker;
}

/** Creates the warmed checker by checking a program without modules. */
function warmUp(source) {
  const file = parse("/warm.ts", source), world = { ...programOf({ "/warm.ts": file }) };
  const checker = ts.createTypeChecker(world);
  const [wrong] = checker.getDiagnostics(file);
  if (wrong) throw new Error("the program to warm up with: " + ts.flattenDiagnosticMessageText(wrong.messageText, " "));
  warmed = { checker, world };
}
