// Namespaces in several parts: what one part exports, the others use by its plain name. Each part becomes a function of
// its own here, in which that name is a property of the namespace.

// Whether some name is given to more than one namespace: mostly it is not, and then nothing needs to be resolved.
function hasParts(file) {
  const seen = new Set();
  let isTwice = false;
  const visit = (node) => {
    if (ts.isModuleDeclaration(node)) {
      isTwice ||= seen.has(node.name.text);
      seen.add(node.name.text);
    }
    if (!isTwice) ts.forEachChild(node, visit);
  };
  if (/\b(?:namespace|module)\b/.test(file.text)) visit(file);
  return isTwice;
}

// The part of a namespace that something stands in.
function partOf(node) {
  while (node && !ts.isModuleDeclaration(node)) node = node.parent;
  return node;
}

/** What to put before names that another part of their namespace exports: [{at, text}]. */
function referencesBetweenParts(file) {
  if (!hasParts(file)) return [];
  const found = [], checker = programOf({ [file.fileName]: file }).getTypeChecker();
  const namespaceOf = (part) => checker.getSymbolAtLocation(part.name);
  const visit = (node) => {
    if (isType(node) || ts.isInterfaceDeclaration(node) || ts.isTypeAliasDeclaration(node)) return;
    if (ts.isIdentifier(node) && !isNameOfProperty(node)) add(node);
    ts.forEachChild(node, visit);
  };
  const add = (node) => {
    const isShort = ts.isShorthandPropertyAssignment(node.parent);
    const symbol = isShort ? checker.getShorthandAssignmentValueSymbol(node.parent) : checker.getSymbolAtLocation(node);
    const home = partOf(symbol?.declarations?.[0]?.parent);
    if (home === undefined || symbol.declarations.some((each) => each.name === node)) return;
    for (let part = partOf(node); part && part !== home; part = partOf(part.parent)) {
      if (namespaceOf(part) !== namespaceOf(home)) continue;
      const owner = part.name.text;
      found.push({ at: node.getStart(file), text: isShort ? `${node.text}: ${owner}.` : `${owner}.` });
      return;
    }
  };
  visit(file);
  return found;
}
