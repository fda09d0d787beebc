// What TypeScript's own parser sees in each file. Given the directory with TypeScript as an argument and file
// names as JSON on stdin, answers with {file: facts}: tests decide what may be there.
import { createRequire } from "node:module";
import { readFileSync } from "node:fs";

const ts = createRequire(`${process.argv[2]}/`)("typescript");
// Some kinds have a second name that says where a range of them begins or ends.
const kindNames = new Map(
  Object.entries(ts.SyntaxKind)
    .filter(([name, kind]) => typeof kind === "number" && !/^(First|Last)[A-Z]/.test(name))
    .map(([name, kind]) => [kind, name]),
);
const isString = (kind) => kind === ts.SyntaxKind.StringLiteral || kind === ts.SyntaxKind.NoSubstitutionTemplateLiteral;

// Every token in order, comments left out, strings emptied: two stubs that differ in text only have the same.
function tokens(text) {
  const scanner = ts.createScanner(ts.ScriptTarget.ES2022, true, ts.LanguageVariant.Standard, text);
  const found = [];
  for (let kind = scanner.scan(); kind !== ts.SyntaxKind.EndOfFileToken; kind = scanner.scan())
    found.push(isString(kind) ? '""' : scanner.getTokenText());
  return found;
}

function comments(text) {
  const scanner = ts.createScanner(ts.ScriptTarget.ES2022, false, ts.LanguageVariant.Standard, text);
  const found = [];
  for (let kind = scanner.scan(); kind !== ts.SyntaxKind.EndOfFileToken; kind = scanner.scan())
    if (kind === ts.SyntaxKind.MultiLineCommentTrivia || kind === ts.SyntaxKind.SingleLineCommentTrivia)
      found.push(scanner.getTokenText());
  return found;
}

function role(node) {
  const parent = node.parent;
  if (ts.isPropertySignature(parent) && parent.name === node) return "property";
  if (ts.isFunctionDeclaration(parent) && parent.name === node) return "function";
  if (ts.isParameter(parent) && parent.name === node) return "parameter";
  if (ts.isVariableDeclaration(parent) && parent.name === node) return "variable";
  const declares = ts.isInterfaceDeclaration(parent) || ts.isTypeAliasDeclaration(parent) || ts.isClassDeclaration(parent);
  if (declares && parent.name === node) return "type";
  return "reference";
}

function stringRole(node) {
  const parent = node.parent;
  if (ts.isModuleDeclaration(parent) || ts.isImportDeclaration(parent) || ts.isExportDeclaration(parent)) return "module";
  if (ts.isLiteralTypeNode(parent) && ts.isImportTypeNode(parent.parent)) return "module";
  if (ts.isPropertySignature(parent) && parent.name === node) return "property";
  return "literal";
}

function facts(file) {
  const text = readFileSync(file, "utf8");
  const source = ts.createSourceFile(file, text, ts.ScriptTarget.ES2022, true);
  const found = {
    errors: source.parseDiagnostics.map((item) => ts.flattenDiagnosticMessageText(item.messageText, "\n")),
    directives: [
      ...source.referencedFiles,
      ...source.typeReferenceDirectives,
      ...source.libReferenceDirectives,
      ...(source.commentDirectives ?? []),
      ...(source.checkJsDirective ? [source.checkJsDirective] : []),
    ].length,
    kinds: [],
    identifiers: [],
    strings: [],
    tags: [],
    tokens: tokens(text),
    comments: comments(text),
  };
  const kinds = new Set();
  (function visit(node) {
    kinds.add(kindNames.get(node.kind));
    if (ts.isIdentifier(node)) found.identifiers.push([role(node), node.text]);
    if (isString(node.kind)) found.strings.push([stringRole(node), node.text]);
    for (const tag of ts.getJSDocTags(node)) found.tags.push([tag.tagName.text, node.name?.text ?? ""]);
    ts.forEachChild(node, visit);
  })(source);
  found.kinds = [...kinds].sort();
  return found;
}

const files = JSON.parse(readFileSync(0, "utf8"));
process.stdout.write(JSON.stringify(Object.fromEntries(files.map((file) => [file, facts(file)]))));
