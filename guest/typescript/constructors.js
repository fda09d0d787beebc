// Parameter properties: `constructor(private x: number) {}` sets `this.x`.

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
  const calls = superCalls(node.body), assignments = names.map((name) => ` this.${name} = ${name};`).join("");
  if (calls.length === 0) edits.insert(node.body.getStart(file) + 1, assignments);
  for (const call of calls) {
    if (call.parent.parent === node.body && ts.isExpressionStatement(call.parent)) {
      edits.insert(call.parent.end, ";" + assignments);
    } else { // somewhere in an expression, whose value is `this`
      edits.insert(call.getStart(file), opening(call));
      edits.insert(call.end, `,${names.map((name) => ` this.${name} = ${name},`).join("")} this)`);
    }
  }
}
