// Where a value does not fit: whether that is sure to go wrong, or only more than the compiler can know.

// Does not fit: an argument, a property, a number of arguments.
var OF_FIT = new Set([2345, 2554, 2555, 2769, 2559, 2560, 2322, 2353, 2561, 2739, 2740, 2741, 2820]);

// The message's parts, from the general to the particular.
function parts(diagnostic) {
  const found = [];
  let chain = diagnostic.messageText;
  while (typeof chain === "object") {
    found.push(chain.messageText);
    chain = chain.next && chain.next[0];
  }
  if (typeof chain === "string") found.push(chain);
  return found;
}

var POSSIBLY_NOTHING = /(?:\| |')(?:undefined|null)(?: \||'|;)|\?:/;
var NOTHING_DOES_NOT_FIT = /^Type '(?:undefined|null|undefined \| null|null \| undefined)' is not assignable to type /;

// A value that may be null or undefined is often known not to be: only one that surely is counts.
function isOnlyPossiblyNothing(texts) {
  const last = texts[texts.length - 1];
  return texts.length > 1 && NOTHING_DOES_NOT_FIT.test(last) && POSSIBLY_NOTHING.test(texts[texts.length - 2]);
}

var WIDE = /(?:Type|Argument of type) '(?:string|number|string \| number)' is not assignable to (?:type|parameter of type) '([^]*)'\.$/;
var LITERALS = /^(?:(?:"(?:[^"\\]|\\.)*"|-?[\d.e+]+|undefined|null)(?: \| |$))+$/;
var LENGTH = /^(?:Target|Source) (?:requires|has) \d+ element\(s\) but (?:source may have fewer|target allows only \d+|source may have more)/;

// A text that was written out elsewhere is any text to the compiler, and a list one of any length.
function isOnlyWide(texts, files) {
  const last = texts[texts.length - 1];
  if (LENGTH.test(last)) return true;
  const target = WIDE.exec(last)?.[1];
  return target !== undefined && (LITERALS.test(target) || isNameOfLiterals(target, files));
}

function isNameOfLiterals(name, files) {
  const isLiteral = (type) => ts.isLiteralTypeNode(type) || (ts.isUnionTypeNode(type) && type.types.every(isLiteral));
  const visit = (node) => ts.isTypeAliasDeclaration(node) ? node.name.text === name && isLiteral(node.type)
    : ts.isSourceFile(node) || ts.isModuleDeclaration(node) || ts.isModuleBlock(node) ? ts.forEachChild(node, visit) || false
    : false;
  return /^\w+$/.test(name) && files.some((file) => isStub(file) && visit(file));
}

function isArgumentOf(call, node) {
  return (call.arguments ?? []).some((each) => each.pos <= node.pos && each.end >= node.end);
}

// Whose function a value is given to: "stub", "program" or "library"; undefined if to none.
function receiver(node, checker) {
  let isInside = false; // of a function, such as the callback of a call that takes anything
  for (let at = node; at; at = at.parent) {
    if (ts.isFunctionLike(at) && at !== node) isInside = true;
    const isCall = ts.isCallExpression(at) || ts.isNewExpression(at);
    if (!isCall || !(at === node || isArgumentOf(at, node) || at.expression === node || at.expression.name === node)) continue;
    const file = checker.getResolvedSignature(at)?.declaration?.getSourceFile();
    const whose = file === undefined || libraryFiles.has(file.fileName) ? "library" : isStub(file) ? "stub" : "program";
    if (whose === "library" && isInside) {
      isInside = false;
      continue;
    }
    return whose;
  }
  return undefined;
}

// The value at a place that is complained about: a property's, where its name is.
function valueAt(node) {
  const { parent } = node;
  if (ts.isPropertyAssignment(parent) && parent.name === node) return parent.initializer;
  return ts.isExpression(node) ? node : undefined;
}

// A value of several types, some of which are right: which one it is, the program may know.
function isPartlyRight(node, checker) {
  const value = valueAt(node);
  const source = value && checker.getTypeAtLocation(value), target = value && checker.getContextualType(value);
  if (!source || !target || !source.isUnion()) return false;
  return source.types.some((each) => checker.isTypeAssignableTo(each, target));
}

var MISSING = /Property '([^']+)' is missing in type/;
var MISSING_SEVERAL = /is missing the following properties from type '[^]*': (.*)$/;

// `const input = {}; input.city = "Oslo"`: what is missing at first is given later.
function isGivenLater(texts, assigned) {
  const last = texts[texts.length - 1];
  const names = MISSING.exec(last)?.[1] ?? MISSING_SEVERAL.exec(last)?.[1];
  return names !== undefined && names.split(/, | and /).some((name) => assigned.has(name.trim()));
}

/** The call that a value is given to. */
function callOf(node) {
  for (let at = node; at; at = at.parent) if (ts.isCallExpression(at) || ts.isNewExpression(at)) return at;
  return undefined;
}

// What comes out of a call that the compiler did not understand is a guess, also when it went through a variable.
function isGuess(node, checker, misunderstood) {
  const holds = (within) => misunderstood.some((call) => call.pos >= within.pos && call.end <= within.end);
  if (holds(node)) return true;
  while (!ts.isIdentifier(node)) {
    const inner = node.expression;
    if (inner === undefined) return false;
    node = inner;
  }
  const declaration = checker.getSymbolAtLocation(node)?.valueDeclaration;
  return declaration !== undefined && ts.isVariableDeclaration(declaration) && declaration.initializer !== undefined &&
    holds(declaration.initializer);
}

/** Whether a value that does not fit will surely be refused. */
function isSureMisfit(diagnostic, node, checker, program) {
  const texts = parts(diagnostic);
  const message = ts.flattenDiagnosticMessageText(diagnostic.messageText, "\n");
  if (isOnlyPossiblyNothing(texts) || isOnlyWide(texts, program.files) || isGivenLater(texts, program.assigned)) return false;
  if (/type 'never'|type 'Handle'|'Handle' is not assignable/.test(message)) return false;
  if (isPartlyRight(node, checker)) return false;
  const whose = receiver(node, checker);
  if (whose === "library") return false; // JavaScript's own functions take nearly everything
  return whose === "stub" || program.isTypeScript;
}
