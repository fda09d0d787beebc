// Properties that a value doesn't have: whether a run misses them, or the program adds or only looks for them.

// Where a property is read from: the expression, if there is one, and its type.
function ownerOf(node, checker) {
  const { parent } = node, pattern = parent.parent;
  const of = (expression) => ({ expression, type: checker.getTypeAtLocation(expression) });
  if (ts.isPropertyAccessExpression(parent) || ts.isElementAccessExpression(parent)) return of(parent.expression);
  if (ts.isBindingElement(parent)) return { expression: pattern.parent.initializer, type: checker.getTypeAtLocation(pattern) };
  const isTakenOut = pattern && ts.isObjectLiteralExpression(pattern) && isAssigned(pattern); // `({ title } = issue)`
  return isTakenOut ? of(pattern.parent.right) : {};
}

function isSureProperty(diagnostic, node, message, checker, program) {
  if (/on type '(?:never|\{\})'/.test(message)) return false;
  const name = keyOf(node);
  if (ts.isPropertyAccessExpression(node.parent) && isAssigned(node.parent)) return false;
  const access = accessByKey(node);
  if (access !== undefined && !isWrittenOut(access.argumentExpression)) return false;
  const { expression, type } = ownerOf(node, checker);
  if (type === undefined) return true;
  const isWrongName = isMisspelt(diagnostic, node, type, checker);
  if (name !== undefined && isAddedOrAskedFor(node, type, checker, program, isWrongName)) return false;
  if (access !== undefined && isOfProgram(type, program)) return false;
  if (type.isUnion() && type.types.some((each) => propertyOf(each, name))) return false;
  if (expression !== undefined && (isStale(expression, type, checker, program) || isGuess(expression, checker, program))) return false;
  const isOfVariable = expression !== undefined && program.changed.has(rootOf(expression).text);
  if (isOpen(type, program) || (isOfVariable && isOfProgram(type, program))) return false;
  return !isLookedFor(node, checker, isWrongName) && (isWrongName || !isOfOtherForm(access ?? node.parent, checker));
}

// A name that is nearly one that is there was meant to be that one, however careful its author is.
function isMisspelt({ code }, node, type, checker) {
  const key = keyOf(node);
  return code === 2551 || (key !== undefined && checker.getSuggestedSymbolForNonexistentProperty(key, type) !== undefined);
}

// Whether the program does without a property, if it isn't there: `if (r.error)`, `const { more = false } = r`,
// `r.issues ?? r.items`, `r["next"]?.page`.
function isLookedFor(node, checker, isMisspelt) {
  const { parent } = node;
  if (ts.isBindingElement(parent)) return !isMisspelt && parent.initializer !== undefined;
  if (ts.isShorthandPropertyAssignment(parent)) return !isMisspelt && parent.objectAssignmentInitializer !== undefined;
  const access = accessByKey(node) ?? parent;
  if (!ts.isPropertyAccessExpression(access) && !ts.isElementAccessExpression(access)) return false;
  if (isAskedOutright(access)) return true;
  if (isTested(access)) return !isMisspelt && !isIdleTest(access, checker);
  if (ts.isElementAccessExpression(access) && wholeOf(access) !== access) return true;
  const lacks = (each) => each.flags !== undefined && isErrorRead(each, checker);
  return isOneOfSeveral(access, checker, lacks);
}

// The parts of objects that a condition asks for, with whether they are there if it holds, or doesn't: [{object, key, isThere}].
function testedParts(condition, holds, checker, steps = 0) {
  const at = unwrapped(condition), again = (each, isTrue = holds) => testedParts(each, isTrue, checker, steps + 1);
  if (steps > MOST_STEPS) return [];
  if (ts.isPrefixUnaryExpression(at) && at.operator === SyntaxKind.ExclamationToken) return again(at.operand, !holds);
  if (isAnd(at) || isOr(at)) return [...again(at.left), ...again(at.right)];
  if (ts.isCallExpression(at) && ASKS.test(at.expression.getText())) return at.arguments.flatMap((each) => again(each));
  if (ts.isBinaryExpression(at)) {
    const { left, right, operatorToken: { kind } } = at;
    if (kind === SyntaxKind.InKeyword) return ts.isStringLiteralLike(left) ? [askedPart(right, left.text, holds)] : [];
    const isEqual = kind === SyntaxKind.EqualsEqualsToken || kind === SyntaxKind.EqualsEqualsEqualsToken;
    return isNothing(right) ? again(left, holds !== isEqual) : [];
  }
  if (ts.isAccessExpression(at)) return [askedPart(at.expression, keyRead(at), holds), ...again(at.expression)];
  const declaration = ts.isIdentifier(at) ? checker.getSymbolAtLocation(at)?.valueDeclaration : undefined;
  return declaration && ts.isVariableDeclaration(declaration) && declaration.initializer ? again(declaration.initializer) : [];
}

var askedPart = (owner, key, isThere) => ({ object: objectText(owner), key, isThere });
var objectText = (node) => node.getText().replaceAll("?.", ".");

// The parts that are asked for on the way to a child of a node.
function partsAskedBefore(node, child, checker) {
  if (ts.isIfStatement(node) && node.expression !== child) return testedParts(node.expression, node.thenStatement === child, checker);
  if (ts.isConditionalExpression(node) && node.condition !== child) return testedParts(node.condition, node.whenTrue === child, checker);
  if ((isAnd(node) || isOr(node)) && node.right === child) return testedParts(node.left, isAnd(node), checker);
  const before = (node.statements ?? []).filter((each) => each.end <= child.pos && ts.isIfStatement(each) && isLeft(each.thenStatement));
  return before.flatMap((each) => testedParts(each.expression, false, checker));
}

// `if (…) return found;`: what follows is only come to if the condition doesn't hold.
var isLeft = (branch) => IS_EXIT.has(onlyStatement(branch)?.kind) || ts.isReturnStatement(onlyStatement(branch) ?? branch);

/** Whether a part of an object is only read where the program has found that the object lacks what it has by its stub: it then
 * has another form, which the program knows and the stub doesn't. `a.rows || JSON.parse(a.content[0].text)`. Of two forms that it
 * has neither of, one may be a list: `a.content ? a.content[0] : a[0]`, `a.length ? a[0] : a.rows[0]`. */
function isOfOtherForm(access, checker) {
  if (!ts.isAccessExpression(access)) return false;
  const object = objectText(access.expression), type = checker.getTypeAtLocation(access.expression);
  const isSurelyThere = (key) => {
    const property = type.getProperty(key), flags = property ? typeFlagsOf(checker.getTypeOfSymbol(property)) : NOTHING;
    return !(flags & (NOTHING | TypeFlags.BooleanLike | TypeFlags.NumberLike));
  };
  for (let at = access; at.parent; at = at.parent) {
    const choice = ts.isConditionalExpression(at.parent) && ts.isElementAccessExpression(access) ? at.parent : undefined;
    const isOther = ({ object: asked, key, isThere }) => asked === object && key !== undefined &&
      (isThere ? choice && readsOthers(choice.whenFalse, object, undefined, checker) : choice || isSurelyThere(key));
    if (partsAskedBefore(at.parent, at, checker).some(isOther)) return true;
  }
  return false;
}

// Whether a property is read that is not there: its type is then any, and it is no property of its owner.
function isErrorRead(node, checker) {
  let at = node;
  for (; ts.isPropertyAccessExpression(at) || ts.isCallExpression(at) || ts.isElementAccessExpression(at); at = at.expression) {
    if (ts.isPropertyAccessExpression(at) && checker.getSymbolAtLocation(at.name) === undefined) return true;
  }
  return false;
}

// A property that the program sets itself, or asks for elsewhere, on what may be the same object.
function isAddedOrAskedFor(node, type, checker, program, isMisspelt = false) {
  const key = keyOf(node), { parent } = node;
  const tested = (program.tested.get(key) ?? []).filter((each) => each !== parent.expression); // that is judged by itself
  const owners = [...(program.assigned.get(key) ?? []), ...(program.asked.get(key) ?? []), ...(isMisspelt ? [] : tested)];
  return owners.some((each) => each === undefined || mayBeSameObject(each, type, checker, program));
}

// An object that the program makes itself is no result of a tool. One that it only declares, or says nothing of, may be one.
function mayBeSameObject(owner, type, checker, program) {
  const other = checker.getTypeAtLocation(owner), all = (each) => (each.isUnion() ? each.types : [each]);
  if (other.flags & KNOWS_NOTHING) return !isMadeByProgram(rootOf(owner), checker);
  return all(other).some((one) => {
    if (isOfProgram(one, program)) return isOfProgram(type, program) || !isWrittenHere(one.symbol.declarations[0]);
    return all(type).some((each) => each === one || (each.symbol !== undefined && each.symbol === one.symbol));
  });
}

var isWrittenHere = (declaration) => ts.isObjectLiteralExpression(declaration) || ts.isClassLike(declaration);

// `const totals = {}; totals[key].count += 1`
function isMadeByProgram(root, checker) {
  const declaration = ts.isIdentifier(root) ? checker.getSymbolAtLocation(root)?.valueDeclaration : undefined;
  return declaration !== undefined && ts.isVariableDeclaration(declaration) && declaration.initializer !== undefined &&
    ts.isObjectLiteralExpression(declaration.initializer);
}

// `signs[day.sky]`, which is complained about as a whole or at its key.
function accessByKey(node) {
  if (ts.isElementAccessExpression(node)) return node;
  return ts.isElementAccessExpression(node.parent) && node.parent.argumentExpression === node ? node.parent : undefined;
}

// Any other key is one of several, of which only the run knows which it is.
var isWrittenOut = (key) => ts.isStringLiteralLike(key) || ts.isNumericLiteral(key);

var isOfProgram = (type, program) => type.symbol?.declarations?.[0]?.getSourceFile() === program.file;

// Objects of the program's own are open: always in JavaScript, else if it sets properties by name or only declared what
// it needs of them.
function isOpen(type, program) {
  if (!isOfProgram(type, program)) return (ts.getObjectFlags(type) & ts.ObjectFlags.Mapped) !== 0;
  const declaration = type.symbol.declarations[0];
  return program.isOpen || !program.isTypeScript || ts.isInterfaceDeclaration(declaration) || ts.isTypeLiteralNode(declaration);
}

// `result[0]` of an object that a stub declares without any such key.
function isSureIndex(node, checker, program) {
  const access = accessByKey(node);
  if (access === undefined || isAssigned(access)) return false;
  const key = access.argumentExpression, owner = checker.getTypeAtLocation(access.expression);
  if (!isWrittenOut(key)) return false;
  if (isAddedOrAskedFor(key, owner, checker, program) || isLookedFor(key, checker, false)) return false;
  if (isGuess(access.expression, checker, program) || isOfOtherForm(access, checker)) return false;
  return !owner.isUnion() && isStub(owner.symbol?.declarations?.[0]?.getSourceFile());
}
