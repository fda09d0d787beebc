// Classifies TypeScript's diagnostics: mistakes, after which a run certainly fails, and noise.

// Codes beside those of assignability.js: unknown module, export, name or property; misuse of a value.
var MODULE_CODES = new Set([2307, 2792]);
var NAME_CODES = new Set([2304, 2552, 2580, 2581, 2582, 2583, 2584, 2591, 2592, 2593, 2867, 2868, 18004, 2663, 2662]);
var PROPERTY_CODES = new Set([2339, 2551, 2550, 2568, 2576]);
var INDEX_CODES = new Set([7053]);
var COMPARISON_CODES = new Set([2367, 2678]);
var ARITHMETIC_CODES = new Set([2362, 2363, 2365]);
var CONDITION_CODES = new Set([2801]);
var OTHER_CODES = new Set([
  2305, 2724, 2459, 2460, 2614, // no such export
  2693, 2708, // a type or namespace used as a value
  2349, 2348, 2351, 6234, // not callable, or not a constructor
  2488, 2495, 2461, 2504, 2548, 2549, // not iterable
  2538, // not an index type
  2448, 2588, // used before its declaration; assigned though constant
]);

/** The innermost node of a diagnostic's range. */
function nodeAt({ file, start, length }) {
  let found = file;
  const end = start + length;
  for (;;) {
    const child = ts.forEachChild(found, (node) => (node.getStart(file) <= start && node.end >= end ? node : undefined));
    if (child === undefined) return found;
    found = child;
  }
}

var isIn = (node, test) => ts.findAncestor(node, test) !== undefined;

var isType = (node) => ts.isTypeNode(node) && !ts.isExpressionWithTypeArguments(node);
var isTryBlock = (node) => ts.isBlock(node) && ts.isTryStatement(node.parent) && node.parent.tryBlock === node;

// ---- names

// `typeof process` is how programs probe for a global.
function isProbedGlobal(name, file) {
  return new RegExp(`typeof\\s+${name.replace(/\$/g, "\\$")}(?![\\w$])`).test(file.text);
}

function isUndefinedName(node, program) {
  const name = node.text ?? "";
  return !program.known.has(name) && !(name && isProbedGlobal(name, program.file));
}

// ---- variables

// Control flow analysis ignores assignments in callbacks: `let best = null` stays null to the compiler.
function isStaleNarrowing(node, type, checker, program) {
  return (type.flags & (ts.TypeFlags.Never | ts.TypeFlags.Nullable)) !== 0 && isReassignedVariable(node, checker, program);
}

function isReassignedVariable(node, checker, program) {
  while (ts.isPropertyAccessExpression(node) || ts.isElementAccessExpression(node) || ts.isNonNullExpression(node) ||
         ts.isParenthesizedExpression(node) || ts.isCallExpression(node)) {
    node = node.expression;
  }
  const declaration = ts.isIdentifier(node) ? checker.getSymbolAtLocation(node)?.valueDeclaration : undefined;
  return declaration !== undefined && ts.isVariableDeclaration(declaration) && program.reassigned.has(node.text);
}

// ---- numbers

// An object without a numeric value: dates, wrappers and primitives can be calculated with.
function isNeverNumeric(type, checker) {
  if (type.isUnion()) return type.types.every((each) => isNeverNumeric(each, checker));
  if ((type.flags & ts.TypeFlags.Object) === 0) return false;
  const valueOf = checker.getPropertyOfType(type, "valueOf")?.declarations ?? [];
  return valueOf.every((each) => ts.isInterfaceDeclaration(each.parent) && each.parent.name.text === "Object");
}

function isInvalidArithmetic(node, checker) {
  const operands = ts.isBinaryExpression(node) ? [node.left, node.right] : [node];
  return operands.some((each) => isNeverNumeric(checker.getTypeAtLocation(each), checker));
}

/** Records what the compiler misinferred, by the diagnostics that are noise. Mutates `program`. */
function recordMisinference(diagnostic, checker, program) {
  if (!ASSIGNABILITY_CODES.has(diagnostic.code) || isMistake(diagnostic, checker, program)) return;
  const node = nodeAt(diagnostic), call = callOf(node);
  if (call !== undefined) program.misinferredCalls.push(call);
  // `let rows = []; rows = …`: to the compiler, it stays an array whatever is assigned.
  const variable = isAssigned(node) ? checker.getSymbolAtLocation(node) : undefined;
  if (variable !== undefined) program.misinferredVariables.add(variable);
}

/** Whether a run certainly fails because of this diagnostic. */
function isMistake(diagnostic, checker, program) {
  const { code } = diagnostic, node = nodeAt(diagnostic);
  if (isIn(node, isType) || isTypeOnlyImport(node, program)) return false; // types are erased
  const message = ts.flattenDiagnosticMessageText(diagnostic.messageText, "\n");
  if (ASSIGNABILITY_CODES.has(code)) {
    if (setsPrototype(node.parent) && EXCESS_CODES.has(code)) return false;
    if (isDynamicRequire(node) || (isRequire(node) && isIn(node, isTryBlock))) return false;
    return isCertainMismatch(diagnostic, node, checker, program);
  }
  if (MODULE_CODES.has(code)) return !isIn(node, isTryBlock);
  if (EXPORT_CODES.has(code) && hasDefaultOrRest(node.parent)) return false;
  if (NAME_CODES.has(code)) return isUndefinedName(node, program);
  if (PROPERTY_CODES.has(code)) return isMissingProperty(diagnostic, node, message, checker, program);
  if (INDEX_CODES.has(code)) return isMissingIndex(node, checker, program);
  if (COMPARISON_CODES.has(code)) return isAlwaysFalse(node, checker, program);
  if (CONDITION_CODES.has(code)) return isPromise(checker.getTypeAtLocation(node));
  if (ARITHMETIC_CODES.has(code)) return isInvalidArithmetic(node, checker);
  return OTHER_CODES.has(code) && (EXPORT_CODES.has(code) || isUnambiguous(node, message, checker));
}

// A value of a union type may be the member that fits.
function isUnambiguous(node, message, checker) {
  if (/[Tt]ype 'never'|'undefined'|'null'/.test(message)) return false;
  // For a key of a union type, the compiler names the member that does not exist.
  if (!/[Tt]ype '[^']* \| |as an index type/.test(message)) return true;
  const type = ts.isExpression(node) ? checker.getTypeAtLocation(node) : undefined;
  return type !== undefined && !type.isUnion() && !(type.flags & OPAQUE);
}

// `const { get_issue, ...rest } = require(…)`, `const { more = null } = require(…)`: imports to the compiler, in JavaScript.
var hasDefaultOrRest = (node) => ts.isBindingElement(node) && (node.dotDotDotToken !== undefined || node.initializer !== undefined);

function isRequire(node) {
  const call = ts.isCallExpression(node) ? node : node.parent;
  return call !== undefined && ts.isCallExpression(call) && ts.isIdentifier(call.expression) && call.expression.text === "require"
    ? call : undefined;
}

// `require(name)`: the module is known at run time only.
function isDynamicRequire(node) {
  const call = isRequire(node);
  return call !== undefined && call.arguments.length === 1 && !ts.isStringLiteralLike(call.arguments[0]);
}
