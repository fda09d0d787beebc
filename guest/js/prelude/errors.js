// Errors that cross the boundary: ToolError, and the description of a thrown value.
const { apply, getOwnPropertyDescriptor, getPrototypeOf } = Reflect;
const { defineProperty } = Object;
const { captureStackTrace } = Error;
const stringify = JSON.stringify;
const toString = String;
const slice = String.prototype.slice;
const stackGetter = getOwnPropertyDescriptor(Error.prototype, "stack")?.get;

const MAX_TEXT = 8000;
const MAX_CAUSES = 5;

const define = (object, key, value, enumerable) =>
  defineProperty(object, key, { __proto__: null, value, writable: true, enumerable, configurable: true });

/** A host call that failed: `server`, `tool`, `kind` and `message` say which, how and why. */
class ToolError extends Error {
  constructor(message, fields) {
    super(message);
    for (let i = 0; i < FIELDS.length; i++) {
      const value = fields?.[FIELDS[i]];
      if (value !== undefined) define(this, FIELDS[i], value, true);
    }
  }
}
const FIELDS = ["module", "function", "kind", "data", "server", "tool"];

// By kind; any other kind is a ToolError itself.
const errorClasses = {
  __proto__: null,
  timeout: class ToolTimeoutError extends ToolError {},
  denied: class ToolDeniedError extends ToolError {},
  disconnected: class ToolDisconnectedError extends ToolError {},
  invalid_arguments: class ToolArgumentsError extends ToolError {},
  limit: class ToolLimitError extends ToolError {},
  failed: class ToolFailedError extends ToolError {},
};
const toolErrors = { __proto__: null, ToolError };
for (const kind of Object.keys(errorClasses)) toolErrors[errorClasses[kind].name] = errorClasses[kind];
for (const name of Object.keys(toolErrors)) {
  define(toolErrors[name].prototype, "name", name, false);
  Object.freeze(toolErrors[name]); // the prototypes stay as they are: an error's name may be assigned
}

// Enumerable (and so printed) are server and tool of a tool's error, module and function of any other host function's.
function toolError(frame, module, name, stack) {
  const field = (key) => getOwnPropertyDescriptor(frame, key)?.value; // not what a guest put on Object.prototype
  const kind = field("kind");
  const server = field("server");
  const isTool = server !== undefined;
  const error = new (errorClasses[kind] ?? ToolError)(field("message"));
  if (module !== undefined) define(error, "module", module, !isTool);
  if (name !== undefined) define(error, "function", name, !isTool);
  define(error, "server", isTool ? server : "", isTool);
  define(error, "tool", field("tool") ?? name ?? "", isTool);
  define(error, "kind", kind, true);
  if (field("data") !== undefined) define(error, "data", field("data"), true);
  if (field("name") !== undefined) define(error, "name", field("name"), false);
  if (stack) define(error, "stack", stack, false);
  else captureStackTrace(error, toolError); // without the prelude's own lines
  return error;
}

// Reads a text; an error of a hostile getter or toString costs that text only.
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

function describeOne(value, stack) {
  if (!(value instanceof Error)) {
    return { __proto__: null, name: "", message: describeThrown(value), stack: stack ?? "" };
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

/** The error of an outcome frame: the text of a thrown value and of its causes. `stack`: if it is no Error. */
function describeError(value, stack) {
  const description = describeOne(value, stack);
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
    // An AggregateError, as of Promise.any: each error, not only the first.
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

// Its call sites would give a guest the prelude's own functions.
delete Error.prepareStackTrace;

shared.ToolError = ToolError;
shared.toolErrors = toolErrors;
shared.hooks = { __proto__: null, toolError, describeError, placeHandles: shared.placeHandles };
