// Assignability as JSON: whether a value of one type may be valid where another is expected. More lenient than the
// compiler's, for conversions (`toJSON`, repairs by the host) and for what the compiler can't infer.

var MAX_DEPTH = 8;
var DIGITS = /^-?\d{16,}$/; // the host sends such a string as an integer

var { TypeFlags } = ts;
var OPAQUE = TypeFlags.Any | TypeFlags.Unknown | TypeFlags.Instantiable | TypeFlags.NonPrimitive;
var NULLISH = TypeFlags.Null | TypeFlags.Undefined | TypeFlags.Void;
var TEXTS_AND_NUMBERS = [TypeFlags.StringLike, TypeFlags.NumberLike, TypeFlags.BooleanLike];
var PRIMITIVE = TEXTS_AND_NUMBERS.reduce((all, each) => all | each, TypeFlags.BigIntLike | TypeFlags.ESSymbolLike);
var UNCHECKED_NAMES = /^(?:Handle|String|Number|Boolean|ArrayBuffer|SharedArrayBuffer|DataView|[A-Z]\w*\d+(?:Clamped)?Array)$/;

// A string constant is widened to `string` by the compiler, and may still be one of the literals expected.
function isAssignablePrimitive(source, target) {
  if ("value" in source && "value" in target) return source.value === target.value; // including enum members
  if (target.flags & TypeFlags.NumberLike && "value" in source && DIGITS.test(source.value)) return true;
  return TEXTS_AND_NUMBERS.some((kind) => source.flags & kind && target.flags & kind && !("value" in source));
}

/** Compares types within one check, knowing which properties the program assigns. */
class Assignability {
  constructor(checker, program) {
    this.checker = checker;
    this.program = program;
  }

  mayAssign(source, target, depth = 0) {
    const { checker } = this, again = (from, to) => this.mayAssign(from, to, depth + 1);
    if (depth > MAX_DEPTH || (source.flags | target.flags) & OPAQUE || source.flags & TypeFlags.Never) return true;
    if (checker.isTypeAssignableTo(source, target)) return true;
    if (source.flags & NULLISH) return true; // narrowed later, or by code that the compiler doesn't see
    if (source.isUnion()) return source.types.some((each) => !(each.flags & NULLISH) && again(each, target));
    if (target.isUnion()) return target.types.some((each) => again(source, each));
    if (target.flags & NULLISH) return false;
    if (source.flags & PRIMITIVE) return (target.flags & PRIMITIVE) !== 0 && isAssignablePrimitive(source, target);
    if (UNCHECKED_NAMES.test(source.symbol?.name ?? "") || target.symbol?.name === "Handle") return true;
    const written = this.jsonType(source);
    if (written) return again(written, target);
    if (target.flags & PRIMITIVE) return false;
    return checker.isArrayLikeType(target) || checker.isArrayLikeType(source)
      ? this.mayAssignList(source, target, again) : this.mayAssignObject(source, target, again);
  }

  // The return type of `toJSON`: a date serialises as a string.
  jsonType(type) {
    const method = this.checker.getPropertyOfType(type, "toJSON");
    return method && this.checker.getTypeOfSymbol(method).getCallSignatures()[0]?.getReturnType();
  }

  // Arrays and tuples of any length: the length is known at run time.
  mayAssignList(source, target, again) {
    const [from, to] = [source, target].map((each) =>
      this.checker.isArrayLikeType(each) ? each.getNumberIndexType() : undefined);
    return from !== undefined && to !== undefined && again(from, to);
  }

  mayAssignObject(source, target, again) {
    const { checker, program } = this, index = target.getStringIndexType();
    if (source.getCallSignatures().length) return false;
    const isOpen = source.getStringIndexType() !== undefined;
    for (const wanted of target.getProperties()) {
      const given = source.getProperty(wanted.name);
      if (program.assigned.has(wanted.name)) continue; // assigned later: `const input = {}; input.city = "Oslo"`
      if (given === undefined && (isOpen || wanted.flags & ts.SymbolFlags.Optional)) continue;
      if (given === undefined || !again(checker.getTypeOfSymbol(given), checker.getTypeOfSymbol(wanted))) return false;
    }
    return index === undefined ||
      source.getProperties().every((given) => target.getProperty(given.name) || again(checker.getTypeOfSymbol(given), index));
  }
}

// Kinds of values: types without a common kind are disjoint.

function kindOf(type, checker) {
  if (type.flags & TypeFlags.StringLike) return "text";
  if (type.flags & TypeFlags.NumberLike) return "number";
  if (type.flags & TypeFlags.BooleanLike) return "boolean";
  if (!(type.flags & TypeFlags.Object) || UNCHECKED_NAMES.test(type.symbol?.name ?? "")) return undefined;
  if (checker.isArrayLikeType(type)) return "list";
  if (isPromise(type)) return "promise";
  if (type.getCallSignatures().length || type.getConstructSignatures().length) return "function";
  const isEmpty = !type.getProperties().length && !type.getStringIndexType(); // `{}` is any value
  return isEmpty ? undefined : "object";
}

/** The kinds of a type's non-null values; undefined if any is unknown. */
function kindsOf(type, checker) {
  const kinds = nonNullishParts(type).map((each) => kindOf(each, checker));
  return kinds.length && kinds.every((each) => each !== undefined) ? new Set(kinds) : undefined;
}

function areDisjoint(one, other, checker) {
  const first = kindsOf(one, checker), second = kindsOf(other, checker);
  return first !== undefined && second !== undefined && ![...first].some((each) => second.has(each));
}

/** Whether types are disjoint: of different kinds, or without a property that the program reads. */
function contradicts(source, target, checker, program, depth = 0) {
  const from = kindsOf(source, checker), to = kindsOf(target, checker);
  if (from === undefined || to === undefined || depth > 3) return false;
  // An array has its indices as keys, and an iterator its `next`.
  if (from.has("list") && nonNullishParts(target).some((each) => each.getStringIndexType() || each.getProperty("next"))) return false;
  if (!from.has("promise") && nonNullishParts(target).some((each) => each.getProperty("then"))) return false; // awaited as is
  if (![...from].some((each) => to.has(each))) return true;
  if (from.size > 1 || to.size > 1) return false;
  const [wanted, ...others] = nonNullishParts(target), [given, ...more] = nonNullishParts(source);
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

var isText = (type) => membersOf(type).every((each) => each.flags & ts.TypeFlags.StringLike);

// The operands and operator of the comparison around a node.
function compared(node) {
  const at = ts.findAncestor(node, (each) => ts.isBinaryExpression(each) || ts.isCaseClause(each));
  if (at === undefined) return undefined;
  return ts.isBinaryExpression(at) ? [at.left, at.right, at.operatorToken.kind]
    : [at.parent.parent.expression, at.expression, SyntaxKind.EqualsEqualsEqualsToken];
}

// A comparison of disjoint strings, or of a tool's result with a value of another kind; neither side is a reassigned variable.
function isAlwaysFalse(node, checker, program) {
  const [left, right, operator] = compared(node) ?? [];
  if (left === undefined || isReassignedVariable(left, checker, program) || isReassignedVariable(right, checker, program)) return false;
  const [one, other] = [left, right].map((each) => checker.getTypeAtLocation(each));
  if (isText(one) && isText(other)) return true;
  const isFromTool = [left, right].some((each) => comesFromTool(each, checker, program));
  return IS_STRICT.has(operator) && isFromTool && areDisjoint(one, other, checker);
}

// `line.modes.includes("trams")`: not among the literals of a result's type.
function isNeverIncluded(node, checker, program) {
  const call = node.parent;
  if (!ts.isStringLiteralLike(node) || !isCalled(call, /^(?:includes|indexOf)$/) || call.arguments[0] !== node) return false;
  const list = call.expression.expression, element = checker.getTypeAtLocation(list).getNumberIndexType();
  return element !== undefined && checker.isArrayLikeType(checker.getTypeAtLocation(list)) && isLiteral(element) &&
    comesFromTool(list, checker, program);
}

// ---- built-in functions

var WANTS_NUMBER_OR_TEXT = /^(?:(?:Number\.)?parse(?:Int|Float)|Math\.\w+|JSON\.parse|Date(?:\.parse)?|atob|btoa)$/;
var WANTS_LIST = /^(?:Set|Map|WeakSet|Promise\.(?:all|allSettled|race|any)|Object\.fromEntries|Array\.from)$/;

// A tool's object given to a built-in function that can't use it: `parseFloat(product.price)`, `new Set(result)`.
function isUselessToBuiltin(node, checker, program) {
  const call = node.parent;
  if (!ts.isCallOrNewExpression(call) || !(call.arguments ?? []).includes(node)) return false;
  const called = call.expression.getText(), type = checker.getTypeAtLocation(node), kinds = kindsOf(type, checker);
  const isLost = kinds !== undefined && (kinds.has("promise") || comesFromTool(node, checker, program));
  if (!isLost || ["text", "number", "boolean", "function"].some((each) => kinds.has(each))) return false;
  if (WANTS_NUMBER_OR_TEXT.test(called)) return isNeverNumeric(type, checker);
  if (kinds.has("list")) return false;
  const isIterable = (each) => each.getProperties().some(({ name }) => /^__@iterator|^length$/.test(name));
  if (WANTS_LIST.test(called)) return !nonNullishParts(type).some(isIterable);
  const owner = ts.isPropertyAccessExpression(call.expression) ? checker.getTypeAtLocation(call.expression.expression) : undefined;
  return owner !== undefined && (typeFlagsOf(owner) & PRIMITIVE) !== 0 && isNeverNumeric(type, checker);
}

// ---- annotations: a tool's result assigned to a type that the program declares, `const name: string = get_issue({ id: 1 }).id`.
// The run may not fail there, but the author's belief about the tool is wrong.

// The value and declared type at a diagnostic's node.
function annotationOf(node, checker, program) {
  const { parent } = node;
  if (ts.isArrayLiteralExpression(parent) || (ts.isConditionalExpression(parent) && parent.condition !== node)) {
    const { type } = annotationOfParent(parent, checker, program);
    return { value: node, type: type && checker.getContextualType(node), isByName: true };
  }
  if (ts.isReturnStatement(node) || ts.isReturnStatement(parent) || (ts.isArrowFunction(parent) && parent.body === node)) {
    const owner = ts.findAncestor(node.parent, ts.isFunctionLike), value = ts.isReturnStatement(node) ? node.expression : node;
    const isGivenToOwn = owner && !owner.type && ts.isCallExpression(owner.parent) &&
      checker.getResolvedSignature(owner.parent)?.declaration?.getSourceFile() === program.file;
    return isGivenToOwn ? { value, type: value && checker.getContextualType(value), isByName: true } : { value, type: owner?.type };
  }
  if ((ts.isVariableDeclaration(parent) || ts.isPropertyDeclaration(parent)) && parent.name === node) {
    return { value: parent.initializer, type: parent.type };
  }
  if (ts.isBinaryExpression(parent) && parent.left === node && isAssigned(node)) {
    if (ts.isElementAccessExpression(node)) { // `totals[key] = …`, where `totals` has a declared type
      const type = isDeclared(node.expression, checker, program) ? checker.getTypeAtLocation(node) : undefined;
      return { value: parent.right, type, isByName: true };
    }
    const symbol = checker.getSymbolAtLocation(node), initial = symbol?.valueDeclaration?.initializer;
    if (initial && isTypedContainerGet(initial, checker, program)) { // `let rate = rates.get(name); if (!rate) rate = …`
      return { value: parent.right, type: checker.getTypeOfSymbol(symbol), isByName: true };
    }
    return { value: parent.right, type: typeNodeOf(symbol, program) };
  }
  if (ts.isPropertyAssignment(parent) && parent.name === node && keyOf(node) !== undefined) {
    return { value: parent.initializer, type: typeNodeOf(propertyAt(parent, checker), program) };
  }
  if (ts.isShorthandPropertyAssignment(parent)) {
    return { value: node, type: typeNodeOf(propertyAt(parent, checker), program) };
  }
  const index = ts.isCallOrNewExpression(parent) ? (parent.arguments ?? []).indexOf(node) : -1;
  if (index >= 0 && isTypedContainerCall(parent, checker, program)) {
    return { value: node, type: checker.getContextualType(node), isByName: true };
  }
  const parameter = index < 0 ? undefined : checker.getResolvedSignature(parent)?.parameters[index];
  return { value: node, type: typeNodeOf(parameter, program) };
}

// The same for the array or conditional around a node.
function annotationOfParent(node, checker, program) {
  const { parent } = node;
  const hasName = ts.isVariableDeclaration(parent) || ts.isPropertyDeclaration(parent) || ts.isPropertyAssignment(parent);
  return annotationOf(hasName && parent.initializer === node ? parent.name : node, checker, program);
}

// `names.push(issue.id)`, where `names` has a declared type.
function isTypedContainerCall(call, checker, program) {
  return isCalled(call, /^(?:push|unshift|set|add|get|has)$/) && isDeclared(call.expression.expression, checker, program);
}

var isTypedContainerGet = (node, checker, program) => isCalled(node, /^get$/) && isDeclared(node.expression.expression, checker, program);

function isDeclared(container, checker, program) {
  const at = unwrapped(container);
  const declaration = checker.getSymbolAtLocation(ts.isPropertyAccessExpression(at) ? at.name : at)?.valueDeclaration;
  if (declaration?.getSourceFile() !== program.file) return false;
  const { type, initializer } = declaration;
  if (type !== undefined) return true;
  return initializer !== undefined && (ts.isAsExpression(initializer) || initializer.typeArguments !== undefined);
}

// The property of the contextual type, or of one of its members, that an assignment is for.
function propertyAt(assignment, checker) {
  const type = checker.getContextualType(assignment.parent);
  return type && nonNullishParts(type).map((each) => propertyOf(each, keyOf(assignment.name))).find((each) => each !== undefined);
}

// The type annotation of a user-defined variable, parameter or property.
function typeNodeOf(symbol, program) {
  const declaration = symbol?.valueDeclaration;
  if (declaration?.getSourceFile() !== program.file || declaration.dotDotDotToken) return undefined;
  return declaration.type;
}

var isLiteral = (type) => membersOf(type).every((each) => each.isLiteral());
var nonNullishParts = (type) => membersOf(type).filter((each) => !(each.flags & NULLISH));

/** Whether a value contradicts its annotation. Objects and arrays are compared by kind, and by the properties that the program
 * reads. */
function contradictsAnnotation(node, checker, program) {
  if (!program.isTypeScript) return false;
  const { value, type, isByName } = annotationOf(node, checker, program);
  if (!value || !type) return false;
  const source = checker.getTypeAtLocation(value), target = isByName ? type : checker.getTypeFromTypeNode(type);
  const wanted = nonNullishParts(target);
  if (!wanted.length || !nonNullishParts(source).length) return false;
  const isMisspelt = ts.isStringLiteralLike(value) && wanted.every(isLiteral); // `.get("higher")`, of "high" and "low"
  const isSure = isMisspelt || isPromise(source) || comesFromTool(value, checker, program);
  if (!isSure || isMisinferred(value, checker, program)) return false;
  if (!wanted.every((each) => each.flags & PRIMITIVE)) return contradicts(source, target, checker, program);
  return !new Assignability(checker, program).mayAssign(source, target);
}

// ---- assignability diagnostics: certain mismatches, or more than the compiler can know

// Codes: not assignable (argument, property), wrong number of arguments.
var ASSIGNABILITY_CODES = new Set([2345, 2554, 2555, 2769, 2559, 2560, 2322, 2353, 2561, 2739, 2740, 2741, 2820]);

// Wrong number of arguments: reported at the call, the others at the argument.
var ARITY_CODES = new Set([2554, 2555]);
// Incompatible type.
var TYPE_CODES = new Set([2322, 2345, 2820, 2739, 2740, 2741, 2559, 2769]);
// Excess property, or no property in common.
var EXCESS_CODES = new Set([2353, 2561, 2559, 2560]);

function isArgumentOf(call, node) {
  return (call.arguments ?? []).some((each) => each.pos <= node.pos && each.end >= node.end);
}

// The callee that a value is passed to: "stub", "program" or "library"; undefined if there is none.
function receiverOf(node, code, checker) {
  let isInside = false; // of a function, such as a callback to a generic function
  for (let at = ARITY_CODES.has(code) ? node : node.parent; at; at = at.parent) {
    if (ts.isFunctionLike(at) && at !== node) isInside = true;
    if (!ts.isCallOrNewExpression(at) || !(at === node || isArgumentOf(at, node) || at.expression === node || at.expression.name === node)) continue;
    const file = checker.getResolvedSignature(at)?.declaration?.getSourceFile();
    const whose = file === undefined || libraryFiles.has(file.fileName) ? "library" : isStub(file) ? "stub" : "program";
    if (whose === "library" && isInside) {
      isInside = false;
      continue;
    }
    return whose;
  }
  return undefined;
}

// The value at a diagnostic's node: for a property, its initialiser.
function valueAt(node) {
  const { parent } = node;
  if (ts.isPropertyAssignment(parent) && parent.name === node) return parent.initializer;
  return ts.isExpression(node) || ts.isComputedPropertyName(node) ? node : undefined;
}

// Whether a value may be valid at run time. A literal null or undefined is valid where the target is optional.
function mayBeAssignable(node, code, checker, program) {
  const value = valueAt(node), { parent } = node, property = ts.isGetAccessor(parent) ? propertyAt(parent, checker) : undefined;
  const source = value && checker.getTypeAtLocation(value);
  const target = property ? checker.getTypeOfSymbol(property) : value && checker.getContextualType(value);
  if (!source || !target) return false;
  if (isNullish(value)) return checker.isTypeAssignableTo(checker.getUndefinedType(), target);
  if (EXCESS_CODES.has(code) && source.flags & ts.TypeFlags.Object) return source.getStringIndexType() !== undefined;
  return new Assignability(checker, program).mayAssign(source, target);
}

/** The call around a node. */
var callOf = (node) => ts.findAncestor(node, ts.isCallOrNewExpression);

// Whether a type is misinferred: it comes, perhaps through a variable, from a call that the compiler misunderstood, or from a
// variable of which it lost track.
function isMisinferred(node, checker, { misinferredCalls, misinferredVariables }) {
  const holds = (within) => misinferredCalls.some((call) => call.pos >= within.pos && call.end <= within.end);
  if (holds(node)) return true;
  while (!ts.isIdentifier(node)) {
    const inner = node.expression;
    if (inner === undefined) return false;
    node = inner;
  }
  const symbol = checker.getSymbolAtLocation(node), declaration = symbol?.valueDeclaration;
  if (misinferredVariables.has(symbol)) return true;
  return declaration !== undefined && ts.isVariableDeclaration(declaration) && declaration.initializer !== undefined &&
    holds(declaration.initializer);
}

// The symbol of an identifier passed as an argument or as a property's value.
function argumentSymbol(node, checker) {
  const { parent } = node;
  if (ts.isShorthandPropertyAssignment(parent)) return checker.getShorthandAssignmentValueSymbol(parent);
  const isValue = (ts.isPropertyAssignment(parent) && parent.initializer === node) ||
    (ts.isCallExpression(parent) && parent.expression !== node);
  return isValue ? checker.getSymbolAtLocation(node) : undefined;
}

// An argument that a user-defined function forwards to a tool unchanged: `(id: number) => get_issue({ id })`.
function isForwardedToTool(node, checker, program) {
  const call = callOf(node.parent), index = call?.arguments?.indexOf(node) ?? -1;
  const parameter = index < 0 ? undefined : checker.getResolvedSignature(call)?.parameters[index];
  const declaration = parameter?.valueDeclaration;
  if (!declaration || !ts.isParameter(declaration) || declaration.dotDotDotToken || !declaration.parent.body) return false;
  const source = checker.getTypeAtLocation(node), assignability = new Assignability(checker, program);
  const isRefusedAt = (at) => {
    if (argumentSymbol(at, checker) !== parameter || receiverOf(at, 2345, checker) !== "stub") return false;
    const target = checker.getContextualType(at);
    return target !== undefined && !assignability.mayAssign(source, target);
  };
  const visit = (at) => (ts.isIdentifier(at) && isRefusedAt(at)) || ts.forEachChild(at, visit) || false;
  return visit(declaration.parent.body);
}

/** Whether a mismatch is certain: a tool will refuse the value, or it contradicts its annotation. Other user-defined and
 * built-in functions may take it. */
function isCertainMismatch(diagnostic, node, checker, program) {
  const { code } = diagnostic, message = ts.flattenDiagnosticMessageText(diagnostic.messageText, "\n");
  if (/type 'never'|type 'Handle'|'Handle' is not assignable/.test(message)) return false;
  const whose = receiverOf(node, code, checker);
  if (whose === "stub") return !mayBeAssignable(node, code, checker, program);
  if (TYPE_CODES.has(code) && contradictsAnnotation(node, checker, program)) return true;
  if (whose === "library") return isUselessToBuiltin(node, checker, program) || isNeverIncluded(node, checker, program);
  return whose === "program" && code === 2345 && isForwardedToTool(node, checker, program);
}
