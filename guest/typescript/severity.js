// Which of TypeScript's complaints are about mistakes: those after which a run surely goes wrong. The rest is noise.

// Besides those of fits.js: wrong module, export or name; missing property; wrong use of a value.
var OF_MODULES = new Set([2307, 2792]);
var OF_NAMES = new Set([2304, 2552, 2580, 2581, 2582, 2583, 2584, 2591, 2592, 2593, 2867, 2868, 18004, 2663, 2662]);
var OF_PROPERTIES = new Set([2339, 2551, 2550, 2568, 2576]);
var OF_INDICES = new Set([7053]);
var OF_COMPARISONS = new Set([2367, 2678]);
var OF_NUMBERS = new Set([2362, 2363, 2365]);
var OF_CONDITIONS = new Set([2801]);
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

// ---- names

// `typeof process` is how programs ask whether there is one.
function isAskedFor(name, file) {
  return new RegExp(`typeof\\s+${name.replace(/\$/g, "\\$")}(?![\\w$])`).test(file.text);
}

function isSureName(node, program) {
  const name = node.text ?? "";
  return !program.known.has(name) && !(name && isAskedFor(name, program.file));
}

// ---- variables

// Flow analysis doesn't see what callbacks assign: `let best = null` is null to it ever after.
function isStale(node, type, checker, program) {
  return (type.flags & (ts.TypeFlags.Never | ts.TypeFlags.Nullable)) !== 0 && isVariable(node, checker, program);
}

function isVariable(node, checker, program) {
  while (ts.isPropertyAccessExpression(node) || ts.isElementAccessExpression(node) || ts.isNonNullExpression(node) ||
         ts.isParenthesizedExpression(node) || ts.isCallExpression(node)) {
    node = node.expression;
  }
  const declaration = ts.isIdentifier(node) ? checker.getSymbolAtLocation(node)?.valueDeclaration : undefined;
  return declaration !== undefined && ts.isVariableDeclaration(declaration) && program.changed.has(node.text);
}

// ---- numbers

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

/** What the compiler misunderstood of the program, by the complaints that are no mistakes. */
function noteGuess(diagnostic, checker, program) {
  if (!OF_FIT.has(diagnostic.code) || isMistake(diagnostic, checker, program)) return;
  const node = innermost(diagnostic.file, diagnostic.start, diagnostic.length), call = callOf(node);
  if (call !== undefined) program.misunderstood.push(call);
  // `let rows = []; rows = …`: whatever is assigned to it, it is a list to the compiler.
  const variable = isAssigned(node) ? checker.getSymbolAtLocation(node) : undefined;
  if (variable !== undefined) program.reassigned.add(variable);
}

/** Whether a run with this in it goes wrong. */
function isMistake(diagnostic, checker, program) {
  const { code, file, start, length } = diagnostic;
  const node = innermost(file, start, length);
  if (isIn(node, isType) || isImportOfType(node, program)) return false; // types are gone when the program runs
  const message = ts.flattenDiagnosticMessageText(diagnostic.messageText, "\n");
  if (OF_FIT.has(code)) {
    if (setsPrototype(node.parent) && OF_EXCESS.has(code)) return false;
    if (isOpenRequire(node) || (isRequire(node) && isIn(node, isTried))) return false;
    return isSureMisfit(diagnostic, node, checker, program);
  }
  if (OF_MODULES.has(code)) return !isIn(node, isTried);
  if (OF_EXPORTS.has(code) && isLeftOpen(node.parent)) return false;
  if (OF_NAMES.has(code)) return isSureName(node, program);
  if (OF_PROPERTIES.has(code)) return isSureProperty(diagnostic, node, message, checker, program);
  if (OF_INDICES.has(code)) return isSureIndex(node, checker, program);
  if (OF_COMPARISONS.has(code)) return isSureComparison(node, checker, program);
  if (OF_CONDITIONS.has(code)) return isPromise(checker.getTypeAtLocation(node));
  if (OF_NUMBERS.has(code)) return isSureCalculation(node, checker);
  return OTHERS.has(code) && (OF_EXPORTS.has(code) || isOfOneType(node, message, checker));
}

// A value of several types may be the right one.
function isOfOneType(node, message, checker) {
  if (/[Tt]ype 'never'|'undefined'|'null'/.test(message)) return false;
  // Of a key that may be one of several, the compiler names the one that is none.
  if (!/[Tt]ype '[^']* \| |as an index type/.test(message)) return true;
  const type = ts.isExpression(node) ? checker.getTypeAtLocation(node) : undefined;
  return type !== undefined && !type.isUnion() && !(type.flags & KNOWS_NOTHING);
}

// `const { get_issue, ...rest } = require(…)`, `const { more = null } = require(…)`: to the compiler, imports in JavaScript.
var isLeftOpen = (node) => ts.isBindingElement(node) && (node.dotDotDotToken !== undefined || node.initializer !== undefined);

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
