// Timers and microtasks: a heap ordered by due time, run by the shim's event loop.
const { apply } = Reflect;
const { defineProperty } = Object;
const { hooks } = shared;
const { now, timerAdded } = native;
const then = Promise.prototype.then;
const resolved = Promise.resolve();
const MAX_DELAY = 2147483647;

let heap = []; // binary heap of timers; index 0 is the next
let active = { __proto__: null }; // id → timer, so that a cleared one is skipped
let lastId = 0;

const isBefore = (a, b) => a.due < b.due || (a.due === b.due && a.order < b.order);

function push(timer) {
  let i = heap.length;
  while (i > 0) {
    const parent = (i - 1) >> 1;
    if (!isBefore(timer, heap[parent])) break;
    heap[i] = heap[parent];
    i = parent;
  }
  heap[i] = timer;
}

function pop() {
  const first = heap[0];
  const last = heap[heap.length - 1];
  heap.length--;
  if (heap.length) {
    let i = 0;
    for (;;) {
      let child = 2 * i + 1;
      if (child >= heap.length) break;
      if (child + 1 < heap.length && isBefore(heap[child + 1], heap[child])) child++;
      if (!isBefore(heap[child], last)) break;
      heap[i] = heap[child];
      i = child;
    }
    heap[i] = last;
  }
  return first;
}

let orders = 0;
function schedule(timer, delay) {
  timer.due = now() + delay;
  timer.order = ++orders;
  push(timer);
}

function add(callback, delay, args, repeats) {
  if (typeof callback !== "function") {
    throw new TypeError("a timer's first argument must be a function");
  }
  delay = +delay;
  if (!(delay >= 1 && delay <= MAX_DELAY)) delay = 1;
  const id = ++lastId;
  const timer = { __proto__: null, id, due: 0, order: 0, interval: repeats ? delay : 0, callback, args };
  active[id] = timer;
  timerAdded();
  schedule(timer, delay);
  return id;
}

function clear(id) {
  if (typeof id === "number" || typeof id === "string") delete active[id];
}

function dropCleared() {
  while (heap.length && active[heap[0].id] !== heap[0]) pop();
}

hooks.nextTimer = () => {
  dropCleared();
  if (heap.length === 0) return -1;
  const wait = heap[0].due - now();
  return wait > 0 ? wait : 0;
};

// One timer per turn, so that promise reactions run between timers.
hooks.runTimers = () => {
  dropCleared();
  if (heap.length === 0 || heap[0].due > now()) return;
  const timer = pop();
  if (timer.interval) schedule(timer, timer.interval);
  else delete active[timer.id];
  apply(timer.callback, undefined, timer.args);
};

hooks.forgetTimers = () => {
  heap = [];
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
