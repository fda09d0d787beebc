// Where the values that come to a place were written: through constants, choices, loops over lists that are written out,
// and the program's own functions. What is written only to be given to a tool must be right wherever that is.

var MOST_STEPS = 12;
var MOST_ORIGINS = 5000; // in all: functions that call each other have more than anyone can follow
var GOES_THROUGH = /^(?:map|forEach|flatMap|filter|some|every|find|findIndex|findLast)$/;
var SAME_VALUES = /^(?:sort|reverse|toSorted|toReversed|values)$/;

// A value without what only the compiler reads, and without parentheses.
function unwrapped(node) {
  const isWrapped = (at) => ts.isParenthesizedExpression(at) || ts.isNonNullExpression(at) || ts.isSatisfiesExpression(at) ||
    (ts.isAsExpression(at) && ts.isConstTypeReference(at.type));
  while (isWrapped(node)) node = node.expression;
  return node;
}

var isCalled = (node, name) => ts.isCallExpression(node) && ts.isPropertyAccessExpression(node.expression) &&
  name.test(node.expression.name.text);

function boundNames(name, names = new Set()) {
  if (ts.isIdentifier(name)) names.add(name.text);
  else for (const each of name.elements) if (!ts.isOmittedExpression(each)) boundNames(each.name, names);
  return names;
}

function mentions(node, names) {
  if (ts.isIdentifier(node)) return names.has(node.text);
  return ts.forEachChild(node, (each) => mentions(each, names) || undefined) === true;
}

// The condition under which a child of a node is evaluated.
function conditionOf(node, child) {
  if ((ts.isIfStatement(node) || ts.isSwitchStatement(node)) && node.expression !== child) return node.expression;
  if (ts.isConditionalExpression(node) && node.condition !== child) return node.condition;
  const isChoice = ts.isBinaryExpression(node) && node.right === child &&
    (node.operatorToken.kind === ts.SyntaxKind.AmpersandAmpersandToken || node.operatorToken.kind === ts.SyntaxKind.BarBarToken);
  return isChoice ? node.left : undefined;
}

// Whether a place is only come to under a condition that names something.
function isConditional(node, names) {
  for (let at = node; at.parent && !ts.isFunctionLike(at); at = at.parent) {
    const condition = conditionOf(at.parent, at);
    if (condition !== undefined && mentions(condition, names)) return true;
  }
  return false;
}

// Whether the program looks at names, or what it made of them, before it comes to a place: then it may leave some values out.
function isGuarded(node, scope, names) {
  const seen = new Set(names);
  const follow = (at) => {
    if (ts.isVariableDeclaration(at) && at.initializer && mentions(at.initializer, seen)) boundNames(at.name, seen);
    ts.forEachChild(at, follow);
  };
  follow(scope);
  for (let at = node; at !== scope && at.parent; at = at.parent) {
    const condition = conditionOf(at.parent, at);
    if (condition !== undefined && mentions(condition, seen)) return true;
    for (const each of at.parent.statements ?? []) {
      if (each.pos >= at.pos) break;
      if ((ts.isIfStatement(each) || ts.isSwitchStatement(each)) && mentions(each.expression, seen)) return true;
    }
  }
  return false;
}

/** Follows values back through one program. An origin is {node, type}, of a pair also {pair: [key's origins, value's]}. */
class Origins {
  constructor(checker, program) {
    this.checker = checker;
    this.program = program;
    this.left = MOST_ORIGINS;
    this.uses = new Map();
  }

  /** The expressions whose values come to a place, or the place itself if that is all that can be said. */
  of(node, steps = 0) {
    const value = unwrapped(node), again = (each) => this.of(each, steps + 1);
    if (steps > MOST_STEPS || --this.left < 0) return [this.itself(value)];
    if (ts.isConditionalExpression(value)) return [...again(value.whenTrue), ...again(value.whenFalse)];
    const operator = ts.isBinaryExpression(value) ? value.operatorToken.kind : undefined;
    if (operator === ts.SyntaxKind.QuestionQuestionToken || operator === ts.SyntaxKind.BarBarToken) {
      return [...again(value.left), ...again(value.right)];
    }
    const found = ts.isIdentifier(value) ? this.ofName(value, steps + 1)
      : ts.isPropertyAccessExpression(value) || ts.isElementAccessExpression(value) ? this.ofProperty(value, steps + 1) : [];
    return found.length ? found : [this.itself(value)];
  }

  itself(node) {
    return { node, type: this.checker.getTypeAtLocation(node) };
  }

  ofName(node, steps) {
    const { checker, program } = this;
    const symbol = ts.isShorthandPropertyAssignment(node.parent)
      ? checker.getShorthandAssignmentValueSymbol(node.parent) : checker.getSymbolAtLocation(node);
    const declaration = symbol?.valueDeclaration;
    if (declaration?.getSourceFile() !== program.file || program.changed.has(node.text)) return [];
    // What was ruled out on the way here does not come here.
    if (!checker.isTypeAssignableTo(checker.getTypeOfSymbol(symbol), checker.getTypeAtLocation(node))) return [];
    return this.ofDeclaration(declaration, node, steps);
  }

  ofDeclaration(declaration, use, steps) {
    if (steps > MOST_STEPS) return [];
    if (ts.isBindingElement(declaration)) return this.ofBinding(declaration, use, steps);
    if (ts.isParameter(declaration)) return this.ofParameter(declaration, use, steps);
    if (!ts.isVariableDeclaration(declaration)) return [];
    const loop = declaration.parent.parent;
    if (ts.isForOfStatement(loop)) {
      return isGuarded(use, loop.statement, boundNames(declaration.name)) ? [] : this.elements(loop.expression, steps + 1);
    }
    const names = boundNames(declaration.name);
    if (!declaration.initializer || isConditional(use, names) || [...names].some((each) => this.program.keyed.has(each))) return [];
    return this.of(declaration.initializer, steps + 1);
  }

  ofBinding(element, use, steps) {
    if (element.dotDotDotToken || element.initializer) return [];
    const pattern = element.parent, owner = pattern.parent;
    const key = ts.isArrayBindingPattern(pattern) ? pattern.elements.indexOf(element) : keyOf(element.propertyName ?? element.name);
    return this.ofDeclaration(owner, use, steps + 1).flatMap((each) => this.part(each, key, steps));
  }

  ofProperty(access, steps) {
    const key = keyRead(access);
    if (key === undefined || this.program.assigned.has(key)) return [];
    return this.of(access.expression, steps).flatMap((each) => this.part(each, key, steps));
  }

  // What is at a key of an object or list that is written out.
  part({ node, pair }, key, steps) {
    if (pair) return pair[key] ?? [];
    if (key === undefined) return []; // only the run knows which
    if (ts.isArrayLiteralExpression(node)) {
      const index = Number(key), before = node.elements.slice(0, index + 1);
      return before.length > index && !before.some(ts.isSpreadElement) ? this.of(node.elements[index], steps + 1) : [];
    }
    if (!ts.isObjectLiteralExpression(node) || this.program.assigned.has(key)) return [];
    const property = node.properties.findLast((each) => ts.isSpreadAssignment(each) || keyOf(each.name) === key);
    if (property === undefined) return [];
    if (ts.isPropertyAssignment(property)) return this.of(property.initializer, steps + 1);
    return ts.isShorthandPropertyAssignment(property) ? this.of(property.name, steps + 1) : [];
  }

  // What a list that is written out holds, as far as it can be seen.
  elements(list, steps) {
    return this.of(list, steps).flatMap(({ node }) => {
      if (ts.isArrayLiteralExpression(node)) {
        return node.elements.flatMap((each) =>
          ts.isSpreadElement(each) ? this.elements(each.expression, steps + 1) : this.of(each, steps + 1));
      }
      if (ts.isNewExpression(node) && node.expression.getText() === "Set" && node.arguments?.length) {
        return this.elements(node.arguments[0], steps + 1);
      }
      if (isCalled(node, SAME_VALUES)) return this.elements(node.expression.expression, steps + 1);
      return isCalled(node, /^(?:keys|entries)$/) && node.expression.expression.getText() === "Object" && node.arguments.length === 1
        ? this.entries(node.arguments[0], node.expression.name.text, steps + 1) : [];
    });
  }

  entries(object, which, steps) {
    return this.of(object, steps).flatMap(({ node }) => !ts.isObjectLiteralExpression(node) ? [] :
      node.properties.filter((each) => keyOf(each.name) !== undefined).map((each) => {
        const key = { node: each.name, type: this.checker.getStringLiteralType(keyOf(each.name)) };
        const value = ts.isPropertyAssignment(each) ? this.of(each.initializer, steps) : [];
        return which === "keys" ? key : { node: each.name, type: key.type, pair: [[key], value] };
      }));
  }

  ofParameter(parameter, use, steps) {
    const owner = parameter.parent, index = owner.parameters.indexOf(parameter), call = owner.parent;
    if (parameter.dotDotDotToken || !owner.body) return [];
    const names = new Set(owner.parameters.flatMap((each) => [...boundNames(each.name)]));
    if (isGuarded(use, owner.body, names)) return [];
    if (ts.isCallExpression(call) && call.arguments[0] === owner) {
      return index === 0 && isCalled(call, GOES_THROUGH) ? this.elements(call.expression.expression, steps + 1) : [];
    }
    const name = owner.name ?? (ts.isVariableDeclaration(call) ? call.name : undefined);
    if (name === undefined || !ts.isIdentifier(name)) return [];
    return this.usesOf(name).flatMap((each) => this.given(each, index, steps + 1));
  }

  // What a use of a function gives to one of its parameters.
  given(use, index, steps) {
    const call = use.parent;
    if (!ts.isCallExpression(call)) return [];
    if (call.expression === use) {
      const given = call.arguments.slice(0, index + 1);
      return given.length > index && !given.some(ts.isSpreadElement) ? this.of(given[index], steps) : [];
    }
    return index === 0 && call.arguments[0] === use && isCalled(call, GOES_THROUGH)
      ? this.elements(call.expression.expression, steps) : [];
  }

  usesOf(name) {
    const { checker, program, uses } = this, symbol = checker.getSymbolAtLocation(name), found = [];
    if (uses.has(symbol)) return uses.get(symbol);
    const visit = (at) => {
      if (ts.isIdentifier(at) && at.text === name.text && at !== name && checker.getSymbolAtLocation(at) === symbol) found.push(at);
      ts.forEachChild(at, visit);
    };
    visit(program.file);
    uses.set(symbol, found);
    return found;
  }
}
