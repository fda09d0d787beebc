// Predicates over syntax nodes, and one scan of the program: the properties it assigns, reads and tests for presence.

var { SyntaxKind } = ts;
var IS_STRICT = new Set([SyntaxKind.EqualsEqualsEqualsToken, SyntaxKind.ExclamationEqualsEqualsToken]);

function isAssigned(node) {
  const parent = node.parent;
  return ts.isBinaryExpression(parent) && parent.left === node &&
    parent.operatorToken.kind >= ts.SyntaxKind.FirstAssignment && parent.operatorToken.kind <= ts.SyntaxKind.LastAssignment;
}

/** A property name's key, however written: `a`, "a", ["a"], `a`, 1, [-1]; undefined if computed at run time. */
function keyOf(name) {
  if (name !== undefined && ts.isNoSubstitutionTemplateLiteral(name)) return name.text; // of a read: value[`a`]
  const key = name !== undefined && ts.isPropertyName(name) ? ts.getPropertyNameForPropertyNameNode(name) : undefined;
  return key === undefined ? undefined : ts.unescapeLeadingUnderscores(key);
}

// A type's property under a key; undefined if the key is computed at run time.
var propertyOf = (type, key) => (key === undefined ? undefined : type.getProperty(key));

// The literal key of a read: `a.b`, `a["b"]`, `a[0]`.
function keyRead(access) {
  if (ts.isPropertyAccessExpression(access)) return access.name.text;
  const key = ts.isElementAccessExpression(access) ? access.argumentExpression : undefined;
  return key !== undefined && ts.isStringOrNumericLiteralLike(key) ? key.text : undefined;
}

// `{ __proto__: base }` sets the prototype; `["__proto__"]` and `{ __proto__ }` add a property.
var setsPrototype = (node) =>
  node !== undefined && ts.isPropertyAssignment(node) && !ts.isComputedPropertyName(node.name) && keyOf(node.name) === "__proto__";

function isNullish(node) {
  if (ts.isIdentifier(node)) return node.text === "undefined";
  return node.kind === ts.SyntaxKind.NullKeyword || ts.isVoidExpression(node);
}

var isCondition = (node, parent) =>
  ((ts.isIfStatement(parent) || ts.isWhileStatement(parent) || ts.isDoStatement(parent)) && parent.expression === node) ||
  ((ts.isConditionalExpression(parent) || ts.isForStatement(parent)) && parent.condition === node);

var PRESENCE_CALLS = /^(?:Array\.isArray|Boolean)$/;
var KEY_CALLS = /^(?:Object\.hasOwn|Object\.prototype\.hasOwnProperty\.call|Reflect\.(?:has|get))$|\.hasOwnProperty$/;

// The outermost expression of a property read: up from `a.b` through parentheses, assertions and optional chains (`a.b?.c`).
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

// Explicit presence test: `typeof a.b`, `a.b?.c === undefined`, `a.b != null`, `Array.isArray(a.b)`.
function isExplicitPresenceTest(node) {
  const whole = wholeOf(node), { parent } = whole;
  if (ts.isTypeOfExpression(parent)) return true;
  if (ts.isCallExpression(parent) && parent.arguments.includes(whole)) return PRESENCE_CALLS.test(parent.expression.getText());
  if (!ts.isBinaryExpression(parent)) return false;
  const { left, right, operatorToken: { kind } } = parent, other = left === whole ? right : left;
  return isNullish(other) && !(IS_STRICT.has(kind) && other.kind === ts.SyntaxKind.NullKeyword); // a missing property is undefined, not null
}

// Presence test, explicit or by truthiness: `if (c && a.b)`, `a.b && f(a.b)`, `a.b === null`.
function isPresenceTest(node) {
  const whole = wholeOf(node), { parent } = whole;
  if (isExplicitPresenceTest(node) || isCondition(whole, parent)) return true;
  if (ts.isPrefixUnaryExpression(parent)) return parent.operator === ts.SyntaxKind.ExclamationToken;
  if (isAnd(parent)) return parent.left === whole || isPresenceTest(parent);
  if (isOr(parent)) return isPresenceTest(parent);
  return ts.isBinaryExpression(parent) && (isNullish(parent.left) || isNullish(parent.right));
}

// The operands of `a ?? b || c`.
function alternatives(node) {
  const at = ts.isParenthesizedExpression(node) ? node.expression : node;
  return isOr(at) ? [...alternatives(at.left), ...alternatives(at.right)] : [at];
}

function rootOf(node) {
  let at = node;
  while (at.expression && !ts.isNewExpression(at)) at = at.expression;
  return at;
}

var NO_VALUE = /^(?:null|undefined|false|void 0)$/;

/** Whether a missing property is one of several alternatives, of which another is always present. A lone default is no
 * alternative: the program would always get it. */
function hasFallback(access, checker, lacks) {
  const whole = wholeOf(access), root = rootOf(access), names = new Set(ts.isIdentifier(root) ? [root.text] : []);
  const isSure = (each) => mentions(each, names) && (lacks(each) || !(typeFlagsOf(checker.getTypeAtLocation(each)) & NULLISH));
  for (let top = whole; ; top = top.parent) {
    while (isOr(top.parent) || (ts.isParenthesizedExpression(top.parent) && isOr(top.parent.parent))) top = top.parent;
    const others = alternatives(top).filter((each) => access.pos < each.pos || access.end > each.end);
    if (others.some((each) => NO_VALUE.test(each.getText())) || others.some(isSure)) return true;
    // `JSON.parse(a.b?.c ?? "null") || a`: the call's argument is missing, and its result has an alternative.
    if (whole === access || !ts.isCallExpression(top.parent) || ts.isFunctionLike(top)) return false;
  }
}

var membersOf = (type) => (type.isUnion() ? type.types : [type]);
var typeFlagsOf = (type) => membersOf(type).reduce((all, each) => all | each.flags, 0);

// The variables that a node reassigns.
function addReassigned(node, reassigned) {
  const add = (target) => {
    if (ts.isIdentifier(target)) reassigned.add(target.text);
    else if (ts.isArrayLiteralExpression(target) || ts.isObjectLiteralExpression(target)) ts.forEachChild(target, add);
    else if (ts.isPropertyAssignment(target)) add(target.initializer);
    else if (ts.isShorthandPropertyAssignment(target) || ts.isSpreadElement(target)) add(target.name ?? target.expression);
  };
  if (ts.isBinaryExpression(node) && isAssigned(node.left)) add(node.left);
  const { PlusPlusToken, MinusMinusToken } = ts.SyntaxKind;
  if (node.operand && (node.operator === PlusPlusToken || node.operator === MinusMinusToken)) add(node.operand);
  if ((ts.isForOfStatement(node) || ts.isForInStatement(node)) && !ts.isVariableDeclarationList(node.initializer)) add(node.initializer);
}

/** Facts of the program. By property name, the objects on which it is assigned, probed (explicit presence test) or tested;
 * variables that are reassigned, or written by computed key; how often each name occurs; properties that are read. */
function scanProgram(file) {
  const assigned = new Map(), probed = new Map(), tested = new Map(), nameCounts = new Map();
  const reassigned = new Set(), read = new Set(), keyWritten = new Set();
  let hasComputedKeys = false;
  const add = (map, name, owner) => map.set(name, [...(map.get(name) ?? []), owner]);
  const addKeys = (node, owner) => {
    if (!ts.isObjectLiteralExpression(node)) return;
    for (const key of node.properties.map((each) => keyOf(each.name))) if (key) add(assigned, key, owner);
  };
  const addCall = (called, values, { expression }) => {
    const owner = called.endsWith(".hasOwnProperty") ? expression.expression : values[0];
    if (KEY_CALLS.test(called)) values.filter(ts.isStringLiteralLike).forEach((each) => add(probed, each.text, owner));
    if (/^Object\.(?:assign|defineProperty|defineProperties|fromEntries)$/.test(called)) {
      if (!called.endsWith("assign")) hasComputedKeys = true;
      values.forEach((each) => addKeys(each, owner));
    }
  };
  const visit = (node) => {
    addReassigned(node, reassigned);
    if (ts.isIdentifier(node)) nameCounts.set(node.text, (nameCounts.get(node.text) ?? 0) + 1);
    const isByName = ts.isPropertyAccessExpression(node);
    const key = isByName ? node.name : ts.isElementAccessExpression(node) ? node.argumentExpression : undefined;
    const isNamed = key !== undefined && (isByName || ts.isStringLiteralLike(key));
    if (isNamed && isAssigned(node)) add(assigned, key.text, node.expression);
    else if (isNamed && isPresenceTest(node)) add(isExplicitPresenceTest(node) ? probed : tested, key.text, node.expression);
    else if (key !== undefined && !isNamed && isAssigned(node)) {
      hasComputedKeys = true;
      keyWritten.add(rootOf(node).text);
    }
    if (isNamed) read.add(key.text);
    if (ts.isBinaryExpression(node) && node.operatorToken.kind === ts.SyntaxKind.InKeyword && ts.isStringLiteralLike(node.left)) {
      add(probed, node.left.text, node.right);
    }
    if (ts.isBindingElement(node)) read.add(keyOf(node.propertyName ?? node.name));
    if (ts.isCallExpression(node)) addCall(node.expression.getText(file), node.arguments, node);
    ts.forEachChild(node, visit);
  };
  visit(file);
  return { assigned, probed, tested, reassigned, nameCounts, read, keyWritten, hasComputedKeys };
}
