// Whether a value of one type may be right where another is wanted: as JSON, by what the host repairs, or because the
// compiler knows less of the value than the program does.

var MOST_DEPTH = 8;
var DIGITS = /^-?\d{16,}$/; // the host sends such a text as the integer that it is

var { TypeFlags } = ts;
var KNOWS_NOTHING = TypeFlags.Any | TypeFlags.Unknown | TypeFlags.Instantiable | TypeFlags.NonPrimitive;
var NOTHING = TypeFlags.Null | TypeFlags.Undefined | TypeFlags.Void;
var TEXTS_AND_NUMBERS = [TypeFlags.StringLike, TypeFlags.NumberLike, TypeFlags.BooleanLike];
var PRIMITIVE = TEXTS_AND_NUMBERS.reduce((all, each) => all | each, TypeFlags.BigIntLike | TypeFlags.ESSymbolLike);
var ANYTHING_GOES = /^(?:Handle|String|Number|Boolean|ArrayBuffer|SharedArrayBuffer|DataView|[A-Z]\w*\d+(?:Clamped)?Array)$/;

// A text that was written out elsewhere is any text to the compiler, also when it is one of those allowed.
function mayBeSamePrimitive(source, target) {
  if ("value" in source && "value" in target) return source.value === target.value; // an enum's member, too
  if (target.flags & TypeFlags.NumberLike && "value" in source && DIGITS.test(source.value)) return true;
  return TEXTS_AND_NUMBERS.some((kind) => source.flags & kind && target.flags & kind && !("value" in source));
}

/** Compares types for one check, which knows what the program sets on its objects. */
class Fitting {
  constructor(checker, program) {
    this.checker = checker;
    this.program = program;
  }

  mayFit(source, target, depth = 0) {
    const { checker } = this, again = (from, to) => this.mayFit(from, to, depth + 1);
    if (depth > MOST_DEPTH || (source.flags | target.flags) & KNOWS_NOTHING || source.flags & TypeFlags.Never) return true;
    if (checker.isTypeAssignableTo(source, target)) return true;
    if (source.flags & NOTHING) return true; // null for now, or by what was not seen of the program
    if (source.isUnion()) return source.types.some((each) => !(each.flags & NOTHING) && again(each, target));
    if (target.isUnion()) return target.types.some((each) => again(source, each));
    if (target.flags & NOTHING) return false;
    if (source.flags & PRIMITIVE) return (target.flags & PRIMITIVE) !== 0 && mayBeSamePrimitive(source, target);
    if (ANYTHING_GOES.test(source.symbol?.name ?? "") || target.symbol?.name === "Handle") return true;
    const written = this.asJson(source);
    if (written) return again(written, target);
    if (target.flags & PRIMITIVE) return false;
    return checker.isArrayLikeType(target) || checker.isArrayLikeType(source)
      ? this.mayFitList(source, target, again) : this.mayFitObject(source, target, again);
  }

  // What `toJSON` makes of it: a date becomes a text.
  asJson(type) {
    const method = this.checker.getPropertyOfType(type, "toJSON");
    return method && this.checker.getTypeOfSymbol(method).getCallSignatures()[0]?.getReturnType();
  }

  // Lists of any length: how many there are, the program knows.
  mayFitList(source, target, again) {
    const [from, to] = [source, target].map((each) =>
      this.checker.isArrayLikeType(each) ? each.getNumberIndexType() : undefined);
    return from !== undefined && to !== undefined && again(from, to);
  }

  mayFitObject(source, target, again) {
    const { checker, program } = this, index = target.getStringIndexType();
    if (source.getCallSignatures().length) return false;
    const isOpen = source.getStringIndexType() !== undefined;
    for (const wanted of target.getProperties()) {
      const given = source.getProperty(wanted.name);
      if (program.assigned.has(wanted.name)) continue; // set later: `const input = {}; input.city = "Oslo"`
      if (given === undefined && (isOpen || wanted.flags & ts.SymbolFlags.Optional)) continue;
      if (given === undefined || !again(checker.getTypeOfSymbol(given), checker.getTypeOfSymbol(wanted))) return false;
    }
    return index === undefined ||
      source.getProperties().every((given) => target.getProperty(given.name) || again(checker.getTypeOfSymbol(given), index));
  }
}
