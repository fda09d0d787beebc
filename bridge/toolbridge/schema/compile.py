"""SECURITY: compiles a server's schema for the validator: nothing in it raises, loops or is fetched.

The result is plain JSON Schema 2020-12 in a few keywords, whichever draft it was written for. References are names in
a flat table, and only to places of the same document. A keyword that is malformed, can't be checked within bounds or
whose meaning is in doubt is left out. Leaving out never refuses a value that the whole schema would take: where it
could (`not`, `if`), the keyword around it is left out as well.
"""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple, cast

from toolbridge_codegen.escaping import is_list, is_object
from toolbridge_codegen.read.refs import Document, RefusedReferenceError, reference_of

# SECURITY: ReDoS guard: a server's regular expressions run only if their work is known to be small (T16).
#
# An expression is taken if all the ways in which it can fail are few: nothing repeated inside an endless repetition,
# no look-around, no back-references. How often it can be tried then grows with a known power of the text's length,
# and a text that is too long for that is not looked at. Whatever is refused here is left for the server to check.


_LONGEST_PATTERN = 300
_LONGEST_TEXT = 10_000
_MOST_WAYS = 1_000
_MOST_WORK = 1_000_000

# What means something else in JavaScript, or is an extension on either side.
_OTHER_MEANING = re.compile(r"\\[AZazkpPc]|\\[xuN]\{|\(\?(?!:)|\[\^?\]|\{,")
_TOKEN = re.compile(r"\\.|.", re.DOTALL)
_ANYTHING = re.compile(r"\[(?:\\s\\S|\\S\\s)\]")
# ECMA-262: WhiteSpace and LineTerminator, which have U+FEFF and neither U+0085 nor U+001C to U+001F.
_LINE_ENDS = r"\n\r\u2028\u2029"
_SPACES = rf"\t\v\f{_LINE_ENDS} \xa0\u1680\u2000-\u200a\u202f\u205f\u3000\ufeff"
_OUTSIDE = {"\\s": f"[{_SPACES}]", "\\S": f"[^{_SPACES}]", ".": f"[^{_LINE_ENDS}]", "$": r"\Z"}
_INSIDE = {"\\s": _SPACES, "[": r"\["}

_parser: Any = getattr(re, "_parser")  # noqa: B009  # the way to a syntax tree that the library itself takes


class _RefusedError(Exception):
    """This expression is not run."""


@dataclass(frozen=True, slots=True)
class SafePattern:
    """ReDoS guard: an expression whose work is bounded on texts up to a length."""

    expression: re.Pattern[str]
    longest: int

    def refuses(self, text: str) -> bool:
        """Returns whether the text surely doesn't match. One that is too long to tell is not refused."""
        return len(text) <= self.longest and self.expression.search(text) is None


@lru_cache(maxsize=1024)
def safe_pattern(pattern: str) -> SafePattern | None:
    """Compiles an ECMA-262 pattern; None if it could backtrack for long (ReDoS), or means something else in Python.

    Never raises; cached.
    """
    if len(pattern) > _LONGEST_PATTERN or _OTHER_MEANING.search(pattern):
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            meant = _in_python(pattern)
            tree = _parser.parse(meant, re.ASCII)
            ways, degree = _cost(tree)
            if not _is_anchored(tree):
                degree += 1
            expression = re.compile(meant, re.ASCII)
    except (_RefusedError, re.error, RecursionError, OverflowError, ValueError, MemoryError):
        return None
    longest = _LONGEST_TEXT
    while longest and ways * longest**degree > _MOST_WORK:
        longest = longest * 9 // 10
    return SafePattern(expression, longest) if longest >= 16 else None


def _in_python(pattern: str) -> str:
    """Translates an expression of ECMA-262 to Python's, for `re.ASCII`: `\\d`, `\\w` and `\\b` are the same then.

    `$` is the end of the text alone, `.` stops at each of four line ends, and white space is Unicode's.

    Raises:
        _RefusedError: Python has no equivalent.
    """
    written: list[str] = []
    is_inside = False
    for piece in cast("list[str]", _TOKEN.findall(_ANYTHING.sub(r"[\\w\\W]", pattern))):
        if is_inside and piece == "\\S":
            raise _RefusedError  # Python has no class of what is not in a list, and more
        written.append((_INSIDE if is_inside else _OUTSIDE).get(piece, piece))
        is_inside = piece != "]" if is_inside else piece == "["
    return "".join(written)


def _is_anchored(tree: Any) -> bool:
    """Returns whether an expression's tree begins with `^`."""
    return len(tree) > 0 and str(tree[0][0]) == "AT" and str(tree[0][1]) == "AT_BEGINNING"


def _cost(tree: Any) -> tuple[int, int]:
    """Bounds the ways in which a sequence can be tried at one place: a factor, and a power of the text's length.

    Raises:
        _RefusedError: there are too many, or an operator is not allowed.
    """
    ways, degree = 1, 0
    for operator, argument in tree:
        more, power = _cost_of(str(operator), argument)
        ways, degree = ways * more, degree + power
        if ways > _MOST_WAYS:
            raise _RefusedError
    return ways, degree


def _cost_of(operator: str, argument: Any) -> tuple[int, int]:
    """Bounds the ways of one operator, as `_cost` does.

    Raises:
        _RefusedError: there are too many, or the operator is not allowed.
    """
    match operator:
        case "LITERAL" | "NOT_LITERAL" | "ANY" | "IN" | "AT":
            return 1, 0
        case "SUBPATTERN":
            return _cost(argument[3])
        case "BRANCH":
            costs = [_cost(branch) for branch in argument[1]]
            return sum(ways for ways, _ in costs), max(degree for _, degree in costs)
        case "MAX_REPEAT" | "MIN_REPEAT":
            return _cost_of_repeat(*argument)
        case _:
            raise _RefusedError


def _cost_of_repeat(least: int, most: Any, body: Any) -> tuple[int, int]:
    """Bounds the ways of a repetition, as `_cost` does.

    Raises:
        _RefusedError: an endless repetition is inside it, or there are too many ways.
    """
    ways, degree = _cost(body)
    if degree:
        raise _RefusedError
    if int(most) > _MOST_WAYS:
        # Endless, or as good as that: only of what can be tried in one way.
        if ways > 1 or _may_be_empty(body):
            raise _RefusedError
        return 1, 1
    if ways > 1 and int(most) * (ways - 1).bit_length() > 10:
        raise _RefusedError
    return (int(most) - int(least) + 1) * ways ** int(most), 0


def _may_be_empty(body: Any) -> bool:
    return int(body.getwidth()[0]) == 0


CleanSchema = bool | dict[str, Any]

KINDS = frozenset({"null", "boolean", "object", "array", "number", "string", "integer"})

_MOST_SCHEMAS = 5_000
_DEEPEST = 60
_MOST_NOTES = 10
_MOST_PATTERNS = 200
_LARGEST_ENUM = 10_000
# What has only these is understood without loss, and may be negated.
_EXACT = frozenset({"type", "enum", "const", "required", "properties"})
_SILENT = frozenset({"title", "description", "default", "examples", "example", "deprecated", "$comment"})


class CompiledSchema(NamedTuple):
    """A schema for the validator."""

    schema: CleanSchema
    definitions: Mapping[str, CleanSchema]
    """The schemas that references name."""
    notes: tuple[str, ...]
    """Parts that are not validated, and why."""


def compile_schema(root: object, inside: tuple[Any] | None = None) -> CompiledSchema:
    """Compiles the schema `root`, or one `inside` it (in a tuple); `$ref` resolves within `root` only. Never raises."""
    whole = dict(cast("Mapping[str, Any]", root)) if isinstance(root, Mapping) else root
    cleaner = _Cleaner(whole)
    schema = cleaner.clean(whole if inside is None else inside[0], 0)
    return CompiledSchema(schema, cleaner.all_definitions(), tuple(cleaner.notes))


class _Cleaner:
    def __init__(self, root: Any) -> None:
        self._document = Document(root)
        self._names: dict[int, str] = {}
        self._waiting: list[tuple[str, Any]] = []
        self._left = _MOST_SCHEMAS
        self._patterns: dict[str, bool] = {}
        self.notes: list[str] = []

    def all_definitions(self) -> dict[str, CleanSchema]:
        """Cleans the targets of all references met so far, and of those in them: name → schema."""
        definitions: dict[str, CleanSchema] = {}
        while self._waiting:
            name, schema = self._waiting.pop()
            definitions[name] = self.clean(schema, 0)
        return definitions

    def clean(self, schema: Any, depth: int) -> CleanSchema:
        """Copies a schema without the parts that can't be checked, and notes these."""
        if isinstance(schema, bool):
            return schema
        self._left -= 1
        if not is_object(schema):
            self._note("a schema that is neither an object nor a boolean")
            return True
        if self._left < 0 or depth > _DEEPEST:
            self._note("parts of a schema that is too large or too deep")
            return True
        clean: dict[str, Any] = {}
        reference = reference_of(schema)
        if reference is not None:
            name = self._named(reference, schema)
            if name is not None:
                clean["$ref"] = name
            if self._document.ignores_siblings:
                return clean
        for keyword, value in schema.items():
            self._keyword(keyword, value, schema, clean, depth + 1)
        _finish_bounds(schema, clean)
        return {"anyOf": [{"type": ["null"]}, clean]} if schema.get("nullable") is True and clean else clean

    def _named(self, reference: str, holder: dict[str, Any]) -> str | None:
        """Returns the name of a reference's target, which is cleaned later; None, with a note, if it is refused."""
        try:
            target = self._document.resolve(reference, holder).schema
        except RefusedReferenceError as error:
            self._note(f"a reference that {error}")
            return None
        name = self._names.get(id(target))
        if name is None:
            name = self._names[id(target)] = str(len(self._names))
            self._waiting.append((name, target))
        return name

    def _keyword(self, keyword: str, value: Any, schema: dict[str, Any], clean: dict[str, Any], depth: int) -> None:
        """Copies one keyword of `schema` into `clean` if it can be checked, else notes it; drops unknown ones."""
        simple = _SIMPLE.get(keyword)
        if simple is not None:
            kept = simple(value)
            if kept is None:
                self._note(f"{keyword!r} where it is malformed")
            else:
                clean[keyword] = kept[0]
            return
        structured = _STRUCTURED.get(keyword)
        if structured is not None:
            structured(self, keyword, value, schema, clean, depth)

    def _pattern(self, keyword: str, value: Any, _schema: dict[str, Any], clean: dict[str, Any], _depth: int) -> None:
        """Copies `pattern`; notes an unsafe or malformed one."""
        if isinstance(value, str) and self._is_safe(value):
            clean[keyword] = value
        else:
            self._note("'pattern' where it could take too long, or is not understood")

    def _one(self, keyword: str, value: Any, _schema: dict[str, Any], clean: dict[str, Any], depth: int) -> None:
        """Cleans and copies a keyword whose value is one schema; notes a malformed one."""
        if isinstance(value, (dict, bool)):
            clean[keyword] = self.clean(value, depth)
        else:
            self._note(f"{keyword!r} where it is malformed")

    def _negation(self, keyword: str, value: Any, _schema: dict[str, Any], clean: dict[str, Any], depth: int) -> None:
        """Copies `not` if its schema is understood without loss, else notes it: a part less could refuse valid ones."""
        if _is_exact(value):
            clean[keyword] = self.clean(value, depth)
        else:
            self._note("'not' with more than simple conditions")

    def _others(self, keyword: str, value: Any, schema: dict[str, Any], clean: dict[str, Any], depth: int) -> None:
        """Copies `patternProperties` or `additionalProperties`, unless a pattern is unsafe: then notes it."""
        patterns: Any = schema.get("patternProperties", {})
        if not is_object(patterns) or not all(self._is_safe(pattern) for pattern in patterns):
            self._note(f"{keyword!r} beside patterns that could take too long, or are not understood")
        elif keyword == "patternProperties":
            self._map(keyword, value, schema, clean, depth)
        else:
            clean[keyword] = self.clean(value, depth)

    def _items(self, keyword: str, value: Any, schema: dict[str, Any], clean: dict[str, Any], depth: int) -> None:
        """Cleans and copies `items` or `prefixItems`; a list of items (drafts up to 2019) becomes `prefixItems`."""
        if not is_list(value):
            if keyword == "items":
                clean["items"] = self.clean(value, depth)
            return
        # Up to 2019, and still in real schemas without a `$schema`: a list of items is a tuple.
        if keyword == "prefixItems" or "prefixItems" not in schema:
            clean["prefixItems"] = [self.clean(each, depth) for each in value]
            if keyword == "items" and "additionalItems" in schema:
                clean["items"] = self.clean(schema["additionalItems"], depth)

    def _map(self, keyword: str, value: Any, _schema: dict[str, Any], clean: dict[str, Any], depth: int) -> None:
        """Cleans and copies a keyword whose value is a map of schemas; notes a malformed one."""
        if is_object(value):
            clean[keyword] = {name: self.clean(each, depth) for name, each in value.items()}
        elif value != []:  # some languages write an empty object as a list
            self._note(f"{keyword!r} where it is malformed")

    def _choice(self, keyword: str, value: Any, _schema: dict[str, Any], clean: dict[str, Any], depth: int) -> None:
        """Cleans and copies `allOf`, `anyOf` or `oneOf`; the last as `anyOf`, a second one inside `allOf`.

        Notes an empty or malformed one.
        """
        if not is_list(value) or not value:
            self._note(f"{keyword!r} where it is malformed")
            return
        branches = [self.clean(each, depth) for each in value]
        if keyword == "allOf":
            clean.setdefault("allOf", []).extend(branches)
        elif "anyOf" in clean:
            clean.setdefault("allOf", []).append({"anyOf": branches})
        else:
            # More than one of `oneOf` may fit: what tells its branches apart may be a format, which isn't checked.
            clean["anyOf"] = branches

    def _dependencies(
        self, _keyword: str, value: Any, _schema: dict[str, Any], clean: dict[str, Any], depth: int
    ) -> None:
        """Splits `dependencies` into `dependentRequired` and `dependentSchemas`; notes a malformed one."""
        if not is_object(value):
            self._note("'dependencies' where it is malformed")
            return
        for name, each in value.items():
            if is_list(each):
                needed = [other for other in each if isinstance(other, str)]
                clean.setdefault("dependentRequired", {}).setdefault(name, needed)
            else:
                clean.setdefault("dependentSchemas", {}).setdefault(name, self.clean(each, depth))

    def _condition(self, _keyword: str, value: Any, schema: dict[str, Any], clean: dict[str, Any], depth: int) -> None:
        """Cleans and copies `if`, `then` and `else` if the condition is understood without loss; else notes it."""
        if not _is_exact(value):
            self._note("'if' with more than simple conditions")
            return
        clean["if"] = self.clean(value, depth)
        for branch in ("then", "else"):
            if branch in schema:
                clean[branch] = self.clean(schema[branch], depth)

    def _is_safe(self, pattern: str) -> bool:
        """Returns whether a pattern is safe; False beyond the first 200 patterns of a schema."""
        known = self._patterns.get(pattern)
        if known is None:
            # To look at a pattern takes time, too.
            known = self._patterns[pattern] = len(self._patterns) < _MOST_PATTERNS and safe_pattern(pattern) is not None
        return known

    def _note(self, what: str) -> None:
        """Keeps a note on what is not checked, once; ten at most."""
        note = f"not checked: {what}"
        if note not in self.notes and len(self.notes) < _MOST_NOTES:
            self.notes.append(note)


_STRUCTURED: dict[str, Callable[[_Cleaner, str, Any, dict[str, Any], dict[str, Any], int], None]] = {
    "pattern": _Cleaner._pattern,
    "items": _Cleaner._items,
    "prefixItems": _Cleaner._items,
    "contains": _Cleaner._one,
    "propertyNames": _Cleaner._one,
    "additionalProperties": _Cleaner._others,
    "patternProperties": _Cleaner._others,
    "properties": _Cleaner._map,
    "dependentSchemas": _Cleaner._map,
    "dependencies": _Cleaner._dependencies,
    "allOf": _Cleaner._choice,
    "anyOf": _Cleaner._choice,
    "oneOf": _Cleaner._choice,
    "not": _Cleaner._negation,
    "if": _Cleaner._condition,
}


def _is_exact(schema: Any, depth: int = 0) -> bool:
    """Returns whether a schema is understood without loss, so that it may be negated."""
    if isinstance(schema, bool):
        return True
    if not is_object(schema) or depth > 4 or not (schema.keys() - _SILENT) <= _EXACT:
        return False
    for keyword in schema.keys() & _SIMPLE.keys():
        if _SIMPLE[keyword](schema[keyword]) is None:
            return False
    properties: Any = schema.get("properties", {})
    return is_object(properties) and all(_is_exact(each, depth + 1) for each in properties.values())


# ---- keywords whose value needs no more than a look: the value in a tuple, or None to leave the keyword out


def _kinds(value: Any) -> tuple[Any] | None:
    """Returns a `type`, as a list of known types, in a tuple; None for anything else."""
    kinds = value if is_list(value) else [value]
    return (kinds,) if kinds and all(isinstance(kind, str) and kind in KINDS for kind in kinds) else None


def _strings(value: Any) -> tuple[Any] | None:
    """Returns a list of strings without repetitions, in a tuple; None for anything else."""
    return (list(dict.fromkeys(value)),) if is_list(value) and all(isinstance(each, str) for each in value) else None


def _count(value: Any) -> tuple[Any] | None:
    """Returns a whole number that is not negative, in a tuple; None for anything else."""
    number = _number(value)
    return (int(number[0]),) if number is not None and number[0] >= 0 and number[0] == int(number[0]) else None


def _number(value: Any) -> tuple[Any] | None:
    """Returns a finite number in a tuple; None for anything else."""
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return (value,) if is_number and (isinstance(value, int) or math.isfinite(value)) else None


def _step(value: Any) -> tuple[Any] | None:
    """Returns a positive number in a tuple; None for anything else."""
    number = _number(value)
    return number if number is not None and number[0] > 0 else None


def _bound(value: Any) -> tuple[Any] | None:
    """Returns a number, or a boolean as in draft 4, in a tuple; None for anything else."""
    return (value,) if isinstance(value, bool) else _number(value)  # draft 4: a boolean, see _finish_bounds


def _needed(value: Any) -> tuple[Any] | None:
    """Returns a map to lists of strings in a tuple; None for anything else."""
    return (value,) if is_object(value) and all(_strings(each) is not None for each in value.values()) else None


_SIMPLE: dict[str, Callable[[Any], tuple[Any] | None]] = {
    "type": _kinds,
    "enum": lambda value: (value,) if is_list(value) and 0 < len(value) <= _LARGEST_ENUM else None,
    "const": lambda value: (value,),
    "required": _strings,
    "minimum": _number,
    "maximum": _number,
    "exclusiveMinimum": _bound,
    "exclusiveMaximum": _bound,
    "multipleOf": _step,
    "uniqueItems": lambda value: (value,) if isinstance(value, bool) else None,
    "dependentRequired": _needed,
    **dict.fromkeys(
        ("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties", "minContains"), _count
    ),
}


def _finish_bounds(schema: dict[str, Any], clean: dict[str, Any]) -> None:
    """Converts draft 4's `"minimum": 0, "exclusiveMinimum": true` in `clean` to `"exclusiveMinimum": 0`."""
    for bound, exclusive in (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")):
        if isinstance(schema.get(exclusive), bool):
            clean.pop(exclusive, None)
            if schema[exclusive] and bound in clean:
                clean[exclusive] = clean.pop(bound)
