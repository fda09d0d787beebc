// Imports that only types use: there is nothing to import for them when the program runs. What nothing uses is not
// imported either, except in a session, where a later program may.

function isNameOfProperty(node) {
  const { parent } = node;
  return (ts.isPropertyAccessExpression(parent) || ts.isPropertyAssignment(parent) || ts.isMethodDeclaration(parent) ||
    ts.isPropertyDeclaration(parent)) && parent.name === node;
}

/** Names that the program uses other than in types; in a session, all that it does not use in types. */
function usedNames(file, isSession) {
  const used = new Set(isSession ? importedNames(file) : []);
  if (isSession) for (const name of typeNames(file)) used.delete(name);
  const visit = (node) => {
    if (ts.isImportDeclaration(node) || isType(node)) return;
    if (ts.isInterfaceDeclaration(node) || ts.isTypeAliasDeclaration(node)) return;
    if (ts.isHeritageClause(node) && node.token === ts.SyntaxKind.ImplementsKeyword) return;
    if (ts.isIdentifier(node) && !isNameOfProperty(node)) used.add(node.text);
    ts.forEachChild(node, visit);
  };
  ts.forEachChild(file, visit);
  return used;
}

function importedNames(file) {
  const clauses = file.statements.filter(ts.isImportDeclaration).map((each) => each.importClause).filter(Boolean);
  return clauses.flatMap((clause) => localNames(clause).map((name) => name.text));
}

function typeNames(file) {
  const names = new Set();
  const visit = (node, isInType) => {
    if (ts.isIdentifier(node) && isInType) names.add(node.text);
    const isTypeHere = isInType || isType(node) || ts.isInterfaceDeclaration(node) || ts.isTypeAliasDeclaration(node);
    ts.forEachChild(node, (child) => visit(child, isTypeHere));
  };
  visit(file, false);
  return names;
}

function localNames(clause) {
  const { name, namedBindings } = clause;
  const named = namedBindings === undefined ? [] : ts.isNamespaceImport(namedBindings) ? [namedBindings.name]
    : namedBindings.elements.filter((each) => !each.isTypeOnly).map((each) => each.name);
  return name ? [name, ...named] : named;
}

/** Whether nothing is imported at a place when the program runs, because the author or every use says that it is a type. */
function isImportOfType(node, { file, isTypeScript }) {
  let at = node;
  while (at && !ts.isImportSpecifier(at) && !ts.isImportDeclaration(at)) at = at.parent;
  if (at === undefined || !isTypeScript) return false;
  if (ts.isImportDeclaration(at)) return at.importClause?.isTypeOnly === true;
  if (at.isTypeOnly || at.parent.parent.isTypeOnly) return true;
  const name = at.name.text;
  return typeNames(file).has(name) && !usedNames(file, false).has(name);
}

/** What stubs declare as types and nothing else: module → names. */
function typesOfModules(files) {
  const found = new Map();
  for (const module of files.flatMap((file) => file.statements.filter(ts.isModuleDeclaration))) {
    if (!ts.isStringLiteral(module.name) || !module.body) continue;
    const isOfTypes = (each) => ts.isInterfaceDeclaration(each) || ts.isTypeAliasDeclaration(each);
    const names = new Set(module.body.statements.filter(isOfTypes).map((each) => each.name.text));
    for (const each of module.body.statements) if (!isOfTypes(each) && each.name) names.delete(each.name.text);
    found.set(module.name.text, names);
  }
  return found;
}

/** The imported names that are types, wherever else a program uses such a name. */
function importedTypes(file, types) {
  const names = [];
  for (const { moduleSpecifier, importClause } of file.statements.filter(ts.isImportDeclaration)) {
    const bindings = importClause?.namedBindings, known = types.get(moduleSpecifier.text);
    if (!known || !bindings || !ts.isNamedImports(bindings)) continue;
    for (const each of bindings.elements) if (known.has((each.propertyName ?? each.name).text)) names.push(each.name.text);
  }
  return names;
}

/** Edits of an import declaration. */
function editImport(node, { file, edits, used, blank }) {
  const clause = node.importClause;
  if (!clause || clause.isTypeOnly) return;
  const isUnused = (name) => !used.has(name.text), bindings = clause.namedBindings;
  const isEmpty = bindings !== undefined && ts.isNamedImports(bindings) && bindings.elements.length === 0;
  if (!isEmpty && localNames(clause).every(isUnused)) {
    edits.replace(node.getStart(file), node.end, ";" + blank(node.getStart(file) + 1, node.end));
    return;
  }
  if (bindings === undefined || !ts.isNamedImports(bindings)) return;
  bindings.elements.forEach((each, index) => {
    if (each.isTypeOnly || !isUnused(each.name)) return;
    const next = bindings.elements[index + 1];
    const end = next ? next.getStart(file) : bindings.elements.hasTrailingComma ? bindings.elements.end : each.end;
    edits.replace(each.getStart(file), end, blank(each.getStart(file), end));
  });
}
