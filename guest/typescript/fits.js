// Where a value does not fit: whether that is sure to go wrong, or only more than the compiler can know.

// Does not fit: an argument, a property, a number of arguments.
var OF_FIT = new Set([2345, 2554, 2555, 2769, 2559, 2560, 2322, 2353, 2561, 2739, 2740, 2741, 2820]);

// How many arguments there are: said of the call itself, the others of what it is given.
var OF_NUMBER = new Set([2554, 2555]);
// Another kind of value than the place has.
var OF_KIND = new Set([2322, 2345, 2820, 2739, 2740, 2741, 2559, 2769]);
// A property that the target does not have, or none that it has.
var OF_EXCESS = new Set([2353, 2561, 2559, 2560]);

function isArgumentOf(call, node) {
  return (call.arguments ?? []).some((each) => each.pos <= node.pos && each.end >= node.end);
}

// Whose function a value is given to: "stub", "program" or "library"; undefined if to none.
function receiver(node, code, checker) {
  let isInside = false; // of a function, such as the callback of a call that takes anything
  for (let at = OF_NUMBER.has(code) ? node : node.parent; at; at = at.parent) {
    if (ts.isFunctionLike(at) && at !== node) isInside = true;
    const isCall = ts.isCallExpression(at) || ts.isNewExpression(at);
    if (!isCall || !(at === node || isArgumentOf(at, node) || at.expression === node || at.expression.name === node)) continue;
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

// The value at a place that is complained about: a property's, where its name is.
function valueAt(node) {
  const { parent } = node;
  if (ts.isPropertyAssignment(parent) && parent.name === node) return parent.initializer;
  return ts.isExpression(node) || ts.isComputedPropertyName(node) ? node : undefined;
}

// Whether a value may be right although the compiler says no. Nothing at all is right where it may be left out.
function mayBeRight(node, code, checker, program) {
  const value = valueAt(node), { parent } = node, property = ts.isGetAccessor(parent) ? propertyAt(parent, checker) : undefined;
  const source = value && checker.getTypeAtLocation(value);
  const target = property ? checker.getTypeOfSymbol(property) : value && checker.getContextualType(value);
  if (!source || !target) return false;
  if (isNothing(value)) return checker.isTypeAssignableTo(checker.getUndefinedType(), target);
  if (OF_EXCESS.has(code) && source.flags & ts.TypeFlags.Object) return source.getStringIndexType() !== undefined;
  return new Fitting(checker, program).mayFit(source, target);
}

/** The call that a value is given to. */
function callOf(node) {
  for (let at = node; at; at = at.parent) if (ts.isCallExpression(at) || ts.isNewExpression(at)) return at;
  return undefined;
}

// What comes out of a call that the compiler did not understand is a guess, also when it went through a variable; and so
// is a variable that something else was assigned to.
function isGuess(node, checker, { misunderstood, reassigned }) {
  const holds = (within) => misunderstood.some((call) => call.pos >= within.pos && call.end <= within.end);
  if (holds(node)) return true;
  while (!ts.isIdentifier(node)) {
    const inner = node.expression;
    if (inner === undefined) return false;
    node = inner;
  }
  const symbol = checker.getSymbolAtLocation(node), declaration = symbol?.valueDeclaration;
  if (reassigned.has(symbol)) return true;
  return declaration !== undefined && ts.isVariableDeclaration(declaration) && declaration.initializer !== undefined &&
    holds(declaration.initializer);
}

// What an identifier that stands for a value is given as: itself, or a property of its name.
function givenSymbol(node, checker) {
  const { parent } = node;
  if (ts.isShorthandPropertyAssignment(parent)) return checker.getShorthandAssignmentValueSymbol(parent);
  const isValue = (ts.isPropertyAssignment(parent) && parent.initializer === node) ||
    (ts.isCallExpression(parent) && parent.expression !== node);
  return isValue ? checker.getSymbolAtLocation(node) : undefined;
}

// An argument that a function of the program's own hands on to a tool as it is: `(id: number) => get_issue({ id })`.
function isRefusedLater(node, checker, program) {
  const call = callOf(node.parent), index = call?.arguments?.indexOf(node) ?? -1;
  const parameter = index < 0 ? undefined : checker.getResolvedSignature(call)?.parameters[index];
  const declaration = parameter?.valueDeclaration;
  if (!declaration || !ts.isParameter(declaration) || declaration.dotDotDotToken || !declaration.parent.body) return false;
  const source = checker.getTypeAtLocation(node), fitting = new Fitting(checker, program);
  const isRefusedAt = (at) => {
    if (givenSymbol(at, checker) !== parameter || receiver(at, 2345, checker) !== "stub") return false;
    const target = checker.getContextualType(at);
    return target !== undefined && !fitting.mayFit(source, target);
  };
  const visit = (at) => (ts.isIdentifier(at) && isRefusedAt(at)) || ts.forEachChild(at, visit) || false;
  return visit(declaration.parent.body);
}

/** Whether a value that does not fit will surely be refused by a tool, or is not what the author says that it is. What
 * else the program or the language takes is open. */
function isSureMisfit(diagnostic, node, checker, program) {
  const { code } = diagnostic, message = ts.flattenDiagnosticMessageText(diagnostic.messageText, "\n");
  if (/type 'never'|type 'Handle'|'Handle' is not assignable/.test(message)) return false;
  const whose = receiver(node, code, checker);
  if (whose === "stub") return !mayBeRight(node, code, checker, program);
  if (OF_KIND.has(code) && isContradiction(node, checker, program)) return true;
  if (whose === "library") return isOfNoUse(node, checker, program) || isNeverIncluded(node, checker, program);
  return whose === "program" && code === 2345 && isRefusedLater(node, checker, program);
}
