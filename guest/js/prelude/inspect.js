// inspect(value): what console.log shows of a value, in the manner of Node's util.inspect.
//
// A program's own code never runs because it is logged: getters are shown, not called, and names are read from data
// properties only. The exceptions are a Proxy's traps and [Symbol.for("nodejs.util.inspect.custom")]; what those throw
// is caught here. Work is bounded by a budget of characters: once it is spent, every loop stops at its next step.

const { kindOf } = shared;
const { makeList, layOut } = shared.layout;
const { ownProperty, dataProperty, prefixOf, formatPrimitive, indentLines, describe } = shared.titles;
const { spend, shownKeys, keysBesidesIndices, withoutErrorText } = shared.entries;
const { pushProperty, kindEntries, pushErrorDetails } = shared.entries;
const { apply } = Reflect;
const { String } = globalThis;
const slice = Function.prototype.call.bind(String.prototype.slice);

const CUSTOM = Symbol.for("nodejs.util.inspect.custom");
const BUDGET = 65536; // characters
const WORK = 200_000; // keys listed

function formatObject(state, value, level) {
  const kind = kindOf(value);
  const isError = kind === "Error" || kind === "DOMException";
  const shape = describe(value, kind, state.indentation);
  const indexed = kind === "Array" || kind === "TypedArray" || kind === "String";
  const limit = level > state.depth && !isError ? 1 : Infinity; // too deep to show: is there anything at all?
  let keys = indexed ? keysBesidesIndices(state, value, limit, shape.length ?? 0) : shownKeys(state, value, limit);
  if (isError) keys = withoutErrorText(value, keys, shape.base);
  const hasDetails = isError && (ownProperty(value, "cause") ?? ownProperty(value, "errors"));
  const { base } = shape;
  if (keys.length === 0 && !hasDetails) {
    const empty = shape.length === undefined ? kind !== "DataView" && kind !== "Promise" : shape.length === 0;
    if (base !== "") {
      spend(state, base.length);
      return base;
    }
    if (kind === "WeakMap" || kind === "WeakSet") return shape.open + " <items unknown> }";
    if (empty && kind !== "ArrayBuffer" && kind !== "SharedArrayBuffer") {
      spend(state, shape.open.length + 1);
      return shape.open + shape.close;
    }
  }
  if (level > state.depth) {
    const title = prefixOf(shape.name, shape.tag, kind === "Arguments" ? "Object" : kind);
    spend(state, title.length + 2);
    return shape.name === null ? slice(title, 0, -1) : "[" + slice(title, 0, -1) + "]";
  }

  state.ancestors[state.ancestors.length] = value;
  state.deepest = level;
  spend(state, base.length + shape.open.length + 4);
  const entries = kindEntries(state, value, shape, level + 1);
  for (let index = 0; index < keys.length && state.budget > 0; index++) {
    const property = ownProperty(value, keys[index]);
    if (property === undefined) continue; // a Proxy may say so, having listed it
    pushProperty(state, entries, keys[index], property, level + 1);
    if (shape.asArray) shape.allNumbers = false;
  }
  if (isError) pushErrorDetails(state, entries, value, level + 1);
  state.ancestors.length--;
  if (entries.length === 0) return base !== "" ? base : shape.open + shape.close;

  const text = layOut(entries, {
    __proto__: null,
    prefix: base, open: shape.open, close: shape.close, asArray: shape.asArray, allNumbers: shape.allNumbers,
    more: shape.more, indentation: state.indentation, inner: state.deepest - level, lineWidth: state.lineWidth,
  });
  const reference = findReference(state, value);
  return reference === 0 ? text : "<ref *" + reference + "> " + text;
}

const findReference = (state, value) => {
  for (let index = 0; index < state.circular.length; index++) if (state.circular[index] === value) return index + 1;
  return 0;
};

function formatCustom(state, value, level) {
  const custom = dataProperty(value, CUSTOM);
  if (typeof custom !== "function") return undefined;
  const depth = state.depth - level;
  const result = apply(custom, value, [depth, { depth }, inspect]);
  if (result === value) return undefined;
  if (typeof result !== "object" && typeof result !== "function") {
    const text = slice(String(result), 0, state.budget > 0 ? state.budget : 0);
    spend(state, text.length);
    return state.indentation > 0 ? indentLines(text, state.indentation) : text;
  }
  return result === null ? "null" : formatObject(state, result, level);
}

function formatValue(state, value, level) {
  if (value === null || (typeof value !== "object" && typeof value !== "function")) {
    const text = formatPrimitive(value, state.indentation);
    spend(state, text.length + 2);
    return text;
  }
  if (state.budget <= 0) return "...";
  for (let index = 0; index < state.ancestors.length; index++) {
    if (state.ancestors[index] !== value) continue;
    let reference = findReference(state, value);
    if (reference === 0) {
      state.circular[state.circular.length] = value;
      reference = state.circular.length;
    }
    return "[Circular *" + reference + "]";
  }
  const { indentation } = state;
  const depth = state.ancestors.length;
  try {
    return formatCustom(state, value, level) ?? formatObject(state, value, level);
  } catch {
    state.indentation = indentation;
    state.ancestors.length = depth;
    return "[an object that cannot be shown]"; // a trap or a custom inspector threw
  }
}

function inspect(value, options) {
  const state = {
    __proto__: null,
    depth: 2, maxArrayLength: 100, lineWidth: undefined, budget: BUDGET, work: WORK, indentation: 0, deepest: 0,
    ancestors: makeList(), circular: makeList(), formatValue,
  };
  if (typeof options === "object" && options !== null) {
    const { depth, maxArrayLength, lineWidth } = options;
    if (depth === null || depth === Infinity) state.depth = Infinity;
    else if (typeof depth === "number") state.depth = depth;
    if (typeof maxArrayLength === "number") state.maxArrayLength = maxArrayLength;
    if (typeof lineWidth === "number") state.lineWidth = lineWidth;
  }
  const text = formatValue(state, value, 0);
  return state.budget > 0 ? text : text + "\n... too much to show";
}

shared.inspect = inspect;
