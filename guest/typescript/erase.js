// Type erasure: TypeScript to JavaScript with every line and column in place. Types become spaces; enums, namespaces and
// parameter properties are compiled within their own lines.

class Edits {
  constructor() { this.list = []; }
  replace(start, end, text) { this.list.push({ start, end, text, order: this.list.length }); }
  insert(at, text) { this.replace(at, at, text); }
  /** The edits applied to a text with the source's positions. */
  applyTo(text) {
    // Insertions come before the text at their position, or inside it.
    this.list.sort((a, b) => a.start - b.start || (a.end > a.start) - (b.end > b.start) || a.order - b.order);
    let out = "", at = 0;
    for (const { start, end, text: replacement } of this.list) {
      if (start < at) continue; // inside a replaced range
      out += text.slice(at, start) + replacement;
      at = end;
    }
    return out + text.slice(at);
  }
  /** The edits between two positions, relative to the first. */
  within(start, end) {
    const inner = new Edits();
    const found = this.list.filter((each) => each.start >= start && each.end <= end);
    for (const each of found) inner.replace(each.start - start, each.end - start, each.text);
    return inner;
  }
}

var isStarter = (node) => ts.isExpressionStatement(node) && (ts.isBlock(node.parent) || ts.isSourceFile(node.parent));

// An opening parenthesis that does not turn the previous line into a call.
function opening(node) {
  let at = node;
  while (at.parent && at.parent.pos === at.pos && ts.isExpression(at.parent)) at = at.parent;
  return isStarter(at.parent) && at.parent.pos === at.pos ? ";(" : "(";
}

// Text that would parse differently without the type before it: as a block, or as the end of `return`.
var READ_OTHERWISE = /^(?:\{|(?:function|class|async|let)\b)/;

// Values inside compiled syntax, whose types are erased too.
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
    // Enums come last: they are compiled from their members' erased initialisers.
    others.sort((a, b) => ts.isEnumDeclaration(a) - ts.isEnumDeclaration(b));
    for (const node of others) this.edit(node, blanked);
    for (const statement of this.file.statements) if (ts.isImportDeclaration(statement)) editImport(statement, this);
    for (const { at, text } of this.references) this.edits.insert(at, text);
    this.refuseUnsupported();
    return this.edits.applyTo(blanked);
  }

  /** Drops `export` from a namespace's declarations. */
  dropExports() {
    for (const statement of this.file.statements) {
      const keyword = (statement.modifiers ?? []).find((each) => each.kind === ts.SyntaxKind.ExportKeyword);
      const isLiteralKey = ts.isEnumDeclaration(statement) || ts.isModuleDeclaration(statement);
      if (keyword && hasValue(statement) && !isLiteralKey) this.edits.replace(keyword.getStart(this.file), keyword.end, "      ");
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
    } else if (ts.isAsExpression(node) || ts.isSatisfiesExpression(node)) { // without parentheses, operators would bind differently
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

  // Refuses syntax that would be left as is, and that the engine can't parse.
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

/** {code} or {problems}: the program without types; stubs tell which imported names are types. */
function erase(file, isSession, stubs) {
  const used = usedNames(file, isSession);
  for (const name of importedTypeNames(file, typeOnlyExports(stubs))) used.delete(name);
  const eraser = new Eraser(file, used, mergedNamespaceReferences(file));
  const code = eraser.run();
  return eraser.problems.length ? { problems: eraser.problems } : { code };
}

// ---- imports: dropped if only types use them, or nothing does; in a session, later programs may use the latter.

function isPropertyNamePosition(node) {
  const { parent } = node;
  return (ts.isPropertyAccessExpression(parent) || ts.isPropertyAssignment(parent) || ts.isMethodDeclaration(parent) ||
    ts.isPropertyDeclaration(parent)) && parent.name === node;
}

/** Names that the program uses as values; in a session, all that it does not use as types. */
function usedNames(file, isSession) {
  const used = new Set(isSession ? importedNames(file) : []);
  if (isSession) for (const name of typeNames(file)) used.delete(name);
  const visit = (node) => {
    if (ts.isImportDeclaration(node) || isType(node)) return;
    if (ts.isInterfaceDeclaration(node) || ts.isTypeAliasDeclaration(node)) return;
    if (ts.isHeritageClause(node) && node.token === ts.SyntaxKind.ImplementsKeyword) return;
    if (ts.isIdentifier(node) && !isPropertyNamePosition(node)) used.add(node.text);
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

/** Whether an import at a node is type-only: declared so, or by every use. */
function isTypeOnlyImport(node, { file, isTypeScript }) {
  const at = ts.findAncestor(node, (each) => ts.isImportSpecifier(each) || ts.isImportDeclaration(each));
  if (at === undefined || !isTypeScript) return false;
  if (ts.isImportDeclaration(at)) return at.importClause?.isTypeOnly === true;
  if (at.isTypeOnly || at.parent.parent.isTypeOnly) return true;
  const name = at.name.text;
  return typeNames(file).has(name) && !usedNames(file, false).has(name);
}

/** The names that stubs export only as types: module → names. */
function typeOnlyExports(files) {
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

/** The imported names that are type-only exports. */
function importedTypeNames(file, types) {
  const names = [];
  for (const { moduleSpecifier, importClause } of file.statements.filter(ts.isImportDeclaration)) {
    const bindings = importClause?.namedBindings, known = types.get(moduleSpecifier.text);
    if (!known || !bindings || !ts.isNamedImports(bindings)) continue;
    for (const each of bindings.elements) if (known.has((each.propertyName ?? each.name).text)) names.push(each.name.text);
  }
  return names;
}

/** Blanks the type-only and unused names of an import declaration. */
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

// ---- parameter properties: `constructor(private x: number) {}` assigns `this.x`.

var PROPERTY_MODIFIERS = new Set([
  ts.SyntaxKind.PublicKeyword, ts.SyntaxKind.PrivateKeyword, ts.SyntaxKind.ProtectedKeyword,
  ts.SyntaxKind.ReadonlyKeyword, ts.SyntaxKind.OverrideKeyword,
]);

var isSuperCall = (node) => ts.isCallExpression(node) && node.expression.kind === ts.SyntaxKind.SuperKeyword;

function superCalls(body) {
  const found = [];
  const visit = (node) => {
    if (isSuperCall(node)) found.push(node);
    if (ts.isArrowFunction(node) || !(ts.isFunctionLike(node) || ts.isClassLike(node))) ts.forEachChild(node, visit);
  };
  ts.forEachChild(body, visit);
  return found;
}

function editConstructor(node, { file, edits, blank }) {
  const names = [];
  for (const parameter of node.parameters) {
    const found = (parameter.modifiers ?? []).filter((each) => PROPERTY_MODIFIERS.has(each.kind));
    for (const each of found) edits.replace(each.getStart(file), each.end, blank(each.getStart(file), each.end));
    if (found.length && ts.isIdentifier(parameter.name)) names.push(parameter.name.text);
  }
  const calls = superCalls(node.body), scanProgram = names.map((name) => ` this.${name} = ${name};`).join("");
  if (calls.length === 0) edits.insert(node.body.getStart(file) + 1, scanProgram);
  for (const call of calls) {
    if (call.parent.parent === node.body && ts.isExpressionStatement(call.parent)) {
      edits.insert(call.parent.end, ";" + scanProgram);
    } else { // in an expression, whose value is `this`
      edits.insert(call.getStart(file), opening(call));
      edits.insert(call.end, `,${names.map((name) => ` this.${name} = ${name},`).join("")} this)`);
    }
  }
}

// ---- enums, within their own lines

var quoted = JSON.stringify;
var lineBreaks = (text) => text.replace(/[^\n]/g, "");

function memberName(member) {
  const { name } = member;
  return ts.isIdentifier(name) || ts.isStringLiteralLike(name) || ts.isNumericLiteral(name) ? name.text : undefined;
}

// An initialiser with references to earlier members qualified by the enum's name.
function memberValue(initialiser, name, earlier, blanked, eraser) {
  const { file } = eraser, start = initialiser.getStart(file), edits = eraser.edits.within(start, initialiser.end);
  const visit = (node) => {
    const isMember = ts.isIdentifier(node) && earlier.has(node.text) &&
      !(ts.isPropertyAccessExpression(node.parent) && node.parent.name === node);
    if (isType(node)) return;
    if (isMember) edits.insert(node.getStart(file) - start, `${name}.`);
    ts.forEachChild(node, visit);
  };
  visit(initialiser);
  return edits.applyTo(blanked.slice(start, initialiser.end));
}

// String members have no reverse mapping.
function isStringMember(node, texts) {
  if (ts.isParenthesizedExpression(node) || ts.isAssertionExpression(node) || ts.isSatisfiesExpression(node)) {
    return isStringMember(node.expression, texts);
  }
  if (ts.isStringLiteralLike(node) || ts.isTemplateExpression(node)) return true;
  if (ts.isIdentifier(node)) return texts.has(node.text);
  return ts.isBinaryExpression(node) && (isStringMember(node.left, texts) || isStringMember(node.right, texts));
}

// Adds the members of earlier declarations of the same enum.
function addEarlierMembers(node, earlier, texts) {
  const isSame = (each) => each.pos < node.pos && ts.isEnumDeclaration(each) && each.name.text === node.name.text;
  for (const member of node.parent.statements.filter(isSame).flatMap((each) => [...each.members])) {
    const key = memberName(member);
    if (key !== undefined) earlier.add(key);
    if (key !== undefined && member.initializer && isStringMember(member.initializer, texts)) texts.add(key);
  }
}

/** The enum's JavaScript; undefined if a member's name is computed. */
function enumText(node, blanked, eraser) {
  const { file } = eraser, name = node.name.text, earlier = new Set(), texts = new Set(), rows = [];
  let next = "0";
  addEarlierMembers(node, earlier, texts);
  for (const member of node.members) {
    const key = memberName(member), { initializer } = member;
    if (key === undefined) return undefined;
    const value = initializer ? memberValue(initializer, name, earlier, blanked, eraser) : next;
    if (initializer && isStringMember(initializer, texts)) {
      rows.push(`${name}[${quoted(key)}] = ${value};`);
      texts.add(key);
    } else {
      rows.push(`${name}[${name}[${quoted(key)}] = ${value}] = ${quoted(key)};`);
    }
    earlier.add(key);
    next = `${name}[${quoted(key)}] + 1`;
  }
  const text = `${declarationOf(node, file.statements)}(function (${name}) { ${rows.join(" ")} })(${name} || (${name} = {}));`;
  const lost = lineBreaks(blanked.slice(node.getStart(file), node.end)).length - lineBreaks(text).length;
  return text + "\n".repeat(Math.max(0, lost));
}

// ---- namespaces: bodies stay in place, exported names become properties of the namespace object.

var hasModifier = (node, kind) => (node.modifiers ?? []).some((each) => each.kind === kind);
var isExported = (node) => hasModifier(node, ts.SyntaxKind.ExportKeyword);
var isAmbient = (node) => hasModifier(node, ts.SyntaxKind.DeclareKeyword);

// Whether a statement leaves code after erasure.
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

// A property for each exported name, with a setter unless it is constant.
function exportedMembers(body) {
  const members = [];
  for (const statement of body.statements) {
    if (!isExported(statement) || !hasValue(statement)) continue;
    const names = new Set(), list = ts.isVariableStatement(statement) ? statement.declarationList : undefined;
    for (const each of list?.declarations ?? [statement]) if (each.name && !ts.isStringLiteral(each.name)) boundNames(each.name, names);
    const canBeSet = list !== undefined && (list.flags & ts.NodeFlags.Const) === 0;
    for (const name of names) members.push(memberOf(name, canBeSet));
  }
  return members;
}

// `var Name; `, unless a class or function of that name is merged with the namespace.
function declarationOf(node, statements) {
  const { text } = node.name;
  const isThere = statements.some((each) => each !== node && each.name?.text === text && hasValue(each) &&
    (ts.isClassDeclaration(each) || ts.isFunctionDeclaration(each)));
  return isThere ? "" : `var ${text}; `;
}

// Nested namespaces and enums that an earlier declaration of the namespace defined.
function mergedDeclarations(name, body) {
  const isMade = (each) => isExported(each) && hasValue(each) && (ts.isModuleDeclaration(each) || ts.isEnumDeclaration(each));
  const names = new Set(body.statements.filter(isMade).map((each) => each.name.text));
  return [...names].map((each) => `var ${each} = ${name}.${each}; `).join("");
}

function headOf(name, before, members) {
  return `(function (${name}) { ${before}Object.defineProperties(${name}, { ${members.join(", ")} });`;
}

var footOf = (name) => `})(${name} || (${name} = {}));`;

/** Compiles a namespace. Mutates the eraser's edits and problems. */
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
  head += headOf(name, mergedDeclarations(name, body), exportedMembers(body));
  // The body is erased as a program of its own, at the same positions.
  const before = eraser.blank(0, inside);
  const references = eraser.references.filter(({ at }) => at >= inside && at < end);
  const inner = new Eraser(parse(file.fileName, before + file.text.slice(inside, end)), eraser.used, references);
  inner.dropExports();
  const text = inner.run().slice(inside);
  eraser.problems.push(...inner.problems);
  edits.replace(start, body.end, head + lineBreaks(file.text.slice(start, inside)) + text + footOf(name) + foot);
}

// ---- merged namespaces: the exports of one declaration are in scope in the others by their plain names. Each declaration is
// compiled to a function, in which such a name is a property of the namespace.

// Whether any namespace has several declarations; if not, nothing needs to be resolved.
function hasMergedNamespaces(file) {
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

// The innermost namespace around a node.
var enclosingNamespace = (node) => ts.findAncestor(node, ts.isModuleDeclaration);

/** The qualifiers to insert before names exported by another declaration of their namespace: [{at, text}]. */
function mergedNamespaceReferences(file) {
  if (!hasMergedNamespaces(file)) return [];
  const found = [], checker = programOf({ [file.fileName]: file }).getTypeChecker();
  const namespaceOf = (part) => checker.getSymbolAtLocation(part.name);
  const visit = (node) => {
    if (isType(node) || ts.isInterfaceDeclaration(node) || ts.isTypeAliasDeclaration(node)) return;
    if (ts.isIdentifier(node) && !isPropertyNamePosition(node)) add(node);
    ts.forEachChild(node, visit);
  };
  const add = (node) => {
    const isShort = ts.isShorthandPropertyAssignment(node.parent);
    const symbol = isShort ? checker.getShorthandAssignmentValueSymbol(node.parent) : checker.getSymbolAtLocation(node);
    const home = enclosingNamespace(symbol?.declarations?.[0]?.parent);
    if (home === undefined || symbol.declarations.some((each) => each.name === node)) return;
    for (let part = enclosingNamespace(node); part && part !== home; part = enclosingNamespace(part.parent)) {
      if (namespaceOf(part) !== namespaceOf(home)) continue;
      const owner = part.name.text;
      found.push({ at: node.getStart(file), text: isShort ? `${node.text}: ${owner}.` : `${owner}.` });
      return;
    }
  };
  visit(file);
  return found;
}
