// Tests of what is never there. A program may ask for a property that a result doesn't have: whether there is an error, or
// another page. But where such a test decides what becomes of the result's other parts, it always decides the same.

var IS_EXIT = new Set([SyntaxKind.ThrowStatement, SyntaxKind.ContinueStatement]);

// The only statement of a branch.
function onlyStatement(node) {
  return ts.isBlock(node) ? node.statements[0] : node;
}

// Whether code reads parts of an object that are there, and not the one that it was tested for.
function readsOthers(node, object, name, checker) {
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

/** Whether a test of a property that isn't there decides about something else. */
function isIdleTest(access, checker) {
  const object = access.expression.getText(), name = keyRead(access);
  const reads = (node) => node !== undefined && readsOthers(node, object, name, checker);
  let at = wholeOf(access), isNegated = false;
  const { parent } = at;
  if (ts.isBinaryExpression(parent) && IS_STRICT.has(parent.operatorToken.kind)) {
    return true; // with null, which it never is
  }
  const isBare = isCondition(at, parent);
  for (; ; at = at.parent) {
    const up = at.parent;
    if (ts.isParenthesizedExpression(up)) continue;
    if (ts.isPrefixUnaryExpression(up) && up.operator === SyntaxKind.ExclamationToken) {
      isNegated = !isNegated;
      continue;
    }
    if (isAnd(up)) {
      if (up.left === at && !isNegated && reads(up.right)) return true;
      continue;
    }
    if (isOr(up)) {
      if (up.left === at && isNegated && reads(up.right)) return true;
      continue;
    }
    if (ts.isIfStatement(up) && up.expression === at) {
      if (!isNegated) return reads(up.thenStatement);
      return ts.isPrefixUnaryExpression(at) && IS_EXIT.has(onlyStatement(up.thenStatement)?.kind);
    }
    if (ts.isConditionalExpression(up) && up.condition === at) {
      if (isBare && isLiteralValue(up.whenTrue) && isLiteralValue(up.whenFalse)) return true;
      return reads(isNegated ? up.whenFalse : up.whenTrue);
    }
    return !isNegated && isPicked(at, up); // `.filter((row) => row.visible)`; without `hidden`, all stay that should
  }
}

function isPicked(node, parent) {
  const owner = ts.isArrowFunction(parent) && parent.body === node ? parent : undefined;
  return owner !== undefined && ts.isCallExpression(owner.parent) && isCalled(owner.parent, GOES_THROUGH);
}
