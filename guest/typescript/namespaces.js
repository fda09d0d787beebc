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

function memberOf(name, canBeSet) {
  const set = canBeSet ? `, set: (value) => { ${name} = value; }` : "";
  return `${name}: { get: () => ${name}${set}, enumerable: true, configurable: true }`;
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
      members.push(memberOf(name, canBeSet));
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

// What another part of the namespace has already made of the namespaces and enums in it.
function madeBefore(name, body) {
  const isMade = (each) => isExported(each) && hasValue(each) && (ts.isModuleDeclaration(each) || ts.isEnumDeclaration(each));
  const names = new Set(body.statements.filter(isMade).map((each) => each.name.text));
  return [...names].map((each) => `var ${each} = ${name}.${each}; `).join("");
}

function headOf(name, before, members) {
  return `(function (${name}) { ${before}Object.defineProperties(${name}, { ${members.join(", ")} });`;
}

var footOf = (name) => `})(${name} || (${name} = {}));`;

/** Edits of a namespace. */
function editNamespace(node, eraser) {
  const { file, edits } = eraser, start = node.getStart(file);
  let head = declarationOf(node, file.statements), foot = "", { body } = node, name = node.name.text;
  for (; ts.isModuleDeclaration(body); { body } = body) { // `namespace A.B`
    const inner = body.name.text;
    head += headOf(name, `var ${inner} = ${name}.${inner}; `, [memberOf(inner, false)]);
    foot = ` ${footOf(name)}${foot}`;
    name = inner;
  }
  const inside = body.getStart(file) + 1, end = body.end - 1;
  head += headOf(name, madeBefore(name, body), exportedMembers(body));
  // What is inside is erased as a program of its own, in which it has the same place.
  const before = eraser.blank(0, inside);
  const references = eraser.references.filter(({ at }) => at >= inside && at < end);
  const inner = new Eraser(parse(file.fileName, before + file.text.slice(inside, end)), eraser.used, references);
  inner.dropExports();
  const text = inner.run().slice(inside);
  eraser.problems.push(...inner.problems);
  edits.replace(start, body.end, head + lineBreaks(file.text.slice(start, inside)) + text + footOf(name) + foot);
}
