// The line of the stubs that a mistake offends: what the author should have read.

function lineOf(file, position) {
  const { line } = file.getLineAndCharacterOfPosition(position);
  const starts = file.getLineStarts();
  const end = line + 1 < starts.length ? starts[line + 1] : file.text.length;
  return { file: file.fileName.slice(1), line: line + 1, text: file.text.slice(starts[line], end).trim() };
}

var isStub = (file) => file !== undefined && file.isDeclarationFile && !libraryFiles.has(file.fileName);

function lineOfDeclaration(declarations) {
  const found = declarations?.find((each) => isStub(each.getSourceFile()));
  if (found === undefined) return undefined;
  const name = ts.getNameOfDeclaration(found) ?? found;
  return lineOf(found.getSourceFile(), name.getStart());
}

function lineOfType(type) {
  if (type === undefined) return undefined;
  if (type.isUnion()) {
    for (const each of type.types) {
      const found = lineOfType(each);
      if (found) return found;
    }
  }
  const element = type.symbol?.name === "Array" || type.symbol?.name === "Promise" ? type.typeArguments?.[0] : undefined;
  return lineOfDeclaration((type.aliasSymbol ?? type.symbol)?.declarations) ?? lineOfType(element);
}

function lineOfCall(node, checker) {
  for (let at = node; at && !ts.isStatement(at); at = at.parent) {
    if (ts.isCallExpression(at)) {
      const found = lineOfDeclaration([checker.getResolvedSignature(at)?.declaration].filter(Boolean)) ??
        lineOfDeclaration(checker.getSymbolAtLocation(at.expression)?.declarations);
      if (found) return found;
    }
  }
  return undefined;
}

function lineOfProperty(node, checker) {
  return lineOfDeclaration(checker.getSymbolAtLocation(ts.isPropertyAccessExpression(node) ? node.name : node)?.declarations);
}

var SUGGESTED = /Did you mean '([^']+)'\?/;

// The export that was meant, or the first line of the module.
function lineOfImport(node, message, checker) {
  for (let at = node; at; at = at.parent) {
    if (!ts.isImportDeclaration(at) && !ts.isCallExpression(at)) continue;
    const specifier = ts.isImportDeclaration(at) ? at.moduleSpecifier : at.arguments[0];
    const module = specifier && checker.getSymbolAtLocation(specifier);
    const meant = SUGGESTED.exec(message)?.[1];
    return lineOfDeclaration(module?.exports?.get(meant)?.declarations) ?? lineOfDeclaration(module?.declarations);
  }
  return undefined;
}

// The property that was meant, or the type that does not have what was asked for; of a module, its first line.
function lineOfOwner({ expression, type }, message, checker) {
  const meant = SUGGESTED.exec(message)?.[1];
  const line = meant && lineOfDeclaration(checker.getPropertyOfType(type, meant)?.declarations);
  const found = line ?? lineOfType(type);
  if (found || expression === undefined) return found;
  const module = checker.getSymbolAtLocation(expression);
  return lineOfDeclaration(module && (module.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(module) : module)?.declarations);
}

var OF_EXPORTS = new Set([2305, 2724, 2459, 2460, 2614]);

/** {file, line, text}, or undefined when the mistake has nothing to do with stubs. */
function stubLine(diagnostic, message, checker) {
  if (OF_NAMES.has(diagnostic.code)) return undefined; // whatever it is given to
  for (const related of diagnostic.relatedInformation ?? []) {
    if (isStub(related.file)) return lineOf(related.file, related.start);
  }
  const node = innermost(diagnostic.file, diagnostic.start, diagnostic.length);
  if (OF_EXPORTS.has(diagnostic.code)) return lineOfImport(node, message, checker);
  const isRead = OF_PROPERTIES.has(diagnostic.code) || OF_INDICES.has(diagnostic.code);
  const owner = isRead ? ownerOf(ts.isElementAccessExpression(node) ? node.argumentExpression : node, checker) : {};
  if (owner.type !== undefined) return lineOfOwner(owner, message, checker);
  const both = OF_COMPARISONS.has(diagnostic.code) ? compared(node) : undefined;
  if (both !== undefined) return lineOfProperty(both[0], checker) ?? lineOfProperty(both[1], checker);
  return lineOfCall(node, checker) ?? lineOfType(ts.isExpression(node) ? checker.getTypeAtLocation(node) : undefined);
}
