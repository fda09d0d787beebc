// From TypeScript to JavaScript with every line and column in its place: types become spaces. What has a meaning at run
// time (enums, namespaces, parameter properties) is written out within its own lines.

class Edits {
  constructor() { this.list = []; }
  replace(start, end, text) { this.list.push({ start, end, text, order: this.list.length }); }
  insert(at, text) { this.replace(at, at, text); }
  /** Of a text in which all positions are still those of the source. */
  applyTo(text) {
    this.list.sort((a, b) => a.start - b.start || a.order - b.order);
    let out = "", at = 0;
    for (const { start, end, text: replacement } of this.list) {
      if (start < at) continue; // inside something that was replaced as a whole
      out += text.slice(at, start) + replacement;
      at = end;
    }
    return out + text.slice(at);
  }
}

// ---- parameter properties

var PROPERTY_MODIFIERS = new Set([
  ts.SyntaxKind.PublicKeyword, ts.SyntaxKind.PrivateKeyword, ts.SyntaxKind.ProtectedKeyword,
  ts.SyntaxKind.ReadonlyKeyword, ts.SyntaxKind.OverrideKeyword,
]);

function isSuperCall(statement) {
  return ts.isExpressionStatement(statement) && ts.isCallExpression(statement.expression) &&
    statement.expression.expression.kind === ts.SyntaxKind.SuperKeyword;
}

function editConstructor(node, { file, edits, blank }) {
  const names = [];
  for (const parameter of node.parameters) {
    const found = (parameter.modifiers ?? []).filter((each) => PROPERTY_MODIFIERS.has(each.kind));
    for (const each of found) edits.replace(each.getStart(file), each.end, blank(each.getStart(file), each.end));
    if (found.length && ts.isIdentifier(parameter.name)) names.push(parameter.name.text);
  }
  const after = node.body.statements.find(isSuperCall);
  const assignments = names.map((name) => ` this.${name} = ${name};`).join("");
  edits.insert(after ? after.end : node.body.getStart(file) + 1, (after ? ";" : "") + assignments);
}

// ---- all of it

class Eraser {
  constructor(file, used) {
    this.file = file;
    this.used = used;
    this.edits = new Edits();
    this.problems = [];
    this.constructors = new Set();
    this.blank = (start, end) => file.text.slice(start, end).replace(/[^\n\r]/g, " ");
  }

  run() {
    const others = [];
    const blanked = eraseTypes(this.file, (node) => others.push(node));
    for (const node of others) this.edit(node, blanked);
    for (const statement of this.file.statements) if (ts.isImportDeclaration(statement)) editImport(statement, this);
    this.refuseDecorators();
    return this.edits.applyTo(blanked);
  }

  /** In a namespace, what is exported is declared and nothing else. */
  dropExports() {
    for (const statement of this.file.statements) {
      const keyword = (statement.modifiers ?? []).find((each) => each.kind === ts.SyntaxKind.ExportKeyword);
      const isWrittenOut = ts.isEnumDeclaration(statement) || ts.isModuleDeclaration(statement);
      if (keyword && hasValue(statement) && !isWrittenOut) this.edits.replace(keyword.getStart(this.file), keyword.end, "      ");
    }
  }

  refuse(node, message) {
    this.problems.push({ code: 0, ...place(this.file, node.getStart(this.file)), message });
  }

  edit(node, blanked) {
    const { file, edits } = this;
    const start = node.getStart(file);
    if (ts.isEnumDeclaration(node)) {
      const text = enumText(node, blanked, file, declarationOf(node, file.statements));
      if (text === undefined) this.refuse(node, "An enum's members have plain names here.");
      else edits.replace(start, node.end, text);
    } else if (ts.isModuleDeclaration(node)) {
      if (!editNamespace(node, this)) this.refuse(node, "A namespace has one plain name here: nest it instead.");
    } else if (ts.isImportEqualsDeclaration(node)) {
      const keyword = node.getFirstToken(file);
      if (isExported(node)) this.refuse(node, "`export import` is not supported: use a constant.");
      else if (node.isTypeOnly || !this.used.has(node.name.text)) edits.replace(start, node.end, this.blank(start, node.end));
      else edits.replace(keyword.getStart(file), keyword.end, "const ");
    } else if (ts.isAsExpression(node) || ts.isSatisfiesExpression(node)) { // without it, operators would bind otherwise
      edits.insert(start, "(");
      edits.replace(node.expression.end, node.end, ")" + this.blank(node.expression.end + 1, node.end));
    } else if (ts.isTypeAssertionExpression(node)) {
      const end = node.expression.getStart(file);
      edits.replace(start, end, this.blank(start, end));
    } else if (PROPERTY_MODIFIERS.has(node.kind)) {
      const made = node.parent.parent;
      if (!this.constructors.has(made)) editConstructor(made, this);
      this.constructors.add(made);
    } else if (ts.isExportAssignment(node)) {
      this.refuse(node, "`export =` is not supported: use `export default`.");
    } else {
      this.refuse(node, "This syntax is not supported here.");
    }
  }

  refuseDecorators() {
    if (!this.file.text.includes("@")) return;
    const visit = (node) => {
      if (ts.isDecorator(node)) this.refuse(node, "Decorators are not supported: call the function instead.");
      ts.forEachChild(node, visit);
    };
    visit(this.file);
  }
}

/** {code} or {problems}: the program without its types. */
function erase(file, isSession) {
  const eraser = new Eraser(file, usedNames(file, isSession));
  const code = eraser.run();
  return eraser.problems.length ? { problems: eraser.problems } : { code };
}
