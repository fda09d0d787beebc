// Timers and microtasks: a queue ordered by due time, run by the shim's event loop.
const { apply } = Reflect;
const { defineProperty, setPrototypeOf } = Object;
const { hooks } = shared;
const { now, timerAdded } = native;
const then = Promise.prototype.then;
const resolved = Promise.resolve();
const uncurry = (method) => Function.prototype.call.bind(method);
const insert = uncurry(Array.prototype.splice);
const takeFirst = uncurry(Array.prototype.shift);
const MAX_DELAY = 2147483647;

const newQueue = () => setPrototypeOf([], null); // no setter on Array.prototype can get at it
let queue = newQueue(); // cleared timers stay until they are due
let active = { __proto__: null }; // id → timer, without the cleared ones
let lastId = 0;

// Inserts the timer after all that are due no later, found by bisection.
function schedule(timer, delay) {
  timer.due = now() + delay;
  let low = 0;
  let high = queue.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (queue[middle].due <= timer.due) low = middle + 1;
    else high = middle;
  }
  insert(queue, low, 0, timer);
}

function add(callback, delay, args, repeats) {
  if (typeof callback !== "function") {
    throw new TypeError("a timer's first argument must be a function");
  }
  delay = +delay;
  if (!(delay >= 1 && delay <= MAX_DELAY)) delay = 1;
  const id = ++lastId;
  const timer = { __proto__: null, id, due: 0, interval: repeats ? delay : 0, callback, args };
  active[id] = timer;
  timerAdded();
  schedule(timer, delay);
  return id;
}

function clear(id) {
  if (typeof id === "number" || typeof id === "string") delete active[id];
}

function dropCleared() {
  while (queue.length && active[queue[0].id] !== queue[0]) takeFirst(queue);
}

hooks.nextTimer = () => {
  dropCleared();
  if (queue.length === 0) return -1;
  const wait = queue[0].due - now();
  return wait > 0 ? wait : 0;
};

// One timer per turn, so that promise reactions run between timers.
hooks.runTimers = () => {
  dropCleared();
  if (queue.length === 0 || queue[0].due > now()) return;
  const timer = takeFirst(queue);
  if (timer.interval) schedule(timer, timer.interval);
  else delete active[timer.id];
  apply(timer.callback, undefined, timer.args);
};

hooks.forgetTimers = () => {
  queue = newQueue();
  active = { __proto__: null };
};

const install = (name, value) => defineProperty(globalThis, name, { value, writable: true, configurable: true });
install("setTimeout", function setTimeout(callback, delay, ...args) { return add(callback, delay, args, false); });
install("setInterval", function setInterval(callback, delay, ...args) { return add(callback, delay, args, true); });
install("setImmediate", function setImmediate(callback, ...args) { return add(callback, 0, args, false); });
install("clearTimeout", function clearTimeout(id) { clear(id); });
install("clearInterval", function clearInterval(id) { clear(id); });
install("clearImmediate", function clearImmediate(id) { clear(id); });
install("queueMicrotask", function queueMicrotask(callback) {
  if (typeof callback !== "function") throw new TypeError("queueMicrotask takes a function");
  apply(then, resolved, [() => { callback(); }]);
});
