// What is said of a diagnostic: its place, counted in characters from 1, and its message.

// Columns count code points, and lines end where editors end them: that is what people, and Python, count.
function place(file, position) {
  const lines = file.text.slice(0, position).split(/\r\n?|\n/);
  return { line: lines.length, column: [...lines.at(-1)].length + 1 };
}

var LONGEST_MESSAGE = 600;

function messageOf(diagnostic) {
  const text = ts.flattenDiagnosticMessageText(diagnostic.messageText, "\n");
  const more = (diagnostic.relatedInformation ?? [])
    .filter((each) => each.code === 2773 || each.code === 6212) // Did you forget to use 'await'? Did you mean to call this expression?
    .map((each) => ts.flattenDiagnosticMessageText(each.messageText, "\n"));
  const whole = [text, ...more].join("\n");
  return whole.length > LONGEST_MESSAGE ? whole.slice(0, LONGEST_MESSAGE) + "…" : whole;
}

// What a list has is not what a name that it lacks was meant to be: `place.lat` is not `place.flat`.
function isOfList(diagnostic, checker) {
  if (!OF_PROPERTIES.has(diagnostic.code) || checker === undefined) return false;
  const { type } = ownerOf(innermost(diagnostic.file, diagnostic.start, diagnostic.length), checker);
  return type !== undefined && checker.isArrayLikeType(type);
}

// Of a property that is taken out of an object (`const { titel } = …`), the compiler says nothing better.
function suggestion(diagnostic, checker) {
  if (diagnostic.code !== 2339 || checker === undefined) return "";
  const node = innermost(diagnostic.file, diagnostic.start, diagnostic.length);
  const key = keyOf(node), { type } = key !== undefined && !ts.isPropertyAccessExpression(node.parent) ? ownerOf(node, checker) : {};
  const meant = type && checker.getSuggestedSymbolForNonexistentProperty(key, type);
  return meant ? ` Did you mean '${meant.name}'?` : "";
}

// `require("fs")` is a call to the compiler, none of whose forms takes this. The author is told what an import is told.
function missingRequire(diagnostic) {
  if (!OF_FIT.has(diagnostic.code)) return undefined;
  const call = isRequire(innermost(diagnostic.file, diagnostic.start, diagnostic.length));
  const specifier = call?.arguments.length === 1 ? call.arguments[0] : undefined;
  return specifier && ts.isStringLiteralLike(specifier) ? specifier : undefined;
}

function report(diagnostic, checker) {
  const missing = checker && missingRequire(diagnostic);
  if (missing !== undefined) {
    return { code: 2307, ...place(diagnostic.file, missing.getStart()), message: `Cannot find module '${missing.text}'.` };
  }
  const message = isOfList(diagnostic, checker) ? messageOf(diagnostic).replace(SUGGESTED, "").trimEnd()
    : messageOf(diagnostic) + (suggestion(diagnostic, checker) || knownProperties(diagnostic, checker));
  const stub = checker && stubLine(diagnostic, message, checker);
  return { code: diagnostic.code, ...place(diagnostic.file, diagnostic.start), message, stub };
}
