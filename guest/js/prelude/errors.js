// Errors that cross the boundary: ToolError, and the description of whatever a program threw.
const { apply, getOwnPropertyDescriptor, getPrototypeOf } = Reflect;
const { defineProperty } = Object;
const stringify = JSON.stringify;
const toString = String;
const slice = String.prototype.slice;
const stackGetter = getOwnPropertyDescriptor(Error.prototype, "stack")?.get;

const MAX_TEXT = 8000;
const MAX_CAUSES = 5;

/** A host call that failed: `module`, `function`, `kind` and `message` say which, how and why. */
class ToolError extends Error {
  constructor(message, fields) {
    super(message);
    for (const key of ["module", "function", "kind", "data"]) {
      if (fields?.[key] !== undefined) {
        defineProperty(this, key, { value: fields[key], writable: true, enumerable: true, configurable: true });
      }
    }
  }
}
defineProperty(ToolError.prototype, "name", { value: "ToolError", writable: true, configurable: true });

function toolError(frame, module, name, stack) {
  const error = new ToolError(frame.message, {
    module, function: name, kind: frame.kind, data: frame.data,
  });
  if (frame.name !== undefined) {
    defineProperty(error, "name", { value: frame.name, writable: true, configurable: true });
  }
  if (stack) {
    defineProperty(error, "stack", { value: stack, writable: true, configurable: true });
  }
  return error;
}

// A property's text; a hostile getter or toString costs that text only.
function textOf(read) {
  try {
    const text = read();
    return typeof text === "string" ? apply(slice, text, [0, MAX_TEXT]) : "";
  } catch {
    return "";
  }
}

function describeThrown(value) {
  if (typeof value === "object" && value !== null) {
    return textOf(() => stringify(value)) || textOf(() => toString(value)) || "an object";
  }
  return textOf(() => toString(value));
}

function describeOne(value) {
  if (!(value instanceof Error)) {
    return { __proto__: null, name: "", message: describeThrown(value), stack: "" };
  }
  const description = {
    __proto__: null,
    name: textOf(() => value.name) || "Error",
    message: textOf(() => value.message),
    stack: textOf(() => value.stack) || (stackGetter ? textOf(() => apply(stackGetter, value, [])) : ""),
  };
  for (const key of ["module", "function", "kind"]) {
    const property = value instanceof ToolError ? textOf(() => value[key]) : "";
    if (property) description[key] = property;
  }
  return description;
}

/** What the outcome frame says of a thrown value: its own text and that of its causes. */
function describeError(value) {
  const description = describeOne(value);
  const causes = [];
  let current = value;
  for (let i = 0; i < MAX_CAUSES && current instanceof Error; i++) {
    let next;
    try {
      next = current.cause ?? current.errors?.[0];
    } catch {
      break;
    }
    if (next === undefined) break;
    const cause = describeOne(next);
    // not a template literal: those call String.prototype.concat, which a guest may have replaced
    causes[causes.length] = cause.name ? cause.name + ": " + cause.message : cause.message;
    current = next;
  }
  try {
    // What Promise.any gives when all have failed: each of them, not only the first.
    for (let i = 1; i < MAX_CAUSES && i < value?.errors?.length; i++) {
      const cause = describeOne(value.errors[i]);
      causes[causes.length] = cause.name ? cause.name + ": " + cause.message : cause.message;
    }
  } catch {
    // a hostile `errors`
  }
  if (causes.length > MAX_CAUSES) causes.length = MAX_CAUSES;
  if (causes.length) description.causes = causes;
  return description;
}

// Through its call sites a guest would get hold of the prelude's own functions.
delete Error.prepareStackTrace;

shared.ToolError = ToolError;
shared.hooks = { __proto__: null, toolError, describeError };
