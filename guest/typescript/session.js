// What a program leaves to the next ones of its session: its names, with the types of what it imported from stubs.

function addNames(binding, names) {
  if (ts.isIdentifier(binding)) names[binding.text] = "any";
  else for (const element of binding.elements) if (!ts.isOmittedExpression(element)) addNames(element.name, names);
}

function addImports(node, names) {
  const clause = node.importClause;
  if (!clause || !ts.isStringLiteral(node.moduleSpecifier)) return;
  const module = `import(${JSON.stringify(node.moduleSpecifier.text)})`;
  if (clause.name) names[clause.name.text] = `typeof ${module}`;
  const bindings = clause.namedBindings;
  if (bindings === undefined) return;
  if (ts.isNamespaceImport(bindings)) names[bindings.name.text] = `typeof ${module}`;
  else for (const each of bindings.elements) {
    const imported = (each.propertyName ?? each.name).text;
    names[each.name.text] = /^[\w$]+$/.test(imported) ? `typeof ${module}.${imported}` : "any";
  }
}

/** Name → its type, as a declaration would say it. */
function declaredNames(file) {
  const names = {};
  for (const statement of file.statements) {
    if (ts.isVariableStatement(statement)) {
      for (const each of statement.declarationList.declarations) addNames(each.name, names);
    } else if (ts.isImportDeclaration(statement)) {
      addImports(statement, names);
    } else if (statement.name && ts.isIdentifier(statement.name)) {
      names[statement.name.text] = "any";
    }
  }
  return names;
}
