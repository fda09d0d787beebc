// Where a tool's result contradicts what the author wrote down of it: `const name: string = get_issue({ id: 1 }).id`.
// The run may not even notice. But whoever wrote that believes something of the tool that is not so.

// A value that is put into a place with a type, by the node that is complained about: the value, and the type's node.
function annotated(node, checker, program) {
  const { parent } = node;
  if (ts.isArrayLiteralExpression(parent) || (ts.isConditionalExpression(parent) && parent.condition !== node)) {
    const { type } = annotatedWhole(parent, checker, program);
    return { value: node, type: type && checker.getContextualType(node), isByName: true };
  }
  if (ts.isReturnStatement(node) || ts.isReturnStatement(parent) || (ts.isArrowFunction(parent) && parent.body === node)) {
    const owner = functionOf(node), value = ts.isReturnStatement(node) ? node.expression : node;
    const isGivenToOwn = owner && !owner.type && ts.isCallExpression(owner.parent) &&
      checker.getResolvedSignature(owner.parent)?.declaration?.getSourceFile() === program.file;
    return isGivenToOwn ? { value, type: value && checker.getContextualType(value), isByName: true } : { value, type: owner?.type };
  }
  if ((ts.isVariableDeclaration(parent) || ts.isPropertyDeclaration(parent)) && parent.name === node) {
    return { value: parent.initializer, type: parent.type };
  }
  if (ts.isBinaryExpression(parent) && parent.left === node && isAssigned(node)) {
    if (ts.isElementAccessExpression(node)) { // `totals[key] = …`, where the author says that the totals are numbers
      const type = isDeclared(node.expression, checker, program) ? checker.getTypeAtLocation(node) : undefined;
      return { value: parent.right, type, isByName: true };
    }
    const symbol = checker.getSymbolAtLocation(node), initial = symbol?.valueDeclaration?.initializer;
    if (initial && isKept(initial, checker, program)) { // `let rate = rates.get(name); if (!rate) rate = …`
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
  const index = ts.isCallExpression(parent) || ts.isNewExpression(parent) ? (parent.arguments ?? []).indexOf(node) : -1;
  if (index >= 0 && isKeptIn(parent, checker, program)) {
    return { value: node, type: checker.getContextualType(node), isByName: true };
  }
  const parameter = index < 0 ? undefined : checker.getResolvedSignature(parent)?.parameters[index];
  return { value: node, type: typeNodeOf(parameter, program) };
}

// The same of a list or a choice that something stands in.
function annotatedWhole(node, checker, program) {
  const { parent } = node;
  const hasName = ts.isVariableDeclaration(parent) || ts.isPropertyDeclaration(parent) || ts.isPropertyAssignment(parent);
  return annotated(hasName && parent.initializer === node ? parent.name : node, checker, program);
}

// `names.push(issue.id)`, where the author says that the names are texts.
function isKeptIn(call, checker, program) {
  return isCalled(call, /^(?:push|unshift|set|add|get|has)$/) && isDeclared(call.expression.expression, checker, program);
}

var isKept = (node, checker, program) => isCalled(node, /^get$/) && isDeclared(node.expression.expression, checker, program);

function isDeclared(container, checker, program) {
  const at = unwrapped(container);
  const declaration = checker.getSymbolAtLocation(ts.isPropertyAccessExpression(at) ? at.name : at)?.valueDeclaration;
  if (declaration?.getSourceFile() !== program.file) return false;
  const { type, initializer } = declaration;
  if (type !== undefined) return true;
  return initializer !== undefined && (ts.isAsExpression(initializer) || initializer.typeArguments !== undefined);
}

// The property that a value of an object is meant to be, which may have one of several forms.
function propertyAt(assignment, checker) {
  const type = checker.getContextualType(assignment.parent);
  return type && partsOf(type).map((each) => propertyOf(each, keyOf(assignment.name))).find((each) => each !== undefined);
}

function functionOf(node) {
  for (let at = node.parent; at; at = at.parent) if (ts.isFunctionLike(at)) return at;
  return undefined;
}

// The type that the program itself gives to a variable, parameter or property.
function typeNodeOf(symbol, program) {
  const declaration = symbol?.valueDeclaration;
  if (declaration?.getSourceFile() !== program.file || declaration.dotDotDotToken) return undefined;
  return declaration.type;
}

var isLiteral = (type) => (type.isUnion() ? type.types : [type]).every((each) => each.isLiteral());
var partsOf = (type) => (type.isUnion() ? type.types : [type]).filter((each) => !(each.flags & NOTHING));

/** Whether a value can't be what the author says that it is. Larger things than texts, numbers and truth values are only
 * compared by their kinds, and by what the program reads of them. */
function isContradiction(node, checker, program) {
  if (!program.isTypeScript) return false;
  const { value, type, isByName } = annotated(node, checker, program);
  if (!value || !type) return false;
  const source = checker.getTypeAtLocation(value), target = isByName ? type : checker.getTypeFromTypeNode(type);
  const wanted = partsOf(target);
  if (!wanted.length || !partsOf(source).length) return false;
  const isMisspelt = ts.isStringLiteralLike(value) && wanted.every(isLiteral); // `.get("higher")`, of "high" and "low"
  const isSure = isMisspelt || isPromise(source) || isToldByStub(value, checker, program);
  if (!isSure || isGuess(value, checker, program)) return false;
  if (!wanted.every((each) => each.flags & PRIMITIVE)) return contradicts(source, target, checker, program);
  return !new Fitting(checker, program).mayFit(source, target);
}
