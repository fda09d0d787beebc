// What a program is checked against: ECMAScript and our globals, which are parsed when the image is made, and the stubs.
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
  verbatimModuleSyntax: true, // which imports could be left out, erase.js finds out by itself
  types: [],
  skipLibCheck: true,
};

var parseOptions = {
  languageVersion: ts.ScriptTarget.ESNext,
  impliedNodeFormat: ts.ModuleKind.ESNext,
  jsDocParsingMode: ts.JSDocParsingMode.ParseNone,
  setExternalModuleIndicator: (file) => { // a program is a module, a stub is none
    file.externalModuleIndicator = file.isDeclarationFile && !/^export \{\};/m.test(file.text) ? undefined : true;
  },
};

// What is only declared is looked at when it is bound, which tells every node of its parent, too.
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

/** A program of TypeScript's, of these files (name → source file) and the library. */
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
