// Properties missing from a type: whether a run fails for lack of one, or the program adds it or only tests for it.

// The owner of a property read: its expression, if there is one, and its type.
function ownerOf(node, checker) {
  const { parent } = node, pattern = parent.parent;
  const of = (expression) => ({ expression, type: checker.getTypeAtLocation(expression) });
  if (ts.isPropertyAccessExpression(parent) || ts.isElementAccessExpression(parent)) return of(parent.expression);
  if (ts.isBindingElement(parent)) return { expression: pattern.parent.initializer, type: checker.getTypeAtLocation(pattern) };
  const isTakenOut = pattern && ts.isObjectLiteralExpression(pattern) && isAssigned(pattern); // `({ title } = issue)`
  return isTakenOut ? of(pattern.parent.right) : {};
}

function isMissingProperty(diagnostic, node, message, checker, program) {
  if (/on type '(?:never|\{\})'/.test(message)) return false;
  const name = keyOf(node);
  if (ts.isPropertyAccessExpression(node.parent) && isAssigned(node.parent)) return false;
  const access = accessByKey(node);
  if (access !== undefined && !isLiteralKey(access.argumentExpression)) return false;
  const { expression, type } = ownerOf(node, checker);
  if (type === undefined) return true;
  const isWrongName = isMisspelt(diagnostic, node, type, checker);
  if (name !== undefined && isAddedOrTested(node, type, checker, program, isWrongName)) return false;
  if (access !== undefined && isUserDefined(type, program)) return false;
  if (type.isUnion() && type.types.some((each) => propertyOf(each, name))) return false;
  if (expression !== undefined && (isStaleNarrowing(expression, type, checker, program) || isMisinferred(expression, checker, program))) return false;
  const isOfVariable = expression !== undefined && program.reassigned.has(rootOf(expression).text);
  if (hasUnknownKeys(type, program) || (isOfVariable && isUserDefined(type, program))) return false;
  return !isOptionalRead(node, checker, isWrongName) && (isWrongName || !isNarrowedToOtherShape(access ?? node.parent, checker));
}

// A near miss of an existing name is a misspelling, even in a presence test.
function isMisspelt({ code }, node, type, checker) {
  const key = keyOf(node);
  return code === 2551 || (key !== undefined && checker.getSuggestedSymbolForNonexistentProperty(key, type) !== undefined);
}

// Whether the program handles a missing property: `if (r.error)`, `const { more = false } = r`, `r.issues ?? r.items`,
// `r["next"]?.page`.
function isOptionalRead(node, checker, isMisspelt) {
  const { parent } = node;
  if (ts.isBindingElement(parent)) return !isMisspelt && parent.initializer !== undefined;
  if (ts.isShorthandPropertyAssignment(parent)) return !isMisspelt && parent.objectAssignmentInitializer !== undefined;
  const access = accessByKey(node) ?? parent;
  if (!ts.isPropertyAccessExpression(access) && !ts.isElementAccessExpression(access)) return false;
  if (isExplicitPresenceTest(access)) return true;
  if (isPresenceTest(access)) return !isMisspelt && !isDeadCondition(access, checker);
  if (ts.isElementAccessExpression(access) && wholeOf(access) !== access) return true;
  const lacks = (each) => each.flags !== undefined && readsMissingProperty(each, checker);
  return hasFallback(access, checker, lacks);
}

// The presence tests in a condition, each with whether it succeeds if the condition holds (or not): [{object, key, isThere}].
function presenceTestsIn(condition, holds, checker, steps = 0) {
  const at = unwrapped(condition), again = (each, isTrue = holds) => presenceTestsIn(each, isTrue, checker, steps + 1);
  if (steps > MAX_STEPS) return [];
  if (ts.isPrefixUnaryExpression(at) && at.operator === SyntaxKind.ExclamationToken) return again(at.operand, !holds);
  if (isAnd(at) || isOr(at)) return [...again(at.left), ...again(at.right)];
  if (ts.isCallExpression(at) && PRESENCE_CALLS.test(at.expression.getText())) return at.arguments.flatMap((each) => again(each));
  if (ts.isBinaryExpression(at)) {
    const { left, right, operatorToken: { kind } } = at;
    if (kind === SyntaxKind.InKeyword) return ts.isStringLiteralLike(left) ? [presenceTest(right, left.text, holds)] : [];
    const isEqual = kind === SyntaxKind.EqualsEqualsToken || kind === SyntaxKind.EqualsEqualsEqualsToken;
    return isNullish(right) ? again(left, holds !== isEqual) : [];
  }
  if (ts.isAccessExpression(at)) return [presenceTest(at.expression, keyRead(at), holds), ...again(at.expression)];
  const declaration = ts.isIdentifier(at) ? checker.getSymbolAtLocation(at)?.valueDeclaration : undefined;
  return declaration && ts.isVariableDeclaration(declaration) && declaration.initializer ? again(declaration.initializer) : [];
}

var presenceTest = (owner, key, isThere) => ({ object: objectText(owner), key, isThere });
var objectText = (node) => node.getText().replaceAll("?.", ".");

// The presence tests that dominate a child of a node.
function dominatingTests(node, child, checker) {
  if (ts.isIfStatement(node) && node.expression !== child) return presenceTestsIn(node.expression, node.thenStatement === child, checker);
  if (ts.isConditionalExpression(node) && node.condition !== child) return presenceTestsIn(node.condition, node.whenTrue === child, checker);
  if ((isAnd(node) || isOr(node)) && node.right === child) return presenceTestsIn(node.left, isAnd(node), checker);
  const before = (node.statements ?? []).filter((each) => each.end <= child.pos && ts.isIfStatement(each) && alwaysExits(each.thenStatement));
  return before.flatMap((each) => presenceTestsIn(each.expression, false, checker));
}

// `if (…) return found;`: the code after it runs only if the condition fails.
var alwaysExits = (branch) => IS_EXIT.has(firstStatement(branch)?.kind) || ts.isReturnStatement(firstStatement(branch) ?? branch);

/** Whether a read is dominated by a test that the object lacks a property which its stub requires: the program knows a shape
 * that the stub doesn't. `a.rows || JSON.parse(a.content[0].text)`. Of two unknown shapes, one may be an array:
 * `a.content ? a.content[0] : a[0]`, `a.length ? a[0] : a.rows[0]`. */
function isNarrowedToOtherShape(access, checker) {
  if (!ts.isAccessExpression(access)) return false;
  const object = objectText(access.expression), type = checker.getTypeAtLocation(access.expression);
  const isSurelyThere = (key) => {
    const property = type.getProperty(key), flags = property ? typeFlagsOf(checker.getTypeOfSymbol(property)) : NULLISH;
    return !(flags & (NULLISH | TypeFlags.BooleanLike | TypeFlags.NumberLike));
  };
  for (let at = access; at.parent; at = at.parent) {
    const choice = ts.isConditionalExpression(at.parent) && ts.isElementAccessExpression(access) ? at.parent : undefined;
    const isOther = ({ object: tested, key, isThere }) => tested === object && key !== undefined &&
      (isThere ? choice && readsOtherProperties(choice.whenFalse, object, undefined, checker) : choice || isSurelyThere(key));
    if (dominatingTests(at.parent, at, checker).some(isOther)) return true;
  }
  return false;
}

// Whether an access chain reads a missing property, whose type is `any` and which has no symbol.
function readsMissingProperty(node, checker) {
  let at = node;
  for (; ts.isPropertyAccessExpression(at) || ts.isCallExpression(at) || ts.isElementAccessExpression(at); at = at.expression) {
    if (ts.isPropertyAccessExpression(at) && checker.getSymbolAtLocation(at.name) === undefined) return true;
  }
  return false;
}

// Whether the program assigns the property, or tests for it elsewhere, on an object that may be the same.
function isAddedOrTested(node, type, checker, program, isMisspelt = false) {
  const key = keyOf(node), { parent } = node;
  const tested = (program.tested.get(key) ?? []).filter((each) => each !== parent.expression); // checked by itself
  const owners = [...(program.assigned.get(key) ?? []), ...(program.probed.get(key) ?? []), ...(isMisspelt ? [] : tested)];
  return owners.some((each) => each === undefined || mayAlias(each, type, checker, program));
}

// Whether an expression may denote an object of a type. A user-defined literal is no tool's result; a declared one may be.
function mayAlias(owner, type, checker, program) {
  const other = checker.getTypeAtLocation(owner);
  if (other.flags & OPAQUE) return !isProgramLiteral(rootOf(owner), checker);
  return membersOf(other).some((one) => {
    if (isUserDefined(one, program)) return isUserDefined(type, program) || !isConstructedHere(one.symbol.declarations[0]);
    return membersOf(type).some((each) => each === one || (each.symbol !== undefined && each.symbol === one.symbol));
  });
}

var isConstructedHere = (declaration) => ts.isObjectLiteralExpression(declaration) || ts.isClassLike(declaration);

// `const totals = {}; totals[key].count += 1`
function isProgramLiteral(root, checker) {
  const declaration = ts.isIdentifier(root) ? checker.getSymbolAtLocation(root)?.valueDeclaration : undefined;
  return declaration !== undefined && ts.isVariableDeclaration(declaration) && declaration.initializer !== undefined &&
    ts.isObjectLiteralExpression(declaration.initializer);
}

// `signs[day.sky]`: diagnostics are reported at the whole or at its key.
function accessByKey(node) {
  if (ts.isElementAccessExpression(node)) return node;
  return ts.isElementAccessExpression(node.parent) && node.parent.argumentExpression === node ? node.parent : undefined;
}

// Other keys are computed at run time.
var isLiteralKey = (key) => ts.isStringLiteralLike(key) || ts.isNumericLiteral(key);

var isUserDefined = (type, program) => type.symbol?.declarations?.[0]?.getSourceFile() === program.file;

// Whether a user-defined object may have unknown properties: always in JavaScript; else by computed keys, or if only its
// type is declared.
function hasUnknownKeys(type, program) {
  if (!isUserDefined(type, program)) return (ts.getObjectFlags(type) & ts.ObjectFlags.Mapped) !== 0;
  const declaration = type.symbol.declarations[0];
  return program.hasComputedKeys || !program.isTypeScript || ts.isInterfaceDeclaration(declaration) || ts.isTypeLiteralNode(declaration);
}

// `result[0]` of an object whose stub declares no such key.
function isMissingIndex(node, checker, program) {
  const access = accessByKey(node);
  if (access === undefined || isAssigned(access)) return false;
  const key = access.argumentExpression, owner = checker.getTypeAtLocation(access.expression);
  if (!isLiteralKey(key)) return false;
  if (isAddedOrTested(key, owner, checker, program) || isOptionalRead(key, checker, false)) return false;
  if (isMisinferred(access.expression, checker, program) || isNarrowedToOtherShape(access, checker)) return false;
  return !owner.isUnion() && isStub(owner.symbol?.declarations?.[0]?.getSourceFile());
}

// ---- dead conditions: tests of properties that no result has, always false. Programs may test for an error or another page;
// but a test that guards the result's other properties always takes the same branch.

var IS_EXIT = new Set([SyntaxKind.ThrowStatement, SyntaxKind.ContinueStatement]);

// A branch's first statement.
function firstStatement(node) {
  return ts.isBlock(node) ? node.statements[0] : node;
}

// Whether code reads other properties of an object, and not the one tested.
function readsOtherProperties(node, object, name, checker) {
  let others = false, itself = false;
  const visit = (at) => {
    const key = ts.isAccessExpression(at) && at.expression.getText() === object ? keyRead(at) : undefined;
    if (key === name) itself ||= key !== undefined;
    else if (key !== undefined && checker.getPropertyOfType(checker.getTypeAtLocation(at.expression), key)) others = true;
    ts.forEachChild(at, visit);
  };
  visit(node);
  return others && !itself;
}

var isLiteralValue = (node) => ts.isStringLiteralLike(node) || ts.isNumericLiteral(node) ||
  node.kind === SyntaxKind.TrueKeyword || node.kind === SyntaxKind.FalseKeyword;

/** Whether a test of a missing property guards something else. */
function isDeadCondition(access, checker) {
  const object = access.expression.getText(), name = keyRead(access);
  const reads = (node) => node !== undefined && readsOtherProperties(node, object, name, checker);
  let at = wholeOf(access), isNegated = false;
  const { parent } = at;
  if (ts.isBinaryExpression(parent) && IS_STRICT.has(parent.operatorToken.kind)) return true; // a missing property is never null
  const isBare = isCondition(at, parent);
  for (; ; at = at.parent) {
    const up = at.parent;
    if (ts.isParenthesizedExpression(up)) continue;
    if (ts.isPrefixUnaryExpression(up) && up.operator === SyntaxKind.ExclamationToken) {
      isNegated = !isNegated;
      continue;
    }
    if (isAnd(up) || isOr(up)) {
      if (up.left === at && isNegated === isOr(up) && reads(up.right)) return true;
      continue;
    }
    if (ts.isIfStatement(up) && up.expression === at) {
      if (!isNegated) return reads(up.thenStatement);
      return ts.isPrefixUnaryExpression(at) && IS_EXIT.has(firstStatement(up.thenStatement)?.kind);
    }
    if (ts.isConditionalExpression(up) && up.condition === at) {
      if (isBare && isLiteralValue(up.whenTrue) && isLiteralValue(up.whenFalse)) return true;
      return reads(isNegated ? up.whenFalse : up.whenTrue);
    }
    return !isNegated && isCallbackResult(at, up); // `.filter((row) => row.visible)`; a negated `hidden` keeps all rows
  }
}

function isCallbackResult(node, parent) {
  const owner = ts.isArrowFunction(parent) && parent.body === node ? parent : undefined;
  return owner !== undefined && ts.isCallExpression(owner.parent) && isCalled(owner.parent, ITERATING);
}
