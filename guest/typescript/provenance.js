// Data provenance: the expressions that a value comes from, through constants, conditionals, loops over literals and
// user-defined functions; and whether it comes from a tool's result.

var MAX_STEPS = 12;
var MAX_ORIGINS = 5000; // in all: mutually recursive functions have exponentially many
var ITERATING = /^(?:map|forEach|flatMap|filter|some|every|find|findIndex|findLast)$/;
var ELEMENT_PRESERVING = /^(?:sort|reverse|toSorted|toReversed|values)$/;

// A value without parentheses and type-only wrappers.
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
  const isChoice = isAnd(node) || (isOr(node) && node.operatorToken.kind === SyntaxKind.BarBarToken);
  return isChoice && node.right === child ? node.left : undefined;
}

// Whether a place is reached only under a condition that mentions one of the names.
function isConditional(node, names) {
  for (let at = node; at.parent && !ts.isFunctionLike(at); at = at.parent) {
    const condition = conditionOf(at.parent, at);
    if (condition !== undefined && mentions(condition, names)) return true;
  }
  return false;
}

// Whether a condition before a place tests the names, or variables derived from them: it may exclude some values.
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

/** Follows values back through one program. An origin is {node, type}; of a key-value pair also {pair: [key origins, value origins]}. */
class Origins {
  constructor(checker, program) {
    this.checker = checker;
    this.program = program;
    this.left = MAX_ORIGINS;
    this.uses = new Map();
  }

  /** The origins of a value: itself, if they can't be followed. */
  of(node, steps = 0) {
    const value = unwrapped(node), again = (each) => this.of(each, steps + 1);
    if (steps > MAX_STEPS || --this.left < 0) return [this.itself(value)];
    if (ts.isConditionalExpression(value)) return [...again(value.whenTrue), ...again(value.whenFalse)];
    if (isOr(value)) return [...again(value.left), ...again(value.right)];
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
    if (declaration?.getSourceFile() !== program.file || program.reassigned.has(node.text)) return [];
    // Values excluded by narrowing don't reach this place.
    if (!checker.isTypeAssignableTo(checker.getTypeOfSymbol(symbol), checker.getTypeAtLocation(node))) return [];
    return this.ofDeclaration(declaration, node, steps);
  }

  ofDeclaration(declaration, use, steps) {
    if (steps > MAX_STEPS) return [];
    if (ts.isBindingElement(declaration)) return this.ofBinding(declaration, use, steps);
    if (ts.isParameter(declaration)) return this.ofParameter(declaration, use, steps);
    if (!ts.isVariableDeclaration(declaration)) return [];
    const loop = declaration.parent.parent;
    if (ts.isForOfStatement(loop)) {
      return isGuarded(use, loop.statement, boundNames(declaration.name)) ? [] : this.elements(loop.expression, steps + 1);
    }
    const names = boundNames(declaration.name);
    if (!declaration.initializer || isConditional(use, names) || [...names].some((each) => this.program.keyWritten.has(each))) return [];
    return this.of(declaration.initializer, steps + 1);
  }

  ofBinding(element, use, steps) {
    if (element.dotDotDotToken || element.initializer) return [];
    const pattern = element.parent, owner = pattern.parent;
    const key = ts.isArrayBindingPattern(pattern) ? pattern.elements.indexOf(element) : keyOf(element.propertyName ?? element.name);
    return this.ofDeclaration(owner, use, steps + 1).flatMap((each) => this.memberAt(each, key, steps));
  }

  ofProperty(access, steps) {
    const key = keyRead(access);
    if (key === undefined || this.program.assigned.has(key)) return [];
    return this.of(access.expression, steps).flatMap((each) => this.memberAt(each, key, steps));
  }

  // The value at a key of an object or array literal.
  memberAt({ node, pair }, key, steps) {
    if (pair) return pair[key] ?? [];
    if (key === undefined) return []; // known at run time only
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

  // The elements of an array literal, as far as they can be followed.
  elements(list, steps) {
    return this.of(list, steps).flatMap(({ node }) => {
      if (ts.isArrayLiteralExpression(node)) {
        return node.elements.flatMap((each) =>
          ts.isSpreadElement(each) ? this.elements(each.expression, steps + 1) : this.of(each, steps + 1));
      }
      if (ts.isNewExpression(node) && node.expression.getText() === "Set" && node.arguments?.length) {
        return this.elements(node.arguments[0], steps + 1);
      }
      if (isCalled(node, ELEMENT_PRESERVING)) return this.elements(node.expression.expression, steps + 1);
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
      return index === 0 && isCalled(call, ITERATING) ? this.elements(call.expression.expression, steps + 1) : [];
    }
    const name = owner.name ?? (ts.isVariableDeclaration(call) ? call.name : undefined);
    if (name === undefined || !ts.isIdentifier(name)) return [];
    return this.referencesTo(name).flatMap((each) => this.argumentOf(each, index, steps + 1));
  }

  // The argument that a reference to a function passes for a parameter.
  argumentOf(use, index, steps) {
    const call = use.parent;
    if (!ts.isCallExpression(call)) return [];
    if (call.expression === use) {
      const given = call.arguments.slice(0, index + 1);
      return given.length > index && !given.some(ts.isSpreadElement) ? this.of(given[index], steps) : [];
    }
    return index === 0 && call.arguments[0] === use && isCalled(call, ITERATING)
      ? this.elements(call.expression.expression, steps) : [];
  }

  referencesTo(name) {
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

// ---- values from tools

// Array and string methods whose result comes from wherever the receiver does.
var PROVENANCE_PRESERVING = new Set([
  ..."filter slice sort reverse toSorted toReversed concat find findLast at pop shift flat values".split(" "),
  ..."trim toLowerCase toUpperCase toString toFixed join split replace replaceAll padStart padEnd substring".split(" "),
]);

/** Whether a value is a tool's result or a part of one, through variables, arrays and iterations. */
function comesFromTool(node, checker, program, steps = 0) {
  const again = (each) => each !== undefined && steps < MAX_STEPS && comesFromTool(each, checker, program, steps + 1);
  const value = unwrapped(node);
  if (isStubType(checker.getTypeAtLocation(value), checker)) return true;
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
    return PROVENANCE_PRESERVING.has(place.name.text) && again(place.expression);
  }
  if (ts.isPropertyAccessExpression(value)) return place.name.text === "length" && again(place.expression);
  if (!ts.isIdentifier(value) || file !== program.file || program.reassigned.has(value.text)) return false;
  return declarationComesFromTool(declaration, checker, program, again);
}

// An object type declared by a stub, or an array or promise of such.
function isStubType(type, checker) {
  const parts = nonNullishParts(type), isOne = (each) => {
    if (!(each.flags & TypeFlags.Object) || each.getCallSignatures().length) return false;
    if (isPromise(each)) return isStubType(checker.getAwaitedType(each), checker);
    if (checker.isArrayType(each)) return isStubType(each.getNumberIndexType(), checker);
    return isStub(each.symbol?.declarations?.[0]?.getSourceFile());
  };
  return parts.length > 0 && parts.every(isOne);
}

function declarationComesFromTool(declaration, checker, program, again) {
  if (ts.isBindingElement(declaration)) {
    const pattern = declaration.parent, key = keyOf(declaration.propertyName ?? declaration.name);
    if (declaration.dotDotDotToken) return false;
    if (ts.isArrayBindingPattern(pattern)) return ts.isVariableDeclaration(pattern.parent) && again(pattern.parent.initializer);
    const property = propertyOf(checker.getTypeAtLocation(pattern), key);
    return isStub(property?.declarations?.[0]?.getSourceFile());
  }
  if (declaration.type) return false; // the annotation decides
  if (ts.isVariableDeclaration(declaration)) {
    const loop = declaration.parent.parent;
    return again(ts.isForOfStatement(loop) ? loop.expression : declaration.initializer);
  }
  if (!ts.isParameter(declaration) || declaration.dotDotDotToken) return false;
  const owner = declaration.parent, call = owner.parent;
  if (!ts.isCallExpression(call) || call.arguments[0] !== owner) return false;
  const index = owner.parameters.indexOf(declaration);
  const isElement = (isCalled(call, ITERATING) && index === 0) || (isCalled(call, /^(?:sort|toSorted)$/) && index < 2) ||
    (isCalled(call, /^reduce(?:Right)?$/) && (index === 1 || (index === 0 && call.arguments.length === 1)));
  return isElement && again(call.expression.expression);
}
