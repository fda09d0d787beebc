// What the program does to objects: which properties it sets, and which it only asks for.

function isAssigned(node) {
  const parent = node.parent;
  return ts.isBinaryExpression(parent) && parent.left === node &&
    parent.operatorToken.kind >= ts.SyntaxKind.FirstAssignment && parent.operatorToken.kind <= ts.SyntaxKind.LastAssignment;
}

function isNothing(node) {
  if (ts.isIdentifier(node)) return node.text === "undefined";
  return node.kind === ts.SyntaxKind.NullKeyword || ts.isVoidExpression(node);
}

var isCondition = (node, parent) =>
  ((ts.isIfStatement(parent) || ts.isWhileStatement(parent) || ts.isDoStatement(parent)) && parent.expression === node) ||
  ((ts.isConditionalExpression(parent) || ts.isForStatement(parent)) && parent.condition === node);

var ASKS = /^(?:Array\.isArray|Boolean)$/;
var ASKS_BY_NAME = /^(?:Object\.hasOwn|Object\.prototype\.hasOwnProperty\.call|Reflect\.(?:has|get))$|\.hasOwnProperty$/;

// Asked for rather than used: `typeof a.b`, `a.b ?? c`, `c ?? a.b`, `a.b?.c`, `if (c && a.b)`, `a.b === undefined`.
function isAskedForAt(node) {
  const { parent } = node, { SyntaxKind } = ts;
  if (ts.isTypeOfExpression(parent) || isCondition(node, parent)) return true;
  if (ts.isPrefixUnaryExpression(parent)) return parent.operator === SyntaxKind.ExclamationToken;
  const isWrapped = ts.isParenthesizedExpression(parent) || ts.isNonNullExpression(parent) || ts.isAsExpression(parent);
  if (isWrapped) return isAskedForAt(parent);
  if (ts.isCallExpression(parent) && parent.arguments.includes(node)) return ASKS.test(parent.expression.getText());
  if (ts.isPropertyAccessExpression(parent) || ts.isElementAccessExpression(parent) || ts.isCallExpression(parent)) {
    return parent.expression === node && parent.questionDotToken !== undefined;
  }
  if (!ts.isBinaryExpression(parent)) return false;
  const { left, right, operatorToken: { kind } } = parent;
  if (kind === SyntaxKind.QuestionQuestionToken || kind === SyntaxKind.BarBarToken) return true;
  if (kind === SyntaxKind.AmpersandAmpersandToken) return left === node || isAskedForAt(parent);
  return isNothing(left) || isNothing(right);
}

/** Names of properties that the program sets or asks for, and whether it sets some whose names only a run shows. */
function assignments(file) {
  const assigned = new Set(), asked = new Set();
  let isOpen = false;
  const addKeys = (node) => {
    if (ts.isObjectLiteralExpression(node)) for (const each of node.properties) if (each.name?.text) assigned.add(each.name.text);
  };
  const addCall = (called, values) => {
    if (ASKS_BY_NAME.test(called)) for (const each of values) if (ts.isStringLiteralLike(each)) asked.add(each.text);
    if (/^Object\.(?:assign|defineProperty|defineProperties|fromEntries)$/.test(called)) {
      if (!called.endsWith("assign")) isOpen = true;
      values.forEach(addKeys);
    }
  };
  const visit = (node) => {
    const isByName = ts.isPropertyAccessExpression(node);
    const key = isByName ? node.name : ts.isElementAccessExpression(node) ? node.argumentExpression : undefined;
    const isNamed = key !== undefined && (isByName || ts.isStringLiteralLike(key));
    if (isNamed && isAssigned(node)) assigned.add(key.text);
    else if (isNamed && isAskedForAt(node)) asked.add(key.text);
    else if (key !== undefined && !isNamed && isAssigned(node)) isOpen = true;
    if (ts.isBinaryExpression(node) && node.operatorToken.kind === ts.SyntaxKind.InKeyword && ts.isStringLiteralLike(node.left)) {
      asked.add(node.left.text);
    }
    if (ts.isBindingElement(node) && node.initializer) asked.add((node.propertyName ?? node.name).text);
    if (ts.isShorthandPropertyAssignment(node) && node.objectAssignmentInitializer) asked.add(node.name.text);
    if (ts.isCallExpression(node)) addCall(node.expression.getText(file), node.arguments);
    ts.forEachChild(node, visit);
  };
  visit(file);
  return { assigned, asked, isOpen };
}
