// What a stub says of a value: it is a tool's result, or a part of one, also when it went through variables and lists.

// What methods give of a list or a text is as sure as that is.
var SAME_OR_PART = new Set([
  ..."filter slice sort reverse toSorted toReversed concat find findLast at pop shift flat values".split(" "),
  ..."trim toLowerCase toUpperCase toString toFixed join split replace replaceAll padStart padEnd substring".split(" "),
]);

function isToldByStub(node, checker, program, steps = 0) {
  const again = (each) => each !== undefined && steps < MOST_STEPS && isToldByStub(each, checker, program, steps + 1);
  const value = unwrapped(node);
  if (isOfStub(checker.getTypeAtLocation(value), checker)) return true;
  if (ts.isAwaitExpression(value)) return again(value.expression);
  if (ts.isElementAccessExpression(value) || ts.isSpreadElement(value)) return again(value.expression);
  if (ts.isArrayLiteralExpression(value)) return value.elements.length > 0 && value.elements.every(again);
  const place = ts.isCallExpression(value) ? value.expression : value;
  const name = ts.isPropertyAccessExpression(place) ? place.name : place;
  let symbol = checker.getSymbolAtLocation(name);
  if (symbol && symbol.flags & ts.SymbolFlags.Alias) symbol = checker.getAliasedSymbol(symbol);
  const declaration = symbol?.declarations?.[0], file = declaration?.getSourceFile();
  if (isStub(file)) return true;
  if (ts.isCallExpression(value)) {
    if (!ts.isPropertyAccessExpression(place)) return false;
    if (place.name.text === "all" && place.expression.getText() === "Promise") return value.arguments.every(again);
    const [callback] = value.arguments;
    if (/^(?:map|flatMap)$/.test(place.name.text) && callback && ts.isArrowFunction(callback)) return again(callback.body);
    return SAME_OR_PART.has(place.name.text) && again(place.expression);
  }
  if (ts.isPropertyAccessExpression(value)) return place.name.text === "length" && again(place.expression);
  if (!ts.isIdentifier(value) || file !== program.file || program.changed.has(value.text)) return false;
  return isToldDeclaration(declaration, checker, program, again);
}

// An object whose type only a stub declares, or a list or promise of such.
function isOfStub(type, checker) {
  const parts = partsOf(type), isOne = (each) => {
    if (!(each.flags & TypeFlags.Object) || each.getCallSignatures().length) return false;
    if (isPromise(each)) return isOfStub(checker.getAwaitedType(each), checker);
    if (checker.isArrayType(each)) return isOfStub(each.getNumberIndexType(), checker);
    return isStub(each.symbol?.declarations?.[0]?.getSourceFile());
  };
  return parts.length > 0 && parts.every(isOne);
}

function isToldDeclaration(declaration, checker, program, again) {
  if (ts.isBindingElement(declaration)) {
    const pattern = declaration.parent, key = keyOf(declaration.propertyName ?? declaration.name);
    if (declaration.dotDotDotToken) return false;
    if (ts.isArrayBindingPattern(pattern)) return ts.isVariableDeclaration(pattern.parent) && again(pattern.parent.initializer);
    const property = propertyOf(checker.getTypeAtLocation(pattern), key);
    return isStub(property?.declarations?.[0]?.getSourceFile());
  }
  if (declaration.type) return false; // that is what the author says of it
  if (ts.isVariableDeclaration(declaration)) {
    const loop = declaration.parent.parent;
    return again(ts.isForOfStatement(loop) ? loop.expression : declaration.initializer);
  }
  if (!ts.isParameter(declaration) || declaration.dotDotDotToken) return false;
  const owner = declaration.parent, call = owner.parent;
  if (!ts.isCallExpression(call) || call.arguments[0] !== owner) return false;
  const index = owner.parameters.indexOf(declaration);
  const isElement = (isCalled(call, GOES_THROUGH) && index === 0) || (isCalled(call, /^(?:sort|toSorted)$/) && index < 2) ||
    (isCalled(call, /^reduce(?:Right)?$/) && (index === 1 || (index === 0 && call.arguments.length === 1)));
  return isElement && again(call.expression.expression);
}
