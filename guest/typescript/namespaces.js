// Namespaces as JavaScript: what is inside stays where it is, and what is exported can be reached from outside.

var hasModifier = (node, kind) => (node.modifiers ?? []).some((each) => each.kind === kind);
var isExported = (node) => hasModifier(node, ts.SyntaxKind.ExportKeyword);
var isAmbient = (node) => hasModifier(node, ts.SyntaxKind.DeclareKeyword);

// Whether something is left of a statement when its types are gone.
function hasValue(node) {
  if (ts.isInterfaceDeclaration(node) || ts.isTypeAliasDeclaration(node) || isAmbient(node)) return false;
  if (!ts.isModuleDeclaration(node)) return true;
  const { body } = node;
  return body !== undefined && (ts.isModuleBlock(body) ? body.statements.some(hasValue) : hasValue(body));
}

// Each exported name as a property of the namespace, which can be set if it can be assigned inside.
function exportedMembers(body) {
  const members = [];
  for (const statement of body.statements) {
    if (!isExported(statement) || !hasValue(statement)) continue;
    const names = {}, list = ts.isVariableStatement(statement) ? statement.declarationList : undefined;
    if (list) for (const each of list.declarations) addNames(each.name, names);
    else if (statement.name) names[statement.name.text] = "any";
    const canBeSet = list !== undefined && (list.flags & ts.NodeFlags.Const) === 0;
    for (const name of Object.keys(names)) {
      const set = canBeSet ? `, set: (value) => { ${name} = value; }` : "";
      members.push(`${name}: { get: () => ${name}${set}, enumerable: true, configurable: true }`);
    }
  }
  return members;
}

// `var Name; `, unless something else of that name is there to be added to.
function declarationOf(node, statements) {
  const { text } = node.name;
  const isThere = statements.some((each) => each !== node && each.name?.text === text && hasValue(each) &&
    (ts.isClassDeclaration(each) || ts.isFunctionDeclaration(each)));
  return isThere ? "" : `var ${text}; `;
}

/** Edits of a namespace; false for one that can't be written so. */
function editNamespace(node, eraser) {
  const { file, edits } = eraser, { body } = node;
  if (!body || !ts.isModuleBlock(body) || !ts.isIdentifier(node.name)) return false;
  const name = node.name.text, start = node.getStart(file), inside = body.getStart(file) + 1, end = body.end - 1;
  const head = `${declarationOf(node, file.statements)}(function (${name}) { ` +
    `Object.defineProperties(${name}, { ${exportedMembers(body).join(", ")} });`;
  // What is inside is erased as a program of its own, in which it has the same place.
  const before = eraser.blank(0, inside);
  const inner = new Eraser(parse(file.fileName, before + file.text.slice(inside, end)), eraser.used);
  inner.dropExports();
  const text = inner.run().slice(inside);
  eraser.problems.push(...inner.problems);
  edits.replace(start, body.end, head + lineBreaks(file.text.slice(start, inside)) + text + `})(${name} || (${name} = {}));`);
  return true;
}
