// Reports: a diagnostic's position (1-based), its message, and the line of the stubs that it violates.

// Columns count code points and lines end at CR, LF or CRLF, as in editors and in Python.
function place(file, position) {
  const lines = file.text.slice(0, position).split(/\r\n?|\n/);
  return { line: lines.length, column: [...lines.at(-1)].length + 1 };
}

var MAX_MESSAGE = 600;

function messageOf(diagnostic) {
  const text = ts.flattenDiagnosticMessageText(diagnostic.messageText, "\n");
  const more = (diagnostic.relatedInformation ?? [])
    .filter((each) => each.code === 2773 || each.code === 6212) // Did you forget to use 'await'? Did you mean to call this expression?
    .map((each) => ts.flattenDiagnosticMessageText(each.messageText, "\n"));
  const whole = [text, ...more].join("\n");
  return whole.length > MAX_MESSAGE ? whole.slice(0, MAX_MESSAGE) + "…" : whole;
}

// The compiler suggests nothing for destructured properties: `const { titel } = …`.
function suggestion(node, { type }, checker) {
  const key = ts.isPropertyAccessExpression(node.parent) ? undefined : keyOf(node);
  const meant = key !== undefined && type && checker.getSuggestedSymbolForNonexistentProperty(key, type);
  return meant ? ` Did you mean '${meant.name}'?` : "";
}

// `require("fs")` is reported as an overload mismatch; the author gets the same message as for an import.
function missingRequire({ code }, node) {
  const call = ASSIGNABILITY_CODES.has(code) ? isRequire(node) : undefined;
  const specifier = call?.arguments.length === 1 ? call.arguments[0] : undefined;
  return specifier && ts.isStringLiteralLike(specifier) ? specifier : undefined;
}

function report(diagnostic, checker) {
  const { code, file } = diagnostic, node = nodeAt(diagnostic), missing = missingRequire(diagnostic, node);
  if (missing !== undefined) return { code: 2307, ...place(file, missing.getStart()), message: `Cannot find module '${missing.text}'.` };
  const owner = PROPERTY_CODES.has(code) ? ownerOf(node, checker) : {};
  let message = messageOf(diagnostic);
  // An array's members are no suggestion for a property: `place.lat` is not `place.flat`.
  if (owner.type && checker.isArrayLikeType(owner.type)) message = message.replace(SUGGESTED, "").trimEnd();
  else message += (code === 2339 && suggestion(node, owner, checker)) || knownProperties(code, node, owner, checker);
  return { code, ...place(file, diagnostic.start), message, stub: stubLine(diagnostic, message, checker) };
}

/** The report of a syntax error. */
var reportSyntax = (diagnostic) => ({ code: diagnostic.code, ...place(diagnostic.file, diagnostic.start), message: messageOf(diagnostic) });

// ---- the line of the stubs

function stubLineAt(file, position) {
  const { line } = file.getLineAndCharacterOfPosition(position);
  const starts = file.getLineStarts();
  const end = line + 1 < starts.length ? starts[line + 1] : file.text.length;
  return { file: file.fileName.slice(1), line: line + 1, text: file.text.slice(starts[line], end).trim() };
}

var isStub = (file) => file !== undefined && file.isDeclarationFile && !libraryFiles.has(file.fileName);

function lineOfDeclaration(declarations) {
  const found = declarations?.find((each) => isStub(each.getSourceFile()));
  if (found === undefined) return undefined;
  const name = ts.getNameOfDeclaration(found) ?? found;
  return stubLineAt(found.getSourceFile(), name.getStart());
}

function lineOfType(type) {
  if (type === undefined) return undefined;
  if (type.isUnion()) {
    const found = type.types.map(lineOfType).find(Boolean);
    if (found) return found;
  }
  const element = type.symbol?.name === "Array" || type.symbol?.name === "Promise" ? type.typeArguments?.[0] : undefined;
  return lineOfDeclaration((type.aliasSymbol ?? type.symbol)?.declarations) ?? lineOfType(element);
}

function lineOfCall(node, checker) {
  for (let at = node; at && !ts.isStatement(at); at = at.parent) {
    if (!ts.isCallExpression(at)) continue;
    const declaration = checker.getResolvedSignature(at)?.declaration, symbol = checker.getSymbolAtLocation(at.expression);
    const found = lineOfDeclaration(declaration && [declaration]) ?? lineOfDeclaration(symbol?.declarations);
    if (found) return found;
  }
  return undefined;
}

function lineOfProperty(node, checker) {
  return lineOfDeclaration(checker.getSymbolAtLocation(ts.isPropertyAccessExpression(node) ? node.name : node)?.declarations);
}

var SUGGESTED = /Did you mean '([^']+)'\?/;

// The suggested export, or the first line of the module.
function lineOfImport(node, message, checker) {
  const at = ts.findAncestor(node, (each) => ts.isImportDeclaration(each) || ts.isCallExpression(each));
  const specifier = at?.moduleSpecifier ?? at?.arguments[0], module = specifier && checker.getSymbolAtLocation(specifier);
  const meant = SUGGESTED.exec(message)?.[1];
  return lineOfDeclaration(module?.exports?.get(meant)?.declarations) ?? lineOfDeclaration(module?.declarations);
}

// The suggested property, or the type without it; for a module, its first line.
function lineOfOwner({ expression, type }, message, checker) {
  const meant = SUGGESTED.exec(message)?.[1];
  const line = meant && lineOfDeclaration(checker.getPropertyOfType(type, meant)?.declarations);
  const found = line ?? lineOfType(type);
  if (found || expression === undefined) return found;
  const module = checker.getSymbolAtLocation(expression);
  return lineOfDeclaration(module && (module.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(module) : module)?.declarations);
}

var EXPORT_CODES = new Set([2305, 2724, 2459, 2460, 2614]);

/** {file, line, text} of the stub that a mistake violates; undefined if none does. */
function stubLine(diagnostic, message, checker) {
  if (NAME_CODES.has(diagnostic.code)) return undefined;
  const related = diagnostic.relatedInformation?.find(({ file }) => isStub(file));
  if (related) return stubLineAt(related.file, related.start);
  const node = nodeAt(diagnostic);
  if (EXPORT_CODES.has(diagnostic.code)) return lineOfImport(node, message, checker);
  const isRead = PROPERTY_CODES.has(diagnostic.code) || INDEX_CODES.has(diagnostic.code);
  const owner = isRead ? ownerOf(ts.isElementAccessExpression(node) ? node.argumentExpression : node, checker) : {};
  if (owner.type !== undefined) return lineOfOwner(owner, message, checker);
  const both = COMPARISON_CODES.has(diagnostic.code) ? compared(node) : undefined;
  if (both !== undefined) return lineOfProperty(both[0], checker) ?? lineOfProperty(both[1], checker);
  return lineOfCall(node, checker) ?? lineOfType(ts.isExpression(node) ? checker.getTypeAtLocation(node) : undefined);
}

// ---- the known properties in place of a missing one: the author need not open the stubs

var MAX_NAMES = 20;

/** ` It has: location, days.` for types of the stubs; else empty. */
function knownProperties(code, node, owner, checker) {
  const literal = code === 2353 ? ts.findAncestor(node, ts.isObjectLiteralExpression) : undefined;
  const found = code === 2339 ? owner.type : literal && checker.getContextualType(literal);
  const type = found && checker.getNonNullableType(found);
  if (type === undefined || checker.isArrayLikeType(type) || type.symbol?.name === "Promise" || lineOfType(type) === undefined) return "";
  const names = checker.getPropertiesOfType(type).map((each) => each.name);
  if (names.length === 0) return "";
  const more = names.length > MAX_NAMES ? ", …" : "";
  return ` It ${literal ? "takes" : "has"}: ${names.slice(0, MAX_NAMES).join(", ")}${more}.`;
}
