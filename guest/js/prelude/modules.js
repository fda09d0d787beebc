// Modules: `import`, `import()` and `require` of host modules, all sharing one object per specifier.
// No template literals here: they call String.prototype.concat, which a guest may have replaced.
const { apply } = Reflect;
const { create, freeze, defineProperty, setPrototypeOf } = Object;
const stringify = JSON.stringify;
const absolute = Math.abs;
const toString = String;
const hasOwn = Object.hasOwn;
const keysOf = Object.keys;
const { toolErrors, Handle, parallel, hooks } = shared;
const modules = create(null); // specifier → module object

// Edit distance (Levenshtein), at most limit + 1.
function distance(a, b, limit) {
  if (absolute(a.length - b.length) > limit) return limit + 1;
  let previous = [];
  for (let j = 0; j <= b.length; j++) previous[j] = j;
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      const substitute = previous[j - 1] + (a[i - 1] === b[j - 1] ? 0 : 1);
      const shorter = previous[j] < row[j - 1] ? previous[j] : row[j - 1];
      row[j] = substitute <= shorter ? substitute : shorter + 1;
    }
    previous = row;
  }
  return previous[b.length];
}
const toLowerCase = String.prototype.toLowerCase;
const replaceSeparators = (name) => {
  let out = "";
  const lower = apply(toLowerCase, name, []);
  for (let i = 0; i < lower.length; i++) if (lower[i] !== "_" && lower[i] !== "-") out += lower[i];
  return out;
};

/** The candidate nearest to a misspelt name, or undefined. `getForcast` finds `get_forecast`. */
function nearest(name, candidates) {
  const wanted = replaceSeparators(name);
  const limit = wanted.length <= 4 ? 1 : wanted.length <= 8 ? 2 : 3;
  let best, bestDistance = limit + 1;
  for (let i = 0; i < candidates.length && i < 2000; i++) {
    const d = distance(wanted, replaceSeparators(candidates[i]), limit);
    if (d < bestDistance) {
      best = candidates[i];
      bestDistance = d;
    }
  }
  return best;
}

function listed(names) {
  let text = "";
  for (let i = 0; i < names.length && i < 20; i++) text += (i ? ", " : "") + names[i];
  return names.length > 20 ? text + ", … (" + names.length + " in all)" : text;
}

function missingExport(specifier, name, names) {
  const guess = nearest(name, names);
  const hint = guess !== undefined ? 'Did you mean "' + guess + '"?'
    : names.length ? "It exports: " + listed(names) + "." : "It exports nothing.";
  return new TypeError('module "' + specifier + '" has no export "' + name + '". ' + hint);
}

// Names that the language itself, or a logger, reads of any object: never an error.
const ASKED_OF_ANY_OBJECT = {
  __proto__: null, then: true, toJSON: true, constructor: true, default: true, __esModule: true,
  toString: true, valueOf: true, inspect: true, nodeType: true, length: true, name: true, prototype: true,
};

// A module object holds its exports; any other name is looked up in this prototype, which throws.
function withHelpfulPrototype(specifier, exports, names) {
  const missing = new Proxy(freeze(create(null)), {
    get(target, key) {
      if (typeof key === "symbol" || ASKED_OF_ANY_OBJECT[key]) return undefined;
      throw missingExport(specifier, key, names);
    },
  });
  return freeze(setPrototypeOf(exports, missing));
}

function makeModule(specifier, description) {
  const exports = create(null);
  const names = description.functions;
  for (let i = 0; i < names.length; i++) {
    const head = '{"op":"call","module":' + stringify(description.module) +
      ',"function":' + stringify(names[i]) + ',"arguments":';
    const value = freeze(native.hostFunction(head, description.module, names[i], description.async));
    defineProperty(exports, names[i], { value, enumerable: true });
  }
  return withHelpfulPrototype(specifier, exports, names);
}

function resolve(specifier) {
  let module = modules[specifier];
  if (module === undefined) {
    const frame = '{"op":"import","module":' + stringify(specifier) + "}";
    module = makeModule(specifier, native.request(frame));
    modules[specifier] = module;
  }
  return module;
}

/** The value of one binding of a static import; throws for a missing export. */
function binding(specifier, name) {
  const module = resolve(specifier);
  if (name === "*") return module;
  if (hasOwn(module, name)) return module[name];
  if (name === "default") return module;
  const names = keysOf(module);
  throw missingExport(specifier, name, names);
}

const importModule = async (specifier) => resolve(toString(specifier));
hooks.import = (specifier, name) => (name === undefined ? importModule(specifier) : binding(specifier, name));

const require = (specifier) => resolve(toString(specifier));
defineProperty(globalThis, "require", { value: require, writable: true, configurable: true });

const bridge = { __proto__: null, parallel, Handle, ...toolErrors };
modules["host:bridge"] = withHelpfulPrototype("host:bridge", bridge, keysOf(bridge));
