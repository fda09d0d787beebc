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

// Of a property that is taken out of an object (`const { titel } = …`), the compiler says nothing better.
function suggestion(diagnostic, checker) {
  if (diagnostic.code !== 2339 || checker === undefined) return "";
  const node = innermost(diagnostic.file, diagnostic.start, diagnostic.length);
  const { type } = ts.isIdentifier(node) && !ts.isPropertyAccessExpression(node.parent) ? ownerOf(node, checker) : {};
  const meant = type && checker.getSuggestedSymbolForNonexistentProperty(node, type);
  return meant ? ` Did you mean '${meant.name}'?` : "";
}

function report(diagnostic, checker) {
  const message = messageOf(diagnostic) + suggestion(diagnostic, checker);
  const stub = checker && stubLine(diagnostic, message, checker);
  return { code: diagnostic.code, ...place(diagnostic.file, diagnostic.start), message, stub };
}
