// Enums as JavaScript, in as many lines as they had.

var quoted = JSON.stringify;
var lineBreaks = (text) => text.replace(/[^\n]/g, "");

function memberName(member) {
  const { name } = member;
  return ts.isIdentifier(name) || ts.isStringLiteralLike(name) || ts.isNumericLiteral(name) ? name.text : undefined;
}

// An initialiser in which earlier members are written as those of the enum.
function memberValue(initialiser, name, earlier, blanked, file) {
  const edits = new Edits(), start = initialiser.getStart(file);
  const visit = (node) => {
    const isMember = ts.isIdentifier(node) && earlier.has(node.text) &&
      !(ts.isPropertyAccessExpression(node.parent) && node.parent.name === node);
    if (isMember) edits.insert(node.getStart(file) - start, `${name}.`);
    ts.forEachChild(node, visit);
  };
  visit(initialiser);
  return edits.applyTo(blanked.slice(start, initialiser.end));
}

// A member that is a text has no way back from its value to its name.
function isTextual(node, texts) {
  if (ts.isParenthesizedExpression(node)) return isTextual(node.expression, texts);
  if (ts.isStringLiteralLike(node) || ts.isTemplateExpression(node)) return true;
  if (ts.isIdentifier(node)) return texts.has(node.text);
  return ts.isBinaryExpression(node) && (isTextual(node.left, texts) || isTextual(node.right, texts));
}

/** The enum's JavaScript; undefined if a member has no plain name. */
function enumText(node, blanked, file, declaration) {
  const name = node.name.text, earlier = new Set(), texts = new Set(), rows = [];
  let next = "0";
  for (const member of node.members) {
    const key = memberName(member), { initializer } = member;
    if (key === undefined) return undefined;
    const value = initializer ? memberValue(initializer, name, earlier, blanked, file) : next;
    if (initializer && isTextual(initializer, texts)) {
      rows.push(`${name}[${quoted(key)}] = ${value};`);
      texts.add(key);
    } else {
      rows.push(`${name}[${name}[${quoted(key)}] = ${value}] = ${quoted(key)};`);
    }
    earlier.add(key);
    next = `${name}[${quoted(key)}] + 1`;
  }
  const text = `${declaration}(function (${name}) { ${rows.join(" ")} })(${name} || (${name} = {}));`;
  const lost = lineBreaks(blanked.slice(node.getStart(file), node.end)).length - lineBreaks(text).length;
  return text + "\n".repeat(Math.max(0, lost));
}
