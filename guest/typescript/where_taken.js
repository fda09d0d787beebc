// A tool's result that is used as something else wherever it is used: what was forgotten may have been forgotten where it was
// taken, `const issues = list_issues(…)`, as well as where it is used. The author is told of both places.

var OF_ITERATION = new Set([2488, 2495, 2461, 2548, 2549]);
var isOfOtherKind = (name) => [Array, String, Number].some(({ prototype }) => name in prototype && !(name in Object.prototype));

// The value that a mistake takes for a list, a text or a number.
function takenForAnother(diagnostic, checker) {
  const { code } = diagnostic, node = innermost(diagnostic.file, diagnostic.start, diagnostic.length);
  if (OF_PROPERTIES.has(code)) return isOfOtherKind(node.text) ? ownerOf(node, checker).expression : undefined;
  if (OF_ITERATION.has(code)) return valueAt(node);
  if (!OF_NUMBERS.has(code)) return undefined;
  const operands = ts.isBinaryExpression(node) ? [node.left, node.right] : [node];
  return operands.find((each) => isSurelyNoNumber(checker.getTypeAtLocation(each), checker));
}

// What a variable, or a property of an object that is written out, was made of.
function madeOf(used, checker, program) {
  const name = ts.isPropertyAccessExpression(used) ? used.name : used;
  const declaration = checker.getSymbolAtLocation(name)?.valueDeclaration;
  if (declaration?.getSourceFile() !== program.file || program.changed.has(name.text)) return undefined;
  if (ts.isShorthandPropertyAssignment(declaration)) return declaration.name;
  if (ts.isPropertyAssignment(declaration)) return declaration.initializer;
  const isPlain = ts.isVariableDeclaration(declaration) && !declaration.type && !ts.isForOfStatement(declaration.parent.parent);
  return isPlain ? declaration.initializer : undefined;
}

// Whether a variable is nowhere used as what it is.
function isNeverItself(used, mistaken, origins) {
  if (!ts.isIdentifier(used)) return true;
  const declaration = origins.checker.getSymbolAtLocation(used).valueDeclaration;
  return origins.usesOf(declaration.name).every((each) => mistaken.has(each) || isTested(each));
}

/** The places where such results were taken, as mistakes. */
function whereTaken(mistakes, checker, program) {
  const found = mistakes.map((diagnostic) => ({ diagnostic, used: takenForAnother(diagnostic, checker) })).filter(({ used }) => used);
  const mistaken = new Set(found.map(({ used }) => used)), origins = new Origins(checker, program);
  return found.flatMap(({ diagnostic, used }) => {
    const made = madeOf(used, checker, program);
    if (!made || promiseOr(checker.getTypeAtLocation(made), checker) || !isToldByStub(made, checker, program)) return [];
    return isNeverItself(used, mistaken, origins) ? [movedTo(made, diagnostic)] : [];
  });
}

/** A mistake as one that was made elsewhere. */
function movedTo(node, diagnostic, more = "") {
  const text = ts.flattenDiagnosticMessageText(diagnostic.messageText, "\n"), start = node.getStart();
  const { line } = place(diagnostic.file, diagnostic.start);
  return { ...diagnostic, start, length: node.end - start, messageText: `${text}${more} (Used on line ${line}.)` };
}
