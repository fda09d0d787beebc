// Which of TypeScript's complaints are about mistakes: those after which a run surely goes wrong. The rest is noise.

// Besides those of fits.js: wrong module, export or name; missing property; wrong use of a value.
var OF_MODULES = new Set([2307, 2792]);
var OF_NAMES = new Set([2304, 2552, 2580, 2581, 2582, 2583, 2584, 2591, 2592, 2593, 2867, 2868, 18004, 2663, 2662]);
var OF_PROPERTIES = new Set([2339, 2551, 2550, 2568, 2576]);
var OF_INDICES = new Set([7053]);
var OF_COMPARISONS = new Set([2367, 2678]);
var OF_NUMBERS = new Set([2362, 2363, 2365]);
var OTHERS = new Set([
  2305, 2724, 2459, 2460, 2614, // no such export
  2693, 2708, // a type or namespace where a value is needed
  2349, 2348, 2351, 6234, // not a function, or not a class
  2488, 2495, 2461, 2504, 2548, 2549, // can't be gone through
  2538, // no key
  2448, 2588, // used before its declaration, assigned though constant
]);

function innermost(file, start, length) {
  let found = file;
  const end = start + length;
  for (;;) {
    const child = ts.forEachChild(found, (node) =>
      node.getStart(file) <= start && node.end >= end ? node : undefined);
    if (child === undefined) return found;
    found = child;
  }
}

function isIn(node, test) {
  for (let at = node; at; at = at.parent) if (test(at)) return true;
  return false;
}

var isType = (node) => ts.isTypeNode(node) && !ts.isExpressionWithTypeArguments(node);
var isTried = (node) => ts.isBlock(node) && ts.isTryStatement(node.parent) && node.parent.tryBlock === node;

// ---- what the program does to its objects

function isAssigned(node) {
  const parent = node.parent;
  return ts.isBinaryExpression(parent) && parent.left === node &&
    parent.operatorToken.kind >= ts.SyntaxKind.FirstAssignment && parent.operatorToken.kind <= ts.SyntaxKind.LastAssignment;
}

// Asked for rather than used: `typeof a.b`, `a.b ?? c`, `a.b?.c`, `if (a.b)`, `a.b === undefined`.
function isProbed(node) {
  const { parent } = node;
  if (ts.isTypeOfExpression(parent) || ts.isPrefixUnaryExpression(parent) || ts.isIfStatement(parent)) return true;
  if (ts.isConditionalExpression(parent)) return parent.condition === node;
  if (ts.isPropertyAccessExpression(parent) || ts.isElementAccessExpression(parent) || ts.isCallExpression(parent)) {
    return parent.expression === node && parent.questionDotToken !== undefined;
  }
  if (!ts.isBinaryExpression(parent)) return false;
  const isNothing = (each) => each.kind === ts.SyntaxKind.NullKeyword || (ts.isIdentifier(each) && each.text === "undefined");
  const kind = parent.operatorToken.kind;
  const isChoice = kind === ts.SyntaxKind.QuestionQuestionToken || kind === ts.SyntaxKind.BarBarToken ||
    kind === ts.SyntaxKind.AmpersandAmpersandToken;
  return (isChoice && parent.left === node) || isNothing(parent.left) || isNothing(parent.right);
}

/** Names of properties that the program sets or asks for, and whether it sets some whose names only a run shows. */
function assignments(file) {
  const assigned = new Set();
  let isOpen = false;
  const addKeys = (node) => {
    if (ts.isObjectLiteralExpression(node)) for (const each of node.properties) if (each.name?.text) assigned.add(each.name.text);
  };
  const visit = (node) => {
    if (ts.isPropertyAccessExpression(node) && (isAssigned(node) || isProbed(node))) assigned.add(node.name.text);
    if (ts.isBinaryExpression(node) && node.operatorToken.kind === ts.SyntaxKind.InKeyword && ts.isStringLiteralLike(node.left)) {
      assigned.add(node.left.text);
    }
    if (ts.isElementAccessExpression(node) && isAssigned(node)) {
      if (ts.isStringLiteralLike(node.argumentExpression)) assigned.add(node.argumentExpression.text);
      else isOpen = true;
    }
    if (ts.isCallExpression(node) && /^(?:Object\.(?:assign|defineProperty|defineProperties|fromEntries))$/.test(node.expression.getText(file))) {
      if (!node.expression.getText(file).endsWith("assign")) isOpen = true;
      node.arguments.forEach(addKeys);
    }
    ts.forEachChild(node, visit);
  };
  visit(file);
  return { assigned, isOpen };
}

// ---- names, properties

// `typeof process` is how programs ask whether there is one.
function isAskedFor(name, file) {
  return new RegExp(`typeof\\s+${name.replace(/\$/g, "\\$")}(?![\\w$])`).test(file.text);
}

function isSureName(node, program) {
  const name = node.text ?? "";
  return !program.known.has(name) && !(name && isAskedFor(name, program.file));
}

function isSureProperty(node, message, checker, program) {
  if (/on type '(?:never|\{\})'/.test(message)) return false;
  const name = ts.isIdentifier(node) || ts.isStringLiteralLike(node) ? node.text : undefined;
  if (name !== undefined && program.assigned.has(name)) return false;
  const access = node.parent;
  if (!access || !ts.isPropertyAccessExpression(access)) return true;
  if (isAssigned(access)) return false;
  const owner = checker.getTypeAtLocation(access.expression);
  if (owner.isUnion() && owner.types.some((each) => checker.getPropertyOfType(each, name))) return false;
  if (isStale(access.expression, owner, checker) || isGuess(access.expression, checker, program.misunderstood)) return false;
  // Objects of the program's own are open: always in JavaScript, else if it sets properties by name.
  const isOwn = owner.symbol?.declarations?.[0]?.getSourceFile() === program.file;
  return !(isOwn && (program.isOpen || !program.isTypeScript));
}

// `result[0]` of an object that a stub declares without any such key.
function isSureIndex(node, checker, program) {
  const access = ts.isElementAccessExpression(node) ? node : node.parent;
  if (!access || !ts.isElementAccessExpression(access) || isAssigned(access)) return false;
  const key = access.argumentExpression, owner = checker.getTypeAtLocation(access.expression);
  if (!ts.isStringLiteralLike(key) && !ts.isNumericLiteral(key)) return false;
  return !owner.isUnion() && isStub(owner.symbol?.declarations?.[0]?.getSourceFile()) && !program.assigned.has(key.text);
}

// Flow analysis doesn't see what callbacks assign: `let best = null` is null to it ever after.
function isStale(node, type, checker) {
  return (type.flags & (ts.TypeFlags.Never | ts.TypeFlags.Nullable)) !== 0 && isVariable(node, checker);
}

function isVariable(node, checker) {
  while (ts.isPropertyAccessExpression(node) || ts.isElementAccessExpression(node) || ts.isNonNullExpression(node) ||
         ts.isParenthesizedExpression(node) || ts.isCallExpression(node)) {
    node = node.expression;
  }
  const declaration = ts.isIdentifier(node) ? checker.getSymbolAtLocation(node)?.valueDeclaration : undefined;
  return declaration !== undefined && ts.isVariableDeclaration(declaration) &&
    (ts.getCombinedNodeFlags(declaration) & ts.NodeFlags.Const) === 0;
}

// ---- comparisons, numbers

function isText(type) {
  return type.isUnion() ? type.types.every(isText) : (type.flags & ts.TypeFlags.StringLike) !== 0;
}

function compared(node) {
  for (let at = node; at; at = at.parent) {
    if (ts.isBinaryExpression(at)) return [at.left, at.right];
    if (ts.isCaseClause(at)) return [at.parent.parent.expression, at.expression];
  }
  return undefined;
}

// Two texts that are never the same, neither of them a variable that may have been assigned since.
function isSureComparison(node, checker) {
  const both = compared(node);
  return both !== undefined && both.every((each) => !isVariable(each, checker) && isText(checker.getTypeAtLocation(each)));
}

// An object that is no number in any way: dates, wrappers and everything primitive can be calculated with.
function isSurelyNoNumber(type, checker) {
  if (type.isUnion()) return type.types.every((each) => isSurelyNoNumber(each, checker));
  if ((type.flags & ts.TypeFlags.Object) === 0) return false;
  const valueOf = checker.getPropertyOfType(type, "valueOf")?.declarations ?? [];
  return valueOf.every((each) => ts.isInterfaceDeclaration(each.parent) && each.parent.name.text === "Object");
}

function isSureCalculation(node, checker) {
  const operands = ts.isBinaryExpression(node) ? [node.left, node.right] : [node];
  return operands.some((each) => isSurelyNoNumber(checker.getTypeAtLocation(each), checker));
}

/** Whether a run with this in it goes wrong. */
function isMistake(diagnostic, checker, program) {
  const { code, file, start, length } = diagnostic;
  const node = innermost(file, start, length);
  if (isIn(node, isType)) return false; // types are gone when the program runs
  const message = ts.flattenDiagnosticMessageText(diagnostic.messageText, "\n");
  if (OF_FIT.has(code)) {
    if (isOpenRequire(node) || (isRequire(node) && isIn(node, isTried))) return false;
    if (isSureMisfit(diagnostic, node, checker, program)) return true;
    const call = callOf(node);
    if (call !== undefined) program.misunderstood.push(call);
    return false;
  }
  if (OF_MODULES.has(code)) return !isIn(node, isTried);
  if (OF_NAMES.has(code)) return isSureName(node, program);
  if (OF_PROPERTIES.has(code)) return isSureProperty(node, message, checker, program);
  if (OF_INDICES.has(code)) return isSureIndex(node, checker, program);
  if (OF_COMPARISONS.has(code)) return isSureComparison(node, checker);
  if (OF_NUMBERS.has(code)) return isSureCalculation(node, checker);
  // A value of several types may be the right one.
  return OTHERS.has(code) && !/type 'never'|'undefined'|'null'|[Tt]ype '[^']* \| /.test(message);
}

function isRequire(node) {
  const call = ts.isCallExpression(node) ? node : node.parent;
  return call !== undefined && ts.isCallExpression(call) && ts.isIdentifier(call.expression) && call.expression.text === "require"
    ? call : undefined;
}

// `require(name)`: which module that is, only the run knows.
function isOpenRequire(node) {
  const call = isRequire(node);
  return call !== undefined && call.arguments.length === 1 && !ts.isStringLiteralLike(call.arguments[0]);
}
