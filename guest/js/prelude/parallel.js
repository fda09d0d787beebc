// parallel(calls, options): many host calls at once, for code that doesn't want promises.
//
// Validates first: reading the list and writing the arguments can run the program's own code. Then the calls start, and
// from there on only this file's code runs. So a mistake in the list is found before any call has taken effect.
// No template literals here: they call String.prototype.concat, which a guest may have replaced.
const { apply } = Reflect;
const { hasOwn, keys, setPrototypeOf } = Object;
const { isArray } = Array;
const { isSafeInteger } = Number;
const { RangeError, TypeError } = globalThis;
const { ToolError, kindOf } = shared;
const { makeList } = shared.inspecting;
const { callFrame, start, settleNext } = native;
const arrayPrototype = Array.prototype;
const { iterator } = Symbol;

// The host has its own limit of pending calls, by default the same. Calls queued there would still be made after one
// has failed.
const AT_ONCE = 64;
const EXAMPLE = 'such as parallel([[get_forecast, { location: "Oslo" }], [get_forecast, { location: "Rome" }]])';

function describe(value) {
  if (value === null || value === undefined) return value === null ? "null" : "undefined";
  if (typeof value === "function") return "a function";
  if (typeof value !== "object") return "a " + typeof value;
  const kind = kindOf(value);
  return kind === "Array" ? "an array" : kind === "Promise" ? "a promise" : "an object";
}

function listOf(calls) {
  const list = makeList();
  if (isArray(calls)) {
    for (let i = 0; i < calls.length; i++) list[i] = calls[i];
    return list;
  }
  const method = calls === null || calls === undefined ? undefined : calls[iterator];
  if (typeof method !== "function" || typeof calls === "string") {
    throw new TypeError("parallel() takes a list of [function, input], " + EXAMPLE + "; this is " + describe(calls));
  }
  const items = apply(method, calls, []);
  const { next } = items;
  for (;;) {
    const item = apply(next, items, []);
    if (item.done) return list;
    list[list.length] = item.value;
  }
}

function badElement(index, problem) {
  return new TypeError("parallel(): element [" + index + "] of the list " + problem);
}

// Validates one element; returns { target, frame }: the host function and its request frame.
function validateCall(element, index) {
  if (!isArray(element)) {
    const kind = describe(element);
    const advice = kind === "a promise" ? ", so its call has begun already: write [function, input] without calling the function"
      : kind === "a function" ? ": write [function, input], the host function and its input, and don't call it"
      : ": write [function, input]";
    throw badElement(index, "is " + kind + advice + ", " + EXAMPLE);
  }
  const call = makeList();
  for (let i = 0; i < element.length; i++) call[i] = element[i];
  const target = call[0];
  const frame = typeof target === "function" ? apply(callFrame, undefined, call) : undefined;
  if (frame === undefined) {
    const found = typeof target === "function" ? "a function of the program" : describe(target);
    throw badElement(index, "begins with " + found + ": only functions of host modules can be called in parallel, " + EXAMPLE);
  }
  return { __proto__: null, target, frame };
}

function readOptions(options) {
  const read = { __proto__: null, limit: AT_ONCE, errors: "throw" };
  if (options === undefined) return read;
  if (typeof options !== "object" || options === null) {
    throw new TypeError('the options of parallel() are an object such as { limit: 5, errors: "collect" }');
  }
  const names = keys(options);
  for (let i = 0; i < names.length; i++) {
    if (!hasOwn(read, names[i])) {
      throw new TypeError('parallel() has no option "' + names[i] + '": there are "limit" and "errors"');
    }
    const value = options[names[i]];
    if (value !== undefined) read[names[i]] = value;
  }
  const { limit, errors } = read;
  if (limit !== Infinity && (!isSafeInteger(limit) || limit < 1)) {
    throw new RangeError("the limit of parallel() is how many calls are made at once: a whole number from 1");
  }
  if (errors !== "throw" && errors !== "collect") {
    throw new TypeError('the option "errors" of parallel() is "throw" or "collect"');
  }
  return read;
}

// Makes the calls, blocking until all have settled; fills `results` and `failed` by index. An error that is no
// ToolError, such as memory running out, stops further calls in both modes.
function makeCalls(calls, limit, collects, results, failed) {
  let pending = 0;
  let stops = false;
  const settled = (index, value, isError) => {
    pending--;
    results[index] = value;
    failed[index] = isError;
    if (isError && !(collects && value instanceof ToolError)) stops = true;
  };
  for (let next = 0; ; ) {
    while (next < calls.length && pending < limit && !stops) {
      const index = next++;
      const { target, frame } = calls[index];
      calls[index] = undefined; // its frame is no longer needed
      pending++;
      try {
        start(target, frame, (value) => settled(index, value, false), (error) => settled(index, error, true));
      } catch (error) {
        settled(index, error, true);
      }
    }
    if (pending === 0) return;
    settleNext();
  }
}

function parallel(calls, options = undefined) {
  const { limit, errors } = readOptions(options);
  const list = listOf(calls);
  const collects = errors === "collect";
  const results = makeList();
  const failed = makeList();
  for (let i = 0; i < list.length; i++) {
    list[i] = validateCall(list[i], i);
    results[i] = undefined;
    failed[i] = false;
  }
  makeCalls(list, limit, collects, results, failed);
  for (let i = 0; i < results.length; i++) {
    if (failed[i] && !(collects && results[i] instanceof ToolError)) throw results[i];
  }
  return setPrototypeOf(results, arrayPrototype);
}

shared.parallel = Object.freeze(parallel);
