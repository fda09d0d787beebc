// Promises that were not awaited: where that was forgotten, rather than where it shows.

var isPromise = ({ symbol }) =>
  symbol?.name === "Promise" && libraryFiles.has(symbol.declarations?.[0]?.getSourceFile().fileName);

var promiseOr = (type, checker) =>
  isPromise(type) || (checker.isArrayLikeType(type) && isPromise(type.getNumberIndexType() ?? type));

// Whether the program waits for a variable somewhere, or hands it on for that: then it is a promise on purpose.
function isWaitedFor(variable, program) {
  const name = variable.replace(/\$/g, "\\$");
  const waits = new RegExp(`\\bawait\\s+\\(?${name}\\b|\\b${name}\\s*\\.\\s*(?:then|catch|finally)\\b|\\breturn\\s+${name}\\s*[;}\\n]|` +
    `\\bPromise\\s*\\.\\s*\\w+\\s*\\(\\s*\\[?[^()]*\\b${name}\\b|\\bfor\\s+await\\b[^{]*\\b${name}\\b`);
  return waits.test(program.file.text);
}

// What a value that shows to be a promise was made of: the call that nobody waits for.
function notAwaited(node, checker, program, steps = 0) {
  let at = unwrapped(node);
  while (ts.isElementAccessExpression(at) || isCalled(at, /^(?:at|find|filter|slice|pop|shift)$/)) {
    at = unwrapped(ts.isCallExpression(at) ? at.expression.expression : at.expression);
  }
  if (!ts.isIdentifier(at) || steps > MOST_STEPS || !promiseOr(checker.getTypeAtLocation(at), checker)) return undefined;
  const declaration = checker.getSymbolAtLocation(at)?.valueDeclaration;
  if (declaration?.getSourceFile() !== program.file || program.changed.has(at.text)) return undefined;
  const again = (each) => notAwaited(each, checker, program, steps + 1);
  if (ts.isVariableDeclaration(declaration)) {
    const loop = declaration.parent.parent;
    if (ts.isForOfStatement(loop)) return again(loop.expression);
    if (declaration.initializer === undefined || declaration.type || isWaitedFor(at.text, program)) return undefined;
    return again(declaration.initializer) ?? declaration.initializer;
  }
  if (!ts.isParameter(declaration)) return undefined;
  const call = declaration.parent.parent;
  return ts.isCallExpression(call) && isCalled(call, GOES_THROUGH) ? again(call.expression.expression) : undefined;
}

var isOfAnotherKind = (one, other, checker) =>
  haveNoKindInCommon(checker.getTypeAtLocation(one), checker.getTypeAtLocation(other), checker);

/** A mistake where it was made, if that is a call before it that was not awaited. */
function whereForgotten(diagnostic, checker, program) {
  const node = innermost(diagnostic.file, diagnostic.start, diagnostic.length);
  const choice = diagnostic.code === 2678 ? node.parent.parent.parent : undefined; // what no case of a switch is
  if (choice && ts.isSwitchStatement(choice) && isOfAnotherKind(choice.expression, node, checker)) {
    return movedTo(choice.expression, diagnostic);
  }
  const used = OF_PROPERTIES.has(diagnostic.code) ? ownerOf(node, checker).expression : valueAt(node);
  const made = used && notAwaited(used, checker, program);
  if (made === undefined) return diagnostic;
  return movedTo(made, diagnostic, /forget to use 'await'/.test(messageOf(diagnostic)) ? "" : " Did you forget to use 'await'?");
}

/** Promises that are written into texts: `${get_issue({ id: 1 })}`. The compiler does not mind. */
function writtenPromises(checker, program) {
  const found = [];
  const visit = (node) => {
    if (ts.isTemplateSpan(node) && isPromise(checker.getTypeAtLocation(node.expression))) {
      found.push(complaint(node.expression, 2801, "This is a promise, and not yet its value. Did you forget to use 'await'?"));
    }
    ts.forEachChild(node, visit);
  };
  visit(program.file);
  return found;
}
