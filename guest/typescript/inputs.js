// What tools are given, judged where it was written. The compiler judges a call as a whole, and only where it is made: of
// a text that is one of several, of a list that is made step by step and of pairs for `parallel`, it knows too little.

// The type of a function's input, which an /async module declares as the rest of its parameters.
function inputOf(signature, checker) {
  const parameter = signature?.parameters[0];
  if (parameter === undefined) return undefined;
  const type = checker.getTypeOfSymbol(parameter), { valueDeclaration } = parameter;
  const isRest = valueDeclaration && ts.isParameter(valueDeclaration) && valueDeclaration.dotDotDotToken !== undefined;
  return isRest ? checker.getTypeArguments(type)[0] : type;
}

// The tool that an expression is: the signature that a stub declares for it.
function toolOf(node, checker) {
  const [signature, ...others] = checker.getTypeAtLocation(node).getCallSignatures();
  const file = signature?.declaration?.getSourceFile();
  if (others.length || !isStub(file) || file.fileName === "/bridge.d.ts" || signature.typeParameters) return undefined;
  return signature;
}

/** Judges everything that one program gives to tools. */
class Inputs {
  constructor(checker, program) {
    this.checker = checker;
    this.program = program;
    this.fitting = new Fitting(checker, program);
    this.origins = new Origins(checker, program);
  }

  /** Calls and pairs with what is wrong about their input: [{call, problems}]. */
  judged() {
    const found = [], { checker } = this;
    const add = (call, tool, input, isCompared) => {
      const target = inputOf(tool, checker), problems = [], { declaration } = tool;
      if (target !== undefined && input !== undefined) this.judge(input, target, problems, { declaration, isDirect: true, isCompared });
      if (problems.length) found.push({ call, problems });
    };
    const visit = (node) => {
      if (ts.isCallExpression(node) && node.arguments.length === 1) {
        // The compiler remembers what it took a call for: most are none of a tool's.
        const isOfTool = isStub(checker.getResolvedSignature(node)?.declaration?.getSourceFile());
        const tool = isOfTool ? toolOf(node.expression, checker) : undefined;
        if (tool) add(node, tool, node.arguments[0], this.program.isUndisputed);
      }
      if (ts.isArrayLiteralExpression(node) && (node.elements.length === 1 || node.elements.length === 2)) {
        const tool = isForParallel(node) ? toolOf(node.elements[0], checker) : undefined;
        if (tool && node.elements.length === 2) add(node, tool, node.elements[1], false);
        const lacksInput = tool && node.elements.length === 1 && tool.minArgumentCount > 0;
        if (lacksInput) found.push({ call: node, problems: [saysNothingGiven(node, tool)] });
      }
      ts.forEachChild(node, visit);
    };
    visit(this.program.file);
    return found;
  }

  // `isCompared`: the compiler has compared this very expression with its target, and found nothing.
  judge(node, target, problems, { declaration, isDirect = false, isCompared = false }) {
    if (isCompared && this.isOfSureKind(node)) return;
    const wanted = partsOf(target);
    if (!wanted.length || wanted.some((each) => each.flags & KNOWS_NOTHING)) return;
    for (const origin of this.origins.of(node)) {
      const value = origin.node;
      if (ts.isObjectLiteralExpression(value) && wanted.some((each) => isPlainObject(each, this.checker))) {
        const isHere = value === unwrapped(node);
        this.judgeObject(value, wanted, problems, { isDirect: isDirect && isHere, isCompared: isCompared && isHere });
      } else if (ts.isArrayLiteralExpression(value) && wanted.length === 1 && this.checker.isArrayType(wanted[0])) {
        const element = wanted[0].getNumberIndexType();
        for (const each of value.elements) if (!ts.isSpreadElement(each)) this.judge(each, element, problems, { declaration });
      } else if (!isNothing(value) && !isGuess(value, this.checker, this.program) && !this.fitting.mayFit(origin.type, target)) {
                const place = this.isWrongHere(node, target) ? this.origins.itself(node) : origin;
        problems.push(saysMisfit(place, target, declaration, this.checker));
      }
    }
  }

  // A text or number of which the compiler knows that it is one, and needn't guess: it is no part of anything unknown.
  isOfSureKind(node) {
    if (isLiteralValue(node)) return true;
    if (ts.isObjectLiteralExpression(node) || ts.isArrayLiteralExpression(node)) return false; // without asking what is in it
    const { checker } = this, { parent } = node;
    const symbol = ts.isShorthandPropertyAssignment(parent) ? checker.getShorthandAssignmentValueSymbol(parent)
      : ts.isIdentifier(node) || ts.isPropertyAccessExpression(node) ? checker.getSymbolAtLocation(node) : undefined;
    const type = symbol ? checker.getTypeOfSymbol(symbol) : checker.getTypeAtLocation(node);
    return !(typeFlagsOf(type) & ~(PRIMITIVE | NOTHING));
  }

  // A list of texts whose numbers are wanted, or a number that something else needs as well, is right by itself: what is
  // wrong is how it is used.
  isWrongHere(node, target) {
    const type = this.checker.getTypeAtLocation(node);
    if (this.fitting.mayFit(type, target)) return false;
    const wanted = partsOf(target);
    const isOfItsKind = TEXTS_AND_NUMBERS.some((kind) => type.flags & kind && wanted.every((each) => each.flags & kind));
    return !type.isLiteral() || (!isOfItsKind && ts.isIdentifier(node) && this.program.names.get(node.text) > 2);
  }

  // An object that may have one of several forms is right if it has any of them, and else judged by the nearest.
  judgeObject(literal, wanted, problems, how) {
    let least;
    for (const type of wanted.filter((each) => isPlainObject(each, this.checker))) {
      const found = [];
      this.judgeProperties(literal, type, found, how);
      if (least === undefined || found.length < least.length) least = found;
      if (!found.length) return;
    }
    problems.push(...least);
  }

  judgeProperties(literal, type, problems, { isDirect, isCompared }) {
    const { checker, program } = this, index = type.getStringIndexType(), names = new Set();
    let isOpen = false;
    for (const property of literal.properties) {
      if (ts.isSpreadAssignment(property)) {
        const spread = this.namesOf(checker.getTypeAtLocation(property.expression));
        if (spread === undefined) isOpen = true;
        for (const each of spread ?? []) names.add(each);
        const isLast = (name) => !literal.properties.some((each) => each.pos > property.pos && keyOf(each.name) === name);
        this.judgeSpread(property.expression, type, problems, isLast);
        continue;
      }
      const name = keyOf(property.name);
      if (name === undefined || setsPrototype(property)) {
        isOpen = true;
        continue;
      }
      names.add(name);
      const wanted = type.getProperty(name), value = property.initializer ?? property.name;
      const target = wanted ? checker.getTypeOfSymbol(wanted) : index;
      if (target === undefined) {
        if (isDirect) problems.push(saysUnknown(property.name, type, checker));
      } else if (!ts.isMethodDeclaration(property)) {
        this.judge(value, target, problems, { declaration: wanted?.declarations?.[0], isCompared });
      }
    }
    if (isOpen || problems.some((each) => OF_EXCESS.has(each.code))) return; // a name that is wrong is missing, too
    for (const wanted of type.getProperties()) {
      const isThere = names.has(wanted.name) || wanted.flags & ts.SymbolFlags.Optional;
      if (!isThere && (isDirect || !program.assigned.has(wanted.name))) problems.push(saysMissing(literal, wanted, type, checker));
    }
  }

  // `...(cursor ? { cursor } : {})`: what is written out in it. What else the object needs may be elsewhere.
  judgeSpread(expression, type, problems, isLast) {
    for (const { node } of this.origins.of(expression)) {
      if (!ts.isObjectLiteralExpression(node)) continue;
      for (const each of node.properties) {
        const key = keyOf(each.name), wanted = propertyOf(type, key);
        if (!wanted || !ts.isPropertyAssignment(each) || !isLast(key)) continue;
        const target = this.checker.getTypeOfSymbol(wanted), declaration = wanted.declarations?.[0];
        this.judge(each.initializer, target, problems, { declaration });
      }
    }
  }

  // The names that a value of a type has or may have; undefined if it may have any.
  namesOf(type) {
    const names = [];
    for (const each of type.isUnion() ? type.types : [type]) {
      if (each.flags & KNOWS_NOTHING || each.getStringIndexType()) return undefined;
      names.push(...each.getProperties().map((property) => property.name));
    }
    return names;
  }
}

function isPlainObject(type, checker) {
  return (type.flags & (TypeFlags.Object | TypeFlags.Intersection)) !== 0 && !checker.isArrayLikeType(type) &&
    !type.getCallSignatures().length && type.symbol?.name !== "Handle";
}

// A pair for `parallel`: in its argument, or, with an input that is written out, made before.
function isForParallel(node) {
  if (node.elements.length === 2 && ts.isObjectLiteralExpression(unwrapped(node.elements[1]))) return true;
  return isIn(node.parent, (at) => ts.isCallExpression(at) && ts.isIdentifier(at.expression) && at.expression.text === "parallel");
}

// ---- what is said of it, in the compiler's words

function complaint(node, code, messageText, declaration) {
  const file = node.getSourceFile(), start = node.getStart(file), stub = declaration?.getSourceFile();
  const name = declaration && (ts.getNameOfDeclaration(declaration) ?? declaration);
  const relatedInformation = isStub(stub) ? [{ file: stub, start: name.getStart(stub), code: 0, messageText: "" }] : [];
  return { file, start, length: node.end - start, code, messageText, relatedInformation };
}

function saysMisfit({ node, type }, target, declaration, checker) {
  const given = checker.typeToString(type), wanted = checker.typeToString(checker.getNonNullableType(target));
  return complaint(node, 2322, `Type '${given}' is not assignable to type '${wanted}'.`, declaration);
}

function saysUnknown(name, type, checker) {
  const key = keyOf(name), meant = checker.getSuggestedSymbolForNonexistentProperty(key, type), within = checker.typeToString(type);
  const [code, text] = meant
    ? [2561, `but '${key}' does not exist in type '${within}'. Did you mean to write '${meant.name}'?`]
    : [2353, `and '${key}' does not exist in type '${within}'.`];
  return complaint(name, code, `Object literal may only specify known properties, ${text}`, (meant ?? type.symbol)?.declarations?.[0]);
}

function saysMissing(literal, wanted, type, checker) {
  const text = `Property '${wanted.name}' is missing, but required in type '${checker.typeToString(type)}'.`;
  return complaint(literal, 2741, text, wanted.declarations?.[0]);
}

function saysNothingGiven(pair, tool) {
  return complaint(pair.elements[0], 2554, "Expected 1 argument, but got 0.", tool.declaration);
}

/** The compiler's complaints that are mistakes, and what was found about inputs: of each call the one that knows more. A value
 * that was written elsewhere is told of there. */
function withInputs(mistakes, judged) {
  const isWithin = (each, node) => each.start >= node.pos && each.start < node.end;
  let all = mistakes;
  for (const { call, problems } of judged) {
    const said = mistakes.filter((each) => OF_FIT.has(each.code) && isWithin(each, call));
    if (problems.every((each) => isWithin(each, call)) && said.length) continue;
    all = all.filter((each) => !said.includes(each)).concat(problems);
  }
  return all;
}
