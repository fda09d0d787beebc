// From TypeScript to JavaScript with every line and column in its place: types become spaces. What has a meaning at run
// time (enums, namespaces, parameter properties) is written out within its own lines.

class Edits {
  constructor() { this.list = []; }
  replace(start, end, text) { this.list.push({ start, end, text, order: this.list.length }); }
  insert(at, text) { this.replace(at, at, text); }
  /** Of a text in which all positions are still those of the source. */
  applyTo(text) {
    // What is inserted comes before what stands there, or is inside it.
    this.list.sort((a, b) => a.start - b.start || (a.end > a.start) - (b.end > b.start) || a.order - b.order);
    let out = "", at = 0;
    for (const { start, end, text: replacement } of this.list) {
      if (start < at) continue; // inside something that was replaced as a whole
      out += text.slice(at, start) + replacement;
      at = end;
    }
    return out + text.slice(at);
  }
  /** Those between two places, as edits of the text from the first to the second. */
  within(start, end) {
    const inner = new Edits();
    const found = this.list.filter((each) => each.start >= start && each.end <= end);
    for (const each of found) inner.replace(each.start - start, each.end - start, each.text);
    return inner;
  }
}

var isStarter = (node) => ts.isExpressionStatement(node) && (ts.isBlock(node.parent) || ts.isSourceFile(node.parent));

// A parenthesis that does not become a call of what the line before ends with.
function opening(node) {
  let at = node;
  while (at.parent && at.parent.pos === at.pos && ts.isExpression(at.parent)) at = at.parent;
  return isStarter(at.parent) && at.parent.pos === at.pos ? ";(" : "(";
}

// Without its types, what would be read otherwise: as a block, or as the end of `return`.
var READ_OTHERWISE = /^(?:\{|(?:function|class|async|let)\b)/;

// ---- all of it

// What has types to be erased inside of what is written out here.
function valuesIn(node) {
  if (ts.isEnumDeclaration(node)) return node.members.map((each) => each.initializer).filter(Boolean);
  return ts.isAsExpression(node) || ts.isSatisfiesExpression(node) ? [node.expression] : [];
}

class Eraser {
  constructor(file, used, references) {
    this.file = file;
    this.used = used;
    this.references = references;
    this.edits = new Edits();
    this.problems = [];
    this.constructors = new Set();
    this.blank = (start, end) => file.text.slice(start, end).replace(/[^\n\r]/g, " ");
  }

  run() {
    const others = [];
    const blanked = eraseTypes(this.file, (node) => {
      others.push(node);
      for (const inner of valuesIn(node)) eraseTypes.visitor(inner);
    });
    // An enum is made of what is left of its members' values.
    others.sort((a, b) => ts.isEnumDeclaration(a) - ts.isEnumDeclaration(b));
    for (const node of others) this.edit(node, blanked);
    for (const statement of this.file.statements) if (ts.isImportDeclaration(statement)) editImport(statement, this);
    for (const { at, text } of this.references) this.edits.insert(at, text);
    this.refuseUnsupported();
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
      const text = enumText(node, blanked, this);
      if (text === undefined) this.refuse(node, "An enum's members have plain names here.");
      else edits.replace(start, node.end, text);
    } else if (ts.isModuleDeclaration(node)) {
      editNamespace(node, this);
    } else if (ts.isImportEqualsDeclaration(node)) {
      const keyword = node.getFirstToken(file);
      if (isExported(node)) this.refuse(node, "`export import` is not supported: use a constant.");
      else if (node.isTypeOnly || !this.used.has(node.name.text)) edits.replace(start, node.end, this.blank(start, node.end));
      else edits.replace(keyword.getStart(file), keyword.end, "const ");
    } else if (ts.isAsExpression(node) || ts.isSatisfiesExpression(node)) { // without it, operators would bind otherwise
      edits.insert(start, opening(node));
      edits.replace(node.expression.end, node.end, ")" + this.blank(node.expression.end + 1, node.end));
    } else if (ts.isTypeAssertionExpression(node)) {
      const end = node.expression.getStart(file), gone = this.blank(start, end);
      const isOpened = /[\n\r]/.test(gone) || READ_OTHERWISE.test(file.text.slice(end, end + 9));
      edits.replace(start, end, isOpened ? opening(node) + gone.slice(1) : gone);
      if (isOpened) edits.insert(node.end, ")");
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

  // What would be left as it is, and is no JavaScript of our engine's.
  refuseUnsupported() {
    if (!/@|\baccessor\b/.test(this.file.text)) return;
    const visit = (node) => {
      if (ts.isDecorator(node)) this.refuse(node, "Decorators are not supported: call the function instead.");
      if (node.kind === ts.SyntaxKind.AccessorKeyword) {
        this.refuse(node, "`accessor` is not supported: write a getter and a setter.");
      }
      ts.forEachChild(node, visit);
    };
    visit(this.file);
  }
}

/** {code} or {problems}: the program without its types, some of which its stubs know. */
function erase(file, isSession, stubs) {
  const used = usedNames(file, isSession);
  for (const name of importedTypes(file, typesOfModules(stubs))) used.delete(name);
  const eraser = new Eraser(file, used, referencesBetweenParts(file));
  const code = eraser.run();
  return eraser.problems.length ? { problems: eraser.problems } : { code };
}
