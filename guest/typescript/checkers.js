// The compiler's checker for a program. What it works out about the library (the members of lists, texts, promises …) is
// most of what there is to know, and the same for every program: one checker has it, and is handed the program's files.

var warmed; // {checker, world}: `world` is the checker's view of its program, which becomes that of the one to be checked

var SESSION = "/session.d.ts"; // what earlier programs declared
// What stubs add to our globals on purpose; warm.js leaves it alone.
var ADDED_TO = new Set(["NodeJS", "require"]);

// Whether a file gives another meaning to what the library declares, which the warmed checker has read already.
function changesLibrary(file) {
  if (file.moduleAugmentations.length || file.jsGlobalAugmentations) return true;
  if (ts.isExternalOrCommonJsModule(file) || file.fileName === SESSION) return false;
  return [...file.locals.keys()].some((name) => !ADDED_TO.has(name) && warmed.checker.hasGlobal(name));
}

/** The checker for a program: the warmed one, as long as what it knows holds for the program, too. */
function checkerFor(program) {
  const files = program.getSourceFiles().filter((file) => !libraryFiles.has(file.fileName));
  for (const file of files) ts.bindSourceFile(file, compilerOptions);
  if (warmed === undefined || files.some(changesLibrary)) return ts.createTypeChecker(program);
  Object.assign(warmed.world, program);
  for (const file of files) {
    if (file.fileName === SESSION) warmed.checker.hideBehind(file); // `const URL = "https://…"`: what was known by that name is gone
    else warmed.checker.addFile(file);
  }
  return warmed.checker;
}

/** Makes the checker that later programs get, by checking a program that has no modules. */
function warmUp(source) {
  const file = parse("/warm.ts", source), world = { ...programOf({ "/warm.ts": file }) };
  const checker = ts.createTypeChecker(world);
  const [wrong] = checker.getDiagnostics(file);
  if (wrong) throw new Error("the program to warm up with: " + ts.flattenDiagnosticMessageText(wrong.messageText, " "));
  warmed = { checker, world };
}
