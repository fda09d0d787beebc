// Inputs of tool calls, checked where each value was written. The compiler checks a call as a whole: it misses constants
// widened to `string`, arrays built step by step, and the pairs of `parallel`.

// The type of a function's input; an /async module declares it as a rest parameter.
function inputOf(signature, checker) {
  const parameter = signature?.parameters[0];
  if (parameter === undefined) return undefined;
  const type = checker.getTypeOfSymbol(parameter), { valueDeclaration } = parameter;
  const isRest = valueDeclaration && ts.isParameter(valueDeclaration) && valueDeclaration.dotDotDotToken !== undefined;
  return isRest ? checker.getTypeArguments(type)[0] : type;
}

// The signature of the tool that an expression is.
function toolOf(node, checker) {
  const [signature, ...others] = checker.getTypeAtLocation(node).getCallSignatures();
  const file = signature?.declaration?.getSourceFile();
  if (others.length || !isStub(file) || file.fileName === "/bridge.d.ts" || signature.typeParameters) return undefined;
  return signature;
}

/** Checks every tool input of one program. */
class ToolInputs {
  constructor(checker, program) {
    this.checker = checker;
    this.program = program;
    this.assignability = new Assignability(checker, program);
    this.origins = new Origins(checker, program);
  }

  /** Calls and pairs with the problems of their inputs: [{call, problems}]. */
  findings() {
    const found = [], { checker } = this;
    const add = (call, tool, input, isCheckedByCompiler) => {
      const target = inputOf(tool, checker), problems = [], { declaration } = tool;
      if (target !== undefined && input !== undefined) this.checkValue(input, target, problems, { declaration, isDirect: true, isCheckedByCompiler });
      if (problems.length) found.push({ call, problems });
    };
    const visit = (node) => {
      if (ts.isCallExpression(node) && node.arguments.length === 1) {
        // Resolved signatures are cached by the compiler; most calls are of no tool.
        const isOfTool = isStub(checker.getResolvedSignature(node)?.declaration?.getSourceFile());
        const tool = isOfTool ? toolOf(node.expression, checker) : undefined;
        if (tool) add(node, tool, node.arguments[0], this.program.isFullyTyped);
      }
      if (ts.isArrayLiteralExpression(node) && (node.elements.length === 1 || node.elements.length === 2)) {
        const tool = isParallelPair(node) ? toolOf(node.elements[0], checker) : undefined;
        if (tool && node.elements.length === 2) add(node, tool, node.elements[1], false);
        const lacksInput = tool && node.elements.length === 1 && tool.minArgumentCount > 0;
        if (lacksInput) found.push({ call: node, problems: [missingInput(node, tool)] });
      }
      ts.forEachChild(node, visit);
    };
    visit(this.program.file);
    return found;
  }

  // Appends to `problems`. `isCheckedByCompiler`: the compiler compared this expression with its target, without a diagnostic.
  checkValue(node, target, problems, { declaration, isDirect = false, isCheckedByCompiler = false }) {
    if (isCheckedByCompiler && this.isKnownPrimitive(node)) return;
    const wanted = nonNullishParts(target);
    if (!wanted.length || wanted.some((each) => each.flags & OPAQUE)) return;
    for (const origin of this.origins.of(node)) {
      const value = origin.node;
      if (ts.isObjectLiteralExpression(value) && wanted.some((each) => isPlainObject(each, this.checker))) {
        const isHere = value === unwrapped(node);
        this.checkObject(value, wanted, problems, { isDirect: isDirect && isHere, isCheckedByCompiler: isCheckedByCompiler && isHere });
      } else if (ts.isArrayLiteralExpression(value) && wanted.length === 1 && this.checker.isArrayType(wanted[0])) {
        const element = wanted[0].getNumberIndexType();
        for (const each of value.elements) if (!ts.isSpreadElement(each)) this.checkValue(each, element, problems, { declaration });
      } else if (!isNullish(value) && !isMisinferred(value, this.checker, this.program) && !this.assignability.mayAssign(origin.type, target)) {
        const place = this.isWrongAtUse(node, target) ? this.origins.itself(node) : origin;
        problems.push(mismatch(place, target, declaration, this.checker));
      }
    }
  }

  // A primitive whose type the compiler knows without inference: no part of it is opaque.
  isKnownPrimitive(node) {
    if (isLiteralValue(node)) return true;
    if (ts.isObjectLiteralExpression(node) || ts.isArrayLiteralExpression(node)) return false; // without a look inside
    const { checker } = this, { parent } = node;
    const symbol = ts.isShorthandPropertyAssignment(parent) ? checker.getShorthandAssignmentValueSymbol(parent)
      : ts.isIdentifier(node) || ts.isPropertyAccessExpression(node) ? checker.getSymbolAtLocation(node) : undefined;
    const type = symbol ? checker.getTypeOfSymbol(symbol) : checker.getTypeAtLocation(node);
    return !(typeFlagsOf(type) & ~(PRIMITIVE | NULLISH));
  }

  // Whether the value is wrong at its use, not at its origin: strings used as numbers, or a number with other uses.
  isWrongAtUse(node, target) {
    const type = this.checker.getTypeAtLocation(node);
    if (this.assignability.mayAssign(type, target)) return false;
    const wanted = nonNullishParts(target);
    const isOfItsKind = TEXTS_AND_NUMBERS.some((kind) => type.flags & kind && wanted.every((each) => each.flags & kind));
    return !type.isLiteral() || (!isOfItsKind && ts.isIdentifier(node) && this.program.nameCounts.get(node.text) > 2);
  }

  // An object valid for one member of a union is valid; else the member with the fewest problems is reported.
  checkObject(literal, wanted, problems, how) {
    let least;
    for (const type of wanted.filter((each) => isPlainObject(each, this.checker))) {
      const found = [];
      this.checkProperties(literal, type, found, how);
      if (least === undefined || found.length < least.length) least = found;
      if (!found.length) return;
    }
    problems.push(...least);
  }

  checkProperties(literal, type, problems, { isDirect, isCheckedByCompiler }) {
    const { checker, program } = this, index = type.getStringIndexType(), names = new Set();
    let isOpen = false;
    for (const property of literal.properties) {
      if (ts.isSpreadAssignment(property)) {
        const spread = this.spreadNames(checker.getTypeAtLocation(property.expression));
        if (spread === undefined) isOpen = true;
        for (const each of spread ?? []) names.add(each);
        const isLast = (name) => !literal.properties.some((each) => each.pos > property.pos && keyOf(each.name) === name);
        this.checkSpread(property.expression, type, problems, isLast);
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
        if (isDirect) problems.push(unknownProperty(property.name, type, checker));
      } else if (!ts.isMethodDeclaration(property)) {
        this.checkValue(value, target, problems, { declaration: wanted?.declarations?.[0], isCheckedByCompiler });
      }
    }
    if (isOpen || problems.some((each) => EXCESS_CODES.has(each.code))) return; // a misspelt property is also a missing one
    for (const wanted of type.getProperties()) {
      const isThere = names.has(wanted.name) || wanted.flags & ts.SymbolFlags.Optional;
      if (!isThere && (isDirect || !program.assigned.has(wanted.name))) problems.push(missingProperty(literal, wanted, type, checker));
    }
  }

  // `...(cursor ? { cursor } : {})`: checks the literals; required properties may be elsewhere.
  checkSpread(expression, type, problems, isLast) {
    for (const { node } of this.origins.of(expression)) {
      if (!ts.isObjectLiteralExpression(node)) continue;
      for (const each of node.properties) {
        const key = keyOf(each.name), wanted = propertyOf(type, key);
        if (!wanted || !ts.isPropertyAssignment(each) || !isLast(key)) continue;
        const target = this.checker.getTypeOfSymbol(wanted), declaration = wanted.declarations?.[0];
        this.checkValue(each.initializer, target, problems, { declaration });
      }
    }
  }

  // The property names of a spread value; undefined if unknown.
  spreadNames(type) {
    const names = [];
    for (const each of membersOf(type)) {
      if (each.flags & OPAQUE || each.getStringIndexType()) return undefined;
      names.push(...each.getProperties().map((property) => property.name));
    }
    return names;
  }
}

function isPlainObject(type, checker) {
  return (type.flags & (TypeFlags.Object | TypeFlags.Intersection)) !== 0 && !checker.isArrayLikeType(type) &&
    !type.getCallSignatures().length && type.symbol?.name !== "Handle";
}

// A pair for `parallel`: in its argument, or stored before, with a literal input.
function isParallelPair(node) {
  if (node.elements.length === 2 && ts.isObjectLiteralExpression(unwrapped(node.elements[1]))) return true;
  return isIn(node.parent, (at) => ts.isCallExpression(at) && ts.isIdentifier(at.expression) && at.expression.text === "parallel");
}

// ---- diagnostics in the compiler's words

function diagnosticAt(node, code, messageText, declaration) {
  const file = node.getSourceFile(), start = node.getStart(file), stub = declaration?.getSourceFile();
  const name = declaration && (ts.getNameOfDeclaration(declaration) ?? declaration);
  const relatedInformation = isStub(stub) ? [{ file: stub, start: name.getStart(stub), code: 0, messageText: "" }] : [];
  return { file, start, length: node.end - start, code, messageText, relatedInformation };
}

function mismatch({ node, type }, target, declaration, checker) {
  const given = checker.typeToString(type), wanted = checker.typeToString(checker.getNonNullableType(target));
  return diagnosticAt(node, 2322, `Type '${given}' is not assignable to type '${wanted}'.`, declaration);
}

function unknownProperty(name, type, checker) {
  const key = keyOf(name), meant = checker.getSuggestedSymbolForNonexistentProperty(key, type), within = checker.typeToString(type);
  const [code, text] = meant
    ? [2561, `but '${key}' does not exist in type '${within}'. Did you mean to write '${meant.name}'?`]
    : [2353, `and '${key}' does not exist in type '${within}'.`];
  return diagnosticAt(name, code, `Object literal may only specify known properties, ${text}`, (meant ?? type.symbol)?.declarations?.[0]);
}

function missingProperty(literal, wanted, type, checker) {
  const text = `Property '${wanted.name}' is missing, but required in type '${checker.typeToString(type)}'.`;
  return diagnosticAt(literal, 2741, text, wanted.declarations?.[0]);
}

function missingInput(pair, tool) {
  return diagnosticAt(pair.elements[0], 2554, "Expected 1 argument, but got 0.", tool.declaration);
}

/** The compiler's mistakes and the input problems: of each call the more specific. Problems elsewhere than in the call are
 * reported there. */
function mergeInputDiagnostics(mistakes, findings) {
  const isWithin = (each, node) => each.start >= node.pos && each.start < node.end;
  let all = mistakes;
  for (const { call, problems } of findings) {
    const reported = mistakes.filter((each) => ASSIGNABILITY_CODES.has(each.code) && isWithin(each, call));
    if (problems.every((each) => isWithin(each, call)) && reported.length) continue;
    all = all.filter((each) => !reported.includes(each)).concat(problems);
  }
  return all;
}
