// What a program leaves to the next ones of its session: its names, with the types of what it imported from stubs.

function addNames(binding, names) {
  if (ts.isIdentifier(binding)) names[binding.text] = "any";
  else for (const element of binding.elements) if (!ts.isOmittedExpression(element)) addNames(element.name, names);
}

// The module that a constant is made of: `require("host:mcp-tracker")`, `await import("host:mcp-tracker")`.
function requiredModule({ initializer, parent }) {
  if (!initializer || !(parent.flags & ts.NodeFlags.Const)) return undefined;
  const isImport = ts.isAwaitExpression(initializer) && ts.isImportCall(initializer.expression);
  const call = isImport ? initializer.expression : isRequire(initializer);
  const specifier = call?.arguments[0];
  return specifier && ts.isStringLiteralLike(specifier) ? `import(${JSON.stringify(specifier.text)})` : undefined;
}

function addRequired({ name }, module, names) {
  if (ts.isIdentifier(name)) names[name.text] = `typeof ${module}`;
  else if (ts.isObjectBindingPattern(name)) for (const each of name.elements) {
    const isPlain = ts.isIdentifier(each.name) && !each.initializer && !each.dotDotDotToken;
    const taken = keyOf(each.propertyName ?? each.name) ?? "";
    if (isPlain && /^[\w$]+$/.test(taken)) names[each.name.text] = `typeof ${module}.${taken}`;
  }
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
      for (const each of statement.declarationList.declarations) {
        addNames(each.name, names);
        const module = requiredModule(each);
        if (module !== undefined) addRequired(each, module, names);
      }
    } else if (ts.isImportDeclaration(statement)) {
      addImports(statement, names);
    } else if (statement.name && ts.isIdentifier(statement.name)) {
      names[statement.name.text] = "any";
    }
  }
  return names;
}
