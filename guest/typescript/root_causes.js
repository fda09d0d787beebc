// Root causes: a missing `await` or a misused result, reported at the call it comes from as well as where it shows.

var isPromise = ({ symbol }) =>
  symbol?.name === "Promise" && libraryFiles.has(symbol.declarations?.[0]?.getSourceFile().fileName);

var isPromiseOrList = (type, checker) =>
  isPromise(type) || (checker.isArrayLikeType(type) && isPromise(type.getNumberIndexType() ?? type));

// Whether the program awaits a variable anywhere, or hands it on: then it holds a promise on purpose.
function isAwaitedSomewhere(variable, program) {
  const name = variable.replace(/\$/g, "\\$");
  const waits = new RegExp(`\\bawait\\s+\\(?${name}\\b|\\b${name}\\s*\\.\\s*(?:then|catch|finally)\\b|\\breturn\\s+${name}\\s*[;}\\n]|` +
    `\\bPromise\\s*\\.\\s*\\w+\\s*\\(\\s*\\[?[^()]*\\b${name}\\b|\\bfor\\s+await\\b[^{]*\\b${name}\\b`);
  return waits.test(program.file.text);
}

// The call without `await` that a promise comes from.
function unawaitedCall(node, checker, program, steps = 0) {
  let at = unwrapped(node);
  while (ts.isElementAccessExpression(at) || isCalled(at, /^(?:at|find|filter|slice|pop|shift)$/)) {
    at = unwrapped(ts.isCallExpression(at) ? at.expression.expression : at.expression);
  }
  if (!ts.isIdentifier(at) || steps > MAX_STEPS || !isPromiseOrList(checker.getTypeAtLocation(at), checker)) return undefined;
  const declaration = checker.getSymbolAtLocation(at)?.valueDeclaration;
  if (declaration?.getSourceFile() !== program.file || program.reassigned.has(at.text)) return undefined;
  const again = (each) => unawaitedCall(each, checker, program, steps + 1);
  if (ts.isVariableDeclaration(declaration)) {
    const loop = declaration.parent.parent;
    if (ts.isForOfStatement(loop)) return again(loop.expression);
    if (declaration.initializer === undefined || declaration.type || isAwaitedSomewhere(at.text, program)) return undefined;
    return again(declaration.initializer) ?? declaration.initializer;
  }
  if (!ts.isParameter(declaration)) return undefined;
  const call = declaration.parent.parent;
  return ts.isCallExpression(call) && isCalled(call, ITERATING) ? again(call.expression.expression) : undefined;
}

var haveDisjointTypes = (one, other, checker) =>
  areDisjoint(checker.getTypeAtLocation(one), checker.getTypeAtLocation(other), checker);

/** A mistake at the call that lacks an `await`, if that is its cause. */
function atMissingAwait(diagnostic, checker, program) {
  const node = nodeAt(diagnostic);
  const choice = diagnostic.code === 2678 ? node.parent.parent.parent : undefined; // a switch whose subject is no case's type
  if (choice && ts.isSwitchStatement(choice) && haveDisjointTypes(choice.expression, node, checker)) {
    return relocated(choice.expression, diagnostic);
  }
  const used = PROPERTY_CODES.has(diagnostic.code) ? ownerOf(node, checker).expression : valueAt(node);
  const made = used && unawaitedCall(used, checker, program);
  if (made === undefined) return diagnostic;
  return relocated(made, diagnostic, /forget to use 'await'/.test(messageOf(diagnostic)) ? "" : " Did you forget to use 'await'?");
}

/** Promises interpolated into template strings, which the compiler accepts: `${get_issue({ id: 1 })}`. */
function interpolatedPromises(checker, program) {
  const found = [];
  const visit = (node) => {
    if (ts.isTemplateSpan(node) && isPromise(checker.getTypeAtLocation(node.expression))) {
      found.push(diagnosticAt(node.expression, 2801, "This is a promise, and not yet its value. Did you forget to use 'await'?"));
    }
    ts.forEachChild(node, visit);
  };
  visit(program.file);
  return found;
}

// ---- misused results: a property may have been forgotten where the result was stored, `const issues = list_issues(…)`, as well
// as where it is used. Both places are reported.

var ITERATION_CODES = new Set([2488, 2495, 2461, 2548, 2549]);
var isBuiltinMember = (name) => [Array, String, Number].some(({ prototype }) => name in prototype && !(name in Object.prototype));

// The value that a mistake uses as an array, a string or a number.
function misusedValue(diagnostic, checker) {
  const { code } = diagnostic, node = nodeAt(diagnostic);
  if (PROPERTY_CODES.has(code)) return isBuiltinMember(node.text) ? ownerOf(node, checker).expression : undefined;
  if (ITERATION_CODES.has(code)) return valueAt(node);
  if (!ARITHMETIC_CODES.has(code)) return undefined;
  const operands = ts.isBinaryExpression(node) ? [node.left, node.right] : [node];
  return operands.find((each) => isNeverNumeric(checker.getTypeAtLocation(each), checker));
}

// The initialiser of a variable, or of a property of an object literal.
function initializerOf(used, checker, program) {
  const name = ts.isPropertyAccessExpression(used) ? used.name : used;
  const declaration = checker.getSymbolAtLocation(name)?.valueDeclaration;
  if (declaration?.getSourceFile() !== program.file || program.reassigned.has(name.text)) return undefined;
  if (ts.isShorthandPropertyAssignment(declaration)) return declaration.name;
  if (ts.isPropertyAssignment(declaration)) return declaration.initializer;
  const isPlain = ts.isVariableDeclaration(declaration) && !declaration.type && !ts.isForOfStatement(declaration.parent.parent);
  return isPlain ? declaration.initializer : undefined;
}

// Whether every use of a variable is a mistake or a presence test.
function isAlwaysMisused(used, mistaken, origins) {
  if (!ts.isIdentifier(used)) return true;
  const declaration = origins.checker.getSymbolAtLocation(used).valueDeclaration;
  return origins.referencesTo(declaration.name).every((each) => mistaken.has(each) || isPresenceTest(each));
}

/** The initialisers of misused results, as mistakes. */
function atMisusedResults(mistakes, checker, program) {
  const found = mistakes.map((diagnostic) => ({ diagnostic, used: misusedValue(diagnostic, checker) })).filter(({ used }) => used);
  const mistaken = new Set(found.map(({ used }) => used)), origins = new Origins(checker, program);
  return found.flatMap(({ diagnostic, used }) => {
    const made = initializerOf(used, checker, program);
    if (!made || isPromiseOrList(checker.getTypeAtLocation(made), checker) || !comesFromTool(made, checker, program)) return [];
    return isAlwaysMisused(used, mistaken, origins) ? [relocated(made, diagnostic)] : [];
  });
}

/** A mistake moved to its cause, with the line on which it shows. */
function relocated(node, diagnostic, more = "") {
  const text = ts.flattenDiagnosticMessageText(diagnostic.messageText, "\n"), start = node.getStart();
  const { line } = place(diagnostic.file, diagnostic.start);
  return { ...diagnostic, start, length: node.end - start, messageText: `${text}${more} (Used on line ${line}.)` };
}
