// Enums as JavaScript, in as many lines as they had.

var quoted = JSON.stringify;
var lineBreaks = (text) => text.replace(/[^\n]/g, "");

function memberName(member) {
  const { name } = member;
  return ts.isIdentifier(name) || ts.isStringLiteralLike(name) || ts.isNumericLiteral(name) ? name.text : undefined;
}

// An initialiser in which earlier members are written as those of the enum.
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

// A member that is a text has no way back from its value to its name.
function isTextual(node, texts) {
  if (ts.isParenthesizedExpression(node) || ts.isAssertionExpression(node) || ts.isSatisfiesExpression(node)) {
    return isTextual(node.expression, texts);
  }
  if (ts.isStringLiteralLike(node) || ts.isTemplateExpression(node)) return true;
  if (ts.isIdentifier(node)) return texts.has(node.text);
  return ts.isBinaryExpression(node) && (isTextual(node.left, texts) || isTextual(node.right, texts));
}

// The members that enums of the same name have before it.
function addEarlier(node, earlier, texts) {
  const isSame = (each) => each.pos < node.pos && ts.isEnumDeclaration(each) && each.name.text === node.name.text;
  for (const member of node.parent.statements.filter(isSame).flatMap((each) => [...each.members])) {
    const key = memberName(member);
    if (key !== undefined) earlier.add(key);
    if (key !== undefined && member.initializer && isTextual(member.initializer, texts)) texts.add(key);
  }
}

/** The enum's JavaScript; undefined if a member has no plain name. */
function enumText(node, blanked, eraser) {
  const { file } = eraser, name = node.name.text, earlier = new Set(), texts = new Set(), rows = [];
  let next = "0";
  addEarlier(node, earlier, texts);
  for (const member of node.members) {
    const key = memberName(member), { initializer } = member;
    if (key === undefined) return undefined;
    const value = initializer ? memberValue(initializer, name, earlier, blanked, eraser) : next;
    if (initializer && isTextual(initializer, texts)) {
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
