// What there is in place of a property that there isn't: its author need not look at the stubs again.

var MOST_NAMES_SAID = 20;

function typeThatLacks({ code }, node, checker) {
  if (code === 2339) return ownerOf(node, checker).type;
  if (code !== 2353) return undefined;
  const literal = ts.findAncestor(node, ts.isObjectLiteralExpression);
  return literal && checker.getContextualType(literal);
}

/** ` It has: location, days.`, of types that the stubs have; else nothing. */
function knownProperties(diagnostic, checker) {
  if (checker === undefined) return "";
  const node = innermost(diagnostic.file, diagnostic.start, diagnostic.length);
  const found = typeThatLacks(diagnostic, node, checker);
  const type = found && checker.getNonNullableType(found);
  if (type === undefined || checker.isArrayLikeType(type) || type.symbol?.name === "Promise" || lineOfType(type) === undefined) return "";
  const names = checker.getPropertiesOfType(type).map((each) => each.name);
  if (names.length === 0) return "";
  const more = names.length > MOST_NAMES_SAID ? ", …" : "";
  return ` It ${diagnostic.code === 2353 ? "takes" : "has"}: ${names.slice(0, MOST_NAMES_SAID).join(", ")}${more}.`;
}
