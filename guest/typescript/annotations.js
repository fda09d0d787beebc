// Where a tool's result contradicts what the author wrote down of it: `const name: string = get_issue({ id: 1 }).id`.
// The run may not even notice. But whoever wrote that believes something of the tool that is not so.

// A value that is put into a place with a type, by the node that is complained about: the value, and the type's node.
function annotated(node, checker, program) {
  const { parent } = node;
  if (ts.isReturnStatement(node) || ts.isReturnStatement(parent) || (ts.isArrowFunction(parent) && parent.body === node)) {
    return { value: ts.isReturnStatement(node) ? node.expression : node, type: functionOf(node)?.type };
  }
  if ((ts.isVariableDeclaration(parent) || ts.isPropertyDeclaration(parent)) && parent.name === node) {
    return { value: parent.initializer, type: parent.type };
  }
  if (ts.isBinaryExpression(parent) && parent.left === node && isAssigned(node)) {
    return { value: parent.right, type: typeNodeOf(checker.getSymbolAtLocation(node), program) };
  }
  if (ts.isPropertyAssignment(parent) && parent.name === node) {
    const property = checker.getContextualType(parent.parent)?.getProperty(node.text);
    return { value: parent.initializer, type: typeNodeOf(property, program) };
  }
  const index = ts.isCallExpression(parent) || ts.isNewExpression(parent) ? (parent.arguments ?? []).indexOf(node) : -1;
  const parameter = index < 0 ? undefined : checker.getResolvedSignature(parent)?.parameters[index];
  return { value: node, type: typeNodeOf(parameter, program) };
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

// What a stub says of a value: it is a tool's result, or a part of one.
function isToldByStub(value, checker) {
  while (ts.isParenthesizedExpression(value) || ts.isNonNullExpression(value) || ts.isAwaitExpression(value)) value = value.expression;
  const place = ts.isCallExpression(value) ? value.expression : value;
  const name = ts.isPropertyAccessExpression(place) ? place.name : place;
  let symbol = checker.getSymbolAtLocation(name);
  if (symbol && symbol.flags & ts.SymbolFlags.Alias) symbol = checker.getAliasedSymbol(symbol);
  return isStub(symbol?.declarations?.[0]?.getSourceFile());
}

var isLiteral = (type) => (type.isUnion() ? type.types : [type]).every((each) => each.isLiteral());
var partsOf = (type) => (type.isUnion() ? type.types : [type]).filter((each) => !(each.flags & NOTHING));

/** Whether a value can't be what the author says that it is: texts, numbers and truth values, and nothing larger. */
function isContradiction(node, checker, program) {
  if (!program.isTypeScript) return false;
  const { value, type } = annotated(node, checker, program);
  if (!value || !type) return false;
  const source = checker.getTypeAtLocation(value), target = checker.getTypeFromTypeNode(type);
  const wanted = partsOf(target);
  if (!wanted.length || !partsOf(source).length || !wanted.every((each) => each.flags & PRIMITIVE)) return false;
  const isMisspelt = ts.isStringLiteralLike(value) && wanted.every(isLiteral); // `.get("higher")`, of "high" and "low"
  if (!isMisspelt && (!isToldByStub(value, checker) || isGuess(value, checker, program))) return false;
  return !new Fitting(checker, program).mayFit(source, target);
}
