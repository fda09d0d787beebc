// What the program does to objects: which properties it sets, and which it only asks for.

var { SyntaxKind } = ts;
var IS_STRICT = new Set([SyntaxKind.EqualsEqualsEqualsToken, SyntaxKind.ExclamationEqualsEqualsToken]);

function isAssigned(node) {
  const parent = node.parent;
  return ts.isBinaryExpression(parent) && parent.left === node &&
    parent.operatorToken.kind >= ts.SyntaxKind.FirstAssignment && parent.operatorToken.kind <= ts.SyntaxKind.LastAssignment;
}

/** The key that a property's name stands for, however it is written: `a`, "a", ["a"], `a`, 1, [-1]; undefined if only a run knows. */
function keyOf(name) {
  if (name !== undefined && ts.isNoSubstitutionTemplateLiteral(name)) return name.text; // of a read: value[`a`]
  const key = name !== undefined && ts.isPropertyName(name) ? ts.getPropertyNameForPropertyNameNode(name) : undefined;
  return key === undefined ? undefined : ts.unescapeLeadingUnderscores(key);
}

// The property that a type has under a key; none if only a run knows which that is.
var propertyOf = (type, key) => (key === undefined ? undefined : type.getProperty(key));

// `a.b`, `a["b"]`, `a[0]`: the key, if it is written out.
function keyRead(access) {
  if (ts.isPropertyAccessExpression(access)) return access.name.text;
  const key = ts.isElementAccessExpression(access) ? access.argumentExpression : undefined;
  return key !== undefined && ts.isStringOrNumericLiteralLike(key) ? key.text : undefined;
}

// `{ __proto__: base }` adds no property: it says what the object inherits from. `["__proto__"]` and `{ __proto__ }` do add one.
var setsPrototype = (node) =>
  node !== undefined && ts.isPropertyAssignment(node) && !ts.isComputedPropertyName(node.name) && keyOf(node.name) === "__proto__";

function isNothing(node) {
  if (ts.isIdentifier(node)) return node.text === "undefined";
  return node.kind === ts.SyntaxKind.NullKeyword || ts.isVoidExpression(node);
}

var isCondition = (node, parent) =>
  ((ts.isIfStatement(parent) || ts.isWhileStatement(parent) || ts.isDoStatement(parent)) && parent.expression === node) ||
  ((ts.isConditionalExpression(parent) || ts.isForStatement(parent)) && parent.condition === node);

var ASKS = /^(?:Array\.isArray|Boolean)$/;
var ASKS_BY_NAME = /^(?:Object\.hasOwn|Object\.prototype\.hasOwnProperty\.call|Reflect\.(?:has|get))$|\.hasOwnProperty$/;

// Where the value of a property goes: up from `a.b` through parentheses, and through what is read of it as `a.b?.c`.
function wholeOf(node) {
  for (let at = node; ; at = at.parent) {
    const { parent } = at;
    const isWrapped = ts.isParenthesizedExpression(parent) || ts.isNonNullExpression(parent) || ts.isAsExpression(parent);
    const isRead = ts.isPropertyAccessExpression(parent) || ts.isElementAccessExpression(parent) || ts.isCallExpression(parent);
    if (!isWrapped && !(isRead && parent.expression === at && isOptionalChain(parent))) return at;
  }
}

var isOptionalChain = (node) => (node.flags & ts.NodeFlags.OptionalChain) !== 0;

var isAnd = (node) => ts.isBinaryExpression(node) && node.operatorToken.kind === ts.SyntaxKind.AmpersandAmpersandToken;
var isOr = (node) => ts.isBinaryExpression(node) &&
  (node.operatorToken.kind === ts.SyntaxKind.QuestionQuestionToken || node.operatorToken.kind === ts.SyntaxKind.BarBarToken);

// Asked outright whether it is there: `typeof a.b`, `a.b?.c === undefined`, `a.b != null`, `Array.isArray(a.b)`.
function isAskedOutright(node) {
  const whole = wholeOf(node), { parent } = whole;
  if (ts.isTypeOfExpression(parent)) return true;
  if (ts.isCallExpression(parent) && parent.arguments.includes(whole)) return ASKS.test(parent.expression.getText());
  if (!ts.isBinaryExpression(parent)) return false;
  const { left, right, operatorToken: { kind } } = parent, other = left === whole ? right : left;
  return isNothing(other) && !(IS_STRICT.has(kind) && other.kind === ts.SyntaxKind.NullKeyword); // it is undefined, and not null
}

// Only asked whether it is there, or what it is: `if (c && a.b)`, `a.b && f(a.b)`, `a.b === null`.
function isTested(node) {
  const whole = wholeOf(node), { parent } = whole;
  if (isAskedOutright(node) || isCondition(whole, parent)) return true;
  if (ts.isPrefixUnaryExpression(parent)) return parent.operator === ts.SyntaxKind.ExclamationToken;
  if (isAnd(parent)) return parent.left === whole || isTested(parent);
  if (isOr(parent)) return isTested(parent);
  return ts.isBinaryExpression(parent) && (isNothing(parent.left) || isNothing(parent.right));
}

// All that `a ?? b || c` chooses from.
function choices(node) {
  const at = ts.isParenthesizedExpression(node) ? node.expression : node;
  return isOr(at) ? [...choices(at.left), ...choices(at.right)] : [at];
}

function rootOf(node) {
  let at = node;
  while (at.expression && !ts.isNewExpression(at)) at = at.expression;
  return at;
}

var NO_VALUE = /^(?:null|undefined|false|void 0)$/;

/** Whether a property that a result doesn't have is one of several that the author looks for, of which another is always
 * there. If all that is left is a default, that is all that the program ever gets. */
function isOneOfSeveral(access, checker, lacks) {
  const whole = wholeOf(access), root = rootOf(access), names = new Set(ts.isIdentifier(root) ? [root.text] : []);
  const isSure = (each) => mentions(each, names) && (lacks(each) || !(typeFlagsOf(checker.getTypeAtLocation(each)) & NOTHING));
  for (let top = whole; ; top = top.parent) {
    while (isOr(top.parent) || (ts.isParenthesizedExpression(top.parent) && isOr(top.parent.parent))) top = top.parent;
    const others = choices(top).filter((each) => access.pos < each.pos || access.end > each.end);
    if (others.some((each) => NO_VALUE.test(each.getText())) || others.some(isSure)) return true;
    // `JSON.parse(a.b?.c ?? "null") || a`: what is left out is nothing to the call, whose value is one of several.
    if (whole === access || !ts.isCallExpression(top.parent) || ts.isFunctionLike(top)) return false;
  }
}

var typeFlagsOf = (type) => (type.isUnion() ? type.types : [type]).reduce((all, each) => all | each.flags, 0);

// The variables that a node gives another value.
function addChanged(node, changed) {
  const add = (target) => {
    if (ts.isIdentifier(target)) changed.add(target.text);
    else if (ts.isArrayLiteralExpression(target) || ts.isObjectLiteralExpression(target)) ts.forEachChild(target, add);
    else if (ts.isPropertyAssignment(target)) add(target.initializer);
    else if (ts.isShorthandPropertyAssignment(target) || ts.isSpreadElement(target)) add(target.name ?? target.expression);
  };
  if (ts.isBinaryExpression(node) && isAssigned(node.left)) add(node.left);
  const { PlusPlusToken, MinusMinusToken } = ts.SyntaxKind;
  if (node.operand && (node.operator === PlusPlusToken || node.operator === MinusMinusToken)) add(node.operand);
  if ((ts.isForOfStatement(node) || ts.isForInStatement(node)) && !ts.isVariableDeclarationList(node.initializer)) add(node.initializer);
}

/** What the program does to properties and variables: by name, the objects whose property it sets, asks for or tests; whether it
 * sets some whose names only a run shows, and of which variables; which variables it gives another value; how often each
 * name stands in it; which properties it reads. */
function assignments(file) {
  const assigned = new Map(), asked = new Map(), tested = new Map(), changed = new Set(), names = new Map(), read = new Set(), keyed = new Set();
  let isOpen = false;
  const add = (map, name, owner) => map.set(name, [...(map.get(name) ?? []), owner]);
  const addKeys = (node, owner) => {
    if (!ts.isObjectLiteralExpression(node)) return;
    for (const key of node.properties.map((each) => keyOf(each.name))) if (key) add(assigned, key, owner);
  };
  const addCall = (called, values, { expression }) => {
    const owner = called.endsWith(".hasOwnProperty") ? expression.expression : values[0];
    if (ASKS_BY_NAME.test(called)) values.filter(ts.isStringLiteralLike).forEach((each) => add(asked, each.text, owner));
    if (/^Object\.(?:assign|defineProperty|defineProperties|fromEntries)$/.test(called)) {
      if (!called.endsWith("assign")) isOpen = true;
      values.forEach((each) => addKeys(each, owner));
    }
  };
  const visit = (node) => {
    addChanged(node, changed);
    if (ts.isIdentifier(node)) names.set(node.text, (names.get(node.text) ?? 0) + 1);
    const isByName = ts.isPropertyAccessExpression(node);
    const key = isByName ? node.name : ts.isElementAccessExpression(node) ? node.argumentExpression : undefined;
    const isNamed = key !== undefined && (isByName || ts.isStringLiteralLike(key));
    if (isNamed && isAssigned(node)) add(assigned, key.text, node.expression);
    else if (isNamed && isTested(node)) add(isAskedOutright(node) ? asked : tested, key.text, node.expression);
    else if (key !== undefined && !isNamed && isAssigned(node)) {
      isOpen = true;
      keyed.add(rootOf(node).text);
    }
    if (isNamed) read.add(key.text);
    if (ts.isBinaryExpression(node) && node.operatorToken.kind === ts.SyntaxKind.InKeyword && ts.isStringLiteralLike(node.left)) {
      add(asked, node.left.text, node.right);
    }
    if (ts.isBindingElement(node)) read.add(keyOf(node.propertyName ?? node.name));
    if (ts.isCallExpression(node)) addCall(node.expression.getText(file), node.arguments, node);
    ts.forEachChild(node, visit);
  };
  visit(file);
  return { assigned, asked, tested, changed, names, read, keyed, isOpen };
}
