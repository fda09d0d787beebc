// What kind of value a type is: where two have no kind in common, a value of one is never of the other.

function kindOf(type, checker) {
  if (type.flags & TypeFlags.StringLike) return "text";
  if (type.flags & TypeFlags.NumberLike) return "number";
  if (type.flags & TypeFlags.BooleanLike) return "boolean";
  if (!(type.flags & TypeFlags.Object) || ANYTHING_GOES.test(type.symbol?.name ?? "")) return undefined;
  if (checker.isArrayLikeType(type)) return "list";
  if (isPromise(type)) return "promise";
  if (type.getCallSignatures().length || type.getConstructSignatures().length) return "function";
  const isEmpty = !type.getProperties().length && !type.getStringIndexType(); // `{}` is anything
  return isEmpty ? undefined : "object";
}

/** The kinds that values of a type have, without null; undefined if some may be of any kind. */
function kindsOf(type, checker) {
  const kinds = partsOf(type).map((each) => kindOf(each, checker));
  return kinds.length && kinds.every((each) => each !== undefined) ? new Set(kinds) : undefined;
}

function haveNoKindInCommon(one, other, checker) {
  const first = kindsOf(one, checker), second = kindsOf(other, checker);
  return first !== undefined && second !== undefined && ![...first].some((each) => second.has(each));
}

/** Whether no value of one type is what another says: of another kind, or without something that the program reads of it. */
function contradicts(source, target, checker, program, depth = 0) {
  const from = kindsOf(source, checker), to = kindsOf(target, checker);
  if (from === undefined || to === undefined || depth > 3) return false;
  // A list may be taken for a dictionary of its places, an object for any that goes through its own.
  if (from.has("list") && partsOf(target).some((each) => each.getStringIndexType() || each.getProperty("next"))) return false;
  if (partsOf(target).some((each) => each.getProperty("then")) && !from.has("promise")) return false; // awaited, it is itself
  if (![...from].some((each) => to.has(each))) return true;
  if (from.size > 1 || to.size > 1) return false;
  const [wanted, ...others] = partsOf(target), [given, ...more] = partsOf(source);
  if (others.length || more.length) return false;
  if (from.has("list")) return contradicts(given.getNumberIndexType(), wanted.getNumberIndexType(), checker, program, depth + 1);
  return from.has("object") && wanted.getProperties().some((property) => {
    if (!program.read.has(property.name) || given.getStringIndexType()) return false;
    const own = given.getProperty(property.name);
    if (own === undefined) return !(property.flags & ts.SymbolFlags.Optional) && !program.assigned.has(property.name);
    return contradicts(checker.getTypeOfSymbol(own), checker.getTypeOfSymbol(property), checker, program, depth + 1);
  });
}

// ---- comparisons

function isText(type) {
  return type.isUnion() ? type.types.every(isText) : (type.flags & ts.TypeFlags.StringLike) !== 0;
}

function compared(node) {
  for (let at = node; at; at = at.parent) {
    if (ts.isBinaryExpression(at)) return [at.left, at.right, at.operatorToken.kind];
    if (ts.isCaseClause(at)) return [at.parent.parent.expression, at.expression, SyntaxKind.EqualsEqualsEqualsToken];
  }
  return undefined;
}

// Two texts that are never the same, or a tool's result and a value of another kind, neither of them a variable that may
// have been assigned since.
function isSureComparison(node, checker, program) {
  const [left, right, operator] = compared(node) ?? [];
  if (left === undefined || isVariable(left, checker, program) || isVariable(right, checker, program)) return false;
  const [one, other] = [left, right].map((each) => checker.getTypeAtLocation(each));
  if (isText(one) && isText(other)) return true;
  const isTold = [left, right].some((each) => isToldByStub(each, checker, program));
  return IS_STRICT.has(operator) && isTold && haveNoKindInCommon(one, other, checker);
}

// `line.modes.includes("trams")`: a text that none of a result's can be.
function isNeverIncluded(node, checker, program) {
  const call = node.parent;
  if (!ts.isStringLiteralLike(node) || !isCalled(call, /^(?:includes|indexOf)$/) || call.arguments[0] !== node) return false;
  const list = call.expression.expression, element = checker.getTypeAtLocation(list).getNumberIndexType();
  return element !== undefined && checker.isArrayLikeType(checker.getTypeAtLocation(list)) && isLiteral(element) &&
    isToldByStub(list, checker, program);
}

// ---- the language's own functions

var WANTS_NUMBER_OR_TEXT = /^(?:(?:Number\.)?parse(?:Int|Float)|Math\.\w+|JSON\.parse|Date(?:\.parse)?|atob|btoa)$/;
var WANTS_LIST = /^(?:Set|Map|WeakSet|Promise\.(?:all|allSettled|race|any)|Object\.fromEntries|Array\.from)$/;

// An object of a tool's that the language can make nothing of: `parseFloat(product.price)`, `new Set(result)`.
function isOfNoUse(node, checker, program) {
  const call = node.parent;
  if (!(ts.isCallExpression(call) || ts.isNewExpression(call)) || !(call.arguments ?? []).includes(node)) return false;
  const called = call.expression.getText(), type = checker.getTypeAtLocation(node), kinds = kindsOf(type, checker);
  const isLost = kinds !== undefined && (kinds.has("promise") || isToldByStub(node, checker, program));
  if (!isLost || ["text", "number", "boolean", "function"].some((each) => kinds.has(each))) return false;
  if (WANTS_NUMBER_OR_TEXT.test(called)) return isSurelyNoNumber(type, checker);
  if (kinds.has("list")) return false;
  const isIterable = (each) => each.getProperties().some(({ name }) => /^__@iterator|^length$/.test(name));
  if (WANTS_LIST.test(called)) return !partsOf(type).some(isIterable);
  const owner = ts.isPropertyAccessExpression(call.expression) ? checker.getTypeAtLocation(call.expression.expression) : undefined;
  return owner !== undefined && (typeFlagsOf(owner) & PRIMITIVE) !== 0 && isSurelyNoNumber(type, checker);
}
