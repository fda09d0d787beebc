"""Classifies findings about arguments of tools and of built-in functions: missing, unknown or invalid."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from toolbridge.check.python.comparisons import locate_wrong_constant, may_be_digits
from toolbridge.check.python.program import QUOTED, Mistake, Program, TyFinding, mistake_at
from toolbridge.check.python.rewriting import Span
from toolbridge.check.python.text import end_of_bracket, parts, split_outside, start_of_bracket_around
from toolbridge.errors import nearest
from toolbridge.sandbox.typescript import StubLine

# Arguments of built-in functions. Their stubs are stricter than they are, so only some functions are checked, and only
# values from a tool's result: `json.loads` of an object, `", ".join` of numbers, `int` of a list. For an overloaded
# function the checker says only that no signature matches: a second pass reveals the argument's type.

_TEXT_KIND, _NUMBER, _LIST, _OBJECT = "text", "number", "list", "object"
_NO_TEXT, _NO_NUMBER = {_NUMBER, _LIST, _OBJECT}, {_TEXT_KIND, _LIST, _OBJECT}
_MATH = ["round", "abs", "range", "sqrt", "floor", "ceil", "log", "log10", "exp", "hypot", "radians", "trunc", "fabs"]
_ITERATE = ["max", "min", "sorted", "any", "all", "list", "set", "tuple", "enumerate", "zip", "reversed", "frozenset"]
_FAILS = {
    **dict.fromkeys(("loads", "fromisoformat", "startswith", "endswith"), _NO_TEXT),
    **dict.fromkeys(("fromtimestamp", *_MATH), _NO_NUMBER),
    **{name: {_LIST, _OBJECT} for name in ("int", "float")},
    **{name: {_NUMBER} for name in _ITERATE},
}
"""The kinds that a function's argument can't have."""
_ITEMS_FAIL = {"join": _NO_TEXT, "sum": _NO_NUMBER}
"""The kinds that the items of an iterable argument can't have."""
_SECOND_FAILS = dict.fromkeys(("search", "match", "fullmatch", "findall", "finditer", "split"), _NO_TEXT)
"""The kinds that the second argument of a function of `re` can't have."""
_FIRST_FAILS = {"sorted": {_NUMBER}, "max": {_NUMBER}, "min": {_NUMBER}}
"""The kinds that the only positional argument can't have."""
_FIRST_OF_MORE_FAILS = {name: _FAILS[name] for name in ("round", "int")}
"""The kinds that the first of several arguments can't have."""
_OVERLOADED = {**_ITEMS_FAIL, **_SECOND_FAILS, **_FIRST_FAILS, **_FIRST_OF_MORE_FAILS}
_KIND_NAMES = {
    **dict.fromkeys(("str", "LiteralString"), _TEXT_KIND),
    **dict.fromkeys(("int", "float", "bool"), _NUMBER),
    **dict.fromkeys(("list", "tuple", "set"), _LIST),
    "dict": _OBJECT,
}
_MANY = re.compile(
    r"(?:list|set|tuple|Generator|GeneratorType|Iterator|map|filter|dict_values|Sequence)\[(.*)\]", re.DOTALL
)
_TAKEN = re.compile(r"""\[\s*["']\w+["']\s*\]|\.get\(\s*["']""")
_NAMED = re.compile(r"\s*\w+\s*=(?!=)")
_METHOD = re.compile(r"\.__(?:new|init)__\Z")


class _BuiltinCall(NamedTuple):
    finding: TyFinding
    place: Span
    name: str


class BuiltinCalls:
    """Calls of overloaded built-in functions with a wrong argument, and the queries for its type."""

    def __init__(self, findings: Iterable[TyFinding], program: Program) -> None:
        self._program = program
        listed = findings if program.is_small else ()
        self._calls = [call for each in listed if (call := _builtin_call(each, program)) is not None]

    @property
    def spans(self) -> list[Span]:
        """The arguments whose types are queried."""
        return [each.place for each in self._calls]

    def mistakes(self, types: Mapping[Span, str]) -> list[Mistake]:
        """Returns the calls that fail, given the types of their arguments."""
        found = (self._classify(each, types.get(each.place, "")) for each in self._calls)
        return [each for each in found if each is not None]

    def _classify(self, call: _BuiltinCall, kind: str) -> Mistake | None:
        """Returns the mistake if a call certainly fails for an argument of this type, from a tool; else None."""
        program = self._program
        text = program.source[call.place.start : call.place.end]
        if call.name in _ITEMS_FAIL:
            many = _MANY.fullmatch(kind.rstrip("*"))
            fails, what = _ITEMS_FAIL[call.name], split_outside(many[1], ",")[0].strip() if many else ""
        else:
            fails, what = _OVERLOADED[call.name], kind
        if kind_of(what, program) not in fails or not _is_of_result(what, text, program):
            return None
        line, column = program.position(call.place.start)
        place = TyFinding(line, column, call.finding.rule, "")
        return mistake_at(place, _related_line(what, place, program), f"`{call.name}` can't be given `{kind}`.")


def classify_builtin(finding: TyFinding, program: Program) -> Mistake | None:
    """Classifies an argument of a built-in function; None unless it is from a tool, and certainly wrong."""
    names = QUOTED.findall(finding.message)
    name = _METHOD.sub("", names[0]).rpartition(".")[2]
    found, text = names[-1], program.text_of(finding)
    if program.defines(name) or kind_of(found, program) not in _FAILS.get(name, ()):
        return None
    if not _is_of_result(found, text, program):
        return None
    return mistake_at(finding, _related_line(found, finding, program), f"`{name}` can't be given `{found}`.")


def kind_of(text: str, program: Program) -> str:
    """Returns the kind of a type's values (text, number, list, object); empty if unknown, or for a union."""
    members = split_outside(text.rstrip("*"), " | ")
    if len(members) > 1 or not members[0] or "Unknown" in text or "Any" in text:
        return ""
    name = members[0].partition("[")[0]
    if name == "Literal":
        return _TEXT_KIND if '"' in text else _NUMBER
    return _OBJECT if program.stubs.type(name) else _KIND_NAMES.get(name, "")


def _is_of_result(kind: str, text: str, program: Program) -> bool:
    """Returns whether a value comes from a tool's result; one that the program annotates may be anything."""
    is_typed = any(program.stubs.type(word) for word in re.findall(r"\w+", kind))
    return is_typed or _TAKEN.search(text) is not None


def _related_line(kind: str, finding: TyFinding, program: Program) -> StubLine | None:
    """Returns the line of the stubs that declares a type named in `kind`, else the result field that was read."""
    named = (program.stubs.type(word) for word in re.findall(r"\w+", kind))
    return next((each for each in named if each is not None), None) or program.result_field_stub(finding, kind)


def _builtin_call(finding: TyFinding, program: Program) -> _BuiltinCall | None:
    """Returns a finding's call of an overloaded built-in, with the argument to query; None for other calls."""
    if finding.rule != "no-matching-overload":
        return None
    names = QUOTED.findall(finding.message)
    name = names[0].rpartition(".")[2] if names else ""
    if name not in _OVERLOADED or program.defines(name):
        return None
    called = re.compile(rf"(?:.*?[.\s])?{name}\s*(?=\()", re.DOTALL).match(program.code, program.at(finding))
    if called is None:
        return None
    end = end_of_bracket(program.code, called.end())
    arguments = list(parts(program.code, called.end(), end)) if end is not None else []
    if name in _FIRST_FAILS:
        arguments = [each for each in arguments if not _NAMED.match(program.code[slice(*each)])]
    if name in _FIRST_OF_MORE_FAILS:
        arguments = arguments[:1]
    wanted = 1 if name in _SECOND_FAILS else 0
    if len(arguments) != wanted + 1:
        return None
    first, last = arguments[wanted]
    text = program.code[first:last]
    if text.lstrip().startswith("*") or "=" in text.partition("(")[0]:
        return None
    return _BuiltinCall(finding, Span(first + len(text) - len(text.lstrip()), first + len(text.rstrip())), name)


# Assignability as JSON: whether a Python value can be valid for a tool's parameter. The guest converts more than the
# type rules allow: a date to a string, a set to an array, an enum to its value (docs/write-programs-python.md). The
# host then repairs two things: it drops nulls for optional properties, and reads long integers in digits.

_WHOLE = re.compile(r"-?\d+")
_LEFT_OUT = "..."
_LONG_NUMBER = re.compile(r"""["']-?\d{16,}["']""")
_NO_VALUE = ("def ", "<", "type[", "bound method", "(", "Overload[")
_KINDS = {
    **dict.fromkeys(("str", "LiteralString"), "string"),
    **dict.fromkeys(("date", "datetime", "time", "UUID", "Fraction", "bytes", "bytearray", "memoryview"), "text"),
    **dict.fromkeys(("Path", "PosixPath", "WindowsPath", "PurePath", "PurePosixPath", "PureWindowsPath"), "text"),
    "int": "integer",
    **dict.fromkeys(("float", "Decimal", "timedelta"), "number"),
    "bool": "boolean",
    "None": "null",
    **dict.fromkeys(("list", "tuple", "set", "frozenset", "deque", "Sequence", "range"), "array"),
    **dict.fromkeys(("dict_keys", "dict_values", "dict_items"), "array"),
    **dict.fromkeys(("dict", "Mapping", "MutableMapping", "defaultdict", "OrderedDict", "Counter"), "object"),
    **dict.fromkeys(("GeneratorType", "Generator", "map", "filter", "zip", "enumerate", "reversed"), "nothing"),
    **dict.fromkeys(("Coroutine", "CoroutineType", "Future", "Task"), "nothing"),
}
_ADMITTED = {
    "string": {"string"},
    "text": {"string"},
    "integer": {"integer", "number"},
    "number": {"integer", "number"},  # 3.0 is a whole number
    "boolean": {"boolean"},
    "null": {"null"},
    "array": {"array"},
    "object": {"object"},
    "nothing": set[str](),
}


class _Type(NamedTuple):
    """One member of a union."""

    kind: str
    """The JSON type it is converted to; empty if unknown."""
    name: str
    arguments: tuple[str, ...]


class ValueTypes:
    """Compares types in the checker's notation."""

    def __init__(self, is_object: Callable[[str], bool], is_user_class: Callable[[str], bool]) -> None:
        self._is_object = is_object
        """Whether the stubs declare an object type of this name."""
        self._is_user_class = is_user_class
        """Whether the program defines a class of this name."""

    def may_assign(self, expected: str, found: str, *, none_allowed: bool = False, digits_allowed: bool = True) -> bool:
        """Returns whether a value of the found type can be valid where another is expected; true in doubt.

        With `none_allowed`, None is valid; without `digits_allowed`, a string is no long integer.
        """
        given = self._members(found)
        wanted = self._members(expected)
        if len(given) == 1 and given[0].name == "Literal":
            # Long messages omit some constants; the checker has compared with all of them.
            wanted = [other for other in wanted if other.name != _LEFT_OUT]
        return any(
            (none_allowed and one.kind == "null")
            or any(self._admits(other, one) and (digits_allowed or not _needs_digits(other, one)) for other in wanted)
            for one in given
        )

    def wrong_constants(self, expected: str, found: str) -> list[str]:
        """Returns the constants of a literal type that are not valid; empty if it has other members."""
        given = self._members(found)
        if any(one.name != "Literal" for one in given):
            return []
        wanted = self._members(expected)
        # Constants omitted from a long message are unknown.
        if any(other.name == _LEFT_OUT for other in wanted):
            return []
        return [one.arguments[0] for one in given if not any(self._admits(other, one) for other in wanted)]

    def _members(self, text: str) -> list[_Type]:
        """Parses a type in the checker's notation into its members, each literal by itself."""
        if text.startswith(_NO_VALUE) and " & " not in text:
            return [_Type("nothing", text, ())]
        members: list[_Type] = []
        for part in split_outside(text, " | "):
            plain = split_outside(part, " & ")[0].strip().rstrip("*")
            name, opening, rest = plain.partition("[")
            arguments = tuple(each.strip() for each in split_outside(rest[:-1], ",")) if opening else ()
            if name == "Literal":
                members += [_parse_literal(value) for value in arguments]
            else:
                members.append(_Type(self._json_kind(name), name, arguments))
        return members

    def _json_kind(self, name: str) -> str:
        """Returns the JSON type that values of a type become; empty if unknown, or a class of the program."""
        if self._is_user_class(name):
            return ""
        return "object" if self._is_object(name) else _KINDS.get(name, "")

    def _admits(self, wanted: _Type, given: _Type) -> bool:
        """Returns whether a value of one member can be valid for another, as JSON; true for unknown types."""
        if not wanted.kind or not given.kind:
            return True
        if wanted.name == "Literal":
            return _admits_literal(wanted, given)
        if wanted.kind in ("integer", "number") and given.kind == "string":
            return given.name != "Literal" or _LONG_NUMBER.fullmatch(given.arguments[0]) is not None
        if wanted.kind not in _ADMITTED[given.kind]:
            return False
        return wanted.kind != "array" or self._items_admitted(wanted, given)

    def _items_admitted(self, wanted: _Type, given: _Type) -> bool:
        """Whether all items can be valid. The items of an empty value have no type."""
        return not wanted.arguments or all(self.may_assign(wanted.arguments[0], item) for item in _items(given))


def _needs_digits(wanted: _Type, given: _Type) -> bool:
    """Whether a string is valid only if it is an integer in digits."""
    return wanted.kind in ("integer", "number") and given.kind == "string" and given.name != "Literal"


def _parse_literal(value: str) -> _Type:
    """Parses a constant in the checker's notation; an enum's member, or an omission, is of unknown kind."""
    if value.startswith(('"', "'")):
        return _Type("string", "Literal", (value,))
    if value.startswith(("b'", 'b"')):
        return _Type("text", "bytes", ())
    if value in ("True", "False"):
        return _Type("boolean", "Literal", (value,))
    if _WHOLE.fullmatch(value):
        return _Type("integer", "Literal", (value,))
    return _Type("", _LEFT_OUT if value.startswith(_LEFT_OUT) else "", ())  # else an enum member


def _admits_literal(wanted: _Type, given: _Type) -> bool:
    """Returns whether a value may equal a constant: an equal one, or any of its JSON type if not a constant."""
    if given.name == "Literal":
        return wanted.arguments == given.arguments
    return wanted.kind in _ADMITTED[given.kind]


def _items(given: _Type) -> tuple[str, ...]:
    """Returns the types of an array's items, as far as known."""
    if given.name == "tuple":
        return tuple(each for each in given.arguments if each not in ("...", "()"))
    others = {"range": ("int",), "dict_values": given.arguments[1:], "dict_items": ()}
    return others.get(given.name, given.arguments[:1])


_KEYWORD = re.compile(r"(\w+)\s*=\s*(?!=)")
_KEYWORD_FIRST = re.compile(r"\s*(?:\)|\*\*|[^\W\d]\w*\s*=(?!=))")
_LITERAL_FIRST = re.compile(r"""\s*(?:[rbfu]{0,2}["']|\d|\[)""", re.IGNORECASE)
_FRACTION = re.compile(r"-?\d[\d_]*\.\d*[1-9]\d*\s*(?:[,)]|$)", re.MULTILINE)
_FIRST_ITEM = re.compile(
    r"""\[\s*(?:(?P<text>["'])|(?P<number>-?\d+)\s*[,\]]|(?P<truth>True|False)\b\s*[,\]]"""
    r"""|(?P<list>\[|list\(|sorted\()|(?P<object>\{\s*["']))"""
)
_TEXTS = re.compile(r"""\[(?:\s*(?:"[^"\\\n]{1,100}"|'[^'"\\\n]{1,100}')\s*(?:,|(?=\])))+\s*\]""")
_TEXT = re.compile(r"""(["'])(.+?)\1""")
_ITEM_KINDS = (("str", "text"), ("list", "list"), ("dict", "object"))
_MISSING_KEY = re.compile(r"Missing required key ['\"](.*)['\"] in TypedDict")
_UNKNOWN_KEY = re.compile(r'Unknown key "(.*)" for TypedDict')
_OPENING = re.compile(r"dict\s*\(|\{")
_NEAR = 200
_LAST_NAME = re.compile(r"([^\W\d]\w*)\s*\Z")
_WITHOUT_LENGTH = re.compile(r"(?:int|float|bool|Literal\[-?\d+\])\*?")


def classify_call(finding: TyFinding, program: Program) -> Mistake | None:
    """Classifies a call with missing, unknown or too many arguments; None if it may be right."""
    names = QUOTED.findall(finding.message)
    function = names[-1] if names else ""
    stub = program.stubs.function(function)
    if stub is None:
        # The stubs of a library may be stricter than it is.
        return mistake_at(finding, None) if program.defines(function) else None
    if _may_call_another(finding, program, function):
        return None
    match finding.rule:
        case "missing-argument":
            return mistake_at(finding, stub) if _has_only_keywords(finding, program) else None
        case "too-many-positional-arguments":
            return _classify_positional(finding, program, function, stub)
        case "unknown-argument":
            return mistake_at(finding, stub, _unknown_argument_message(finding, program, names[0], stub))
        case _:
            return mistake_at(finding, stub)


def _may_call_another(finding: TyFinding, program: Program, function: str) -> bool:
    """Returns whether a call is by a variable, which may hold several functions: `for f in (one, other):`."""
    if finding.rule == "missing-argument":
        called = program.rest(finding).partition("(")[0]
    else:
        opening = start_of_bracket_around(program.code, program.at(finding))
        called = "" if opening is None else program.code[max(0, opening - _NEAR) : opening]
    name = _LAST_NAME.search(called)
    return name is not None and name[1] != function and name[1] in program.rebound_names


def _has_only_keywords(finding: TyFinding, program: Program) -> bool:
    """Returns whether a call begins with no positional argument: that may be a mapping, whose keys are unknown."""
    _, opening, given = program.rest(finding).partition("(")
    return bool(opening) and _KEYWORD_FIRST.match(given) is not None


def _classify_positional(finding: TyFinding, program: Program, function: str, stub: StubLine) -> Mistake | None:
    """Returns the mistake of positional arguments; None if the only one may be a mapping."""
    is_sure = _LITERAL_FIRST.match(program.rest(finding)) is not None or not finding.message.endswith("got 1")
    return mistake_at(finding, stub, f"`{function}`: it takes keyword arguments, or one dict.") if is_sure else None


def _unknown_argument_message(finding: TyFinding, program: Program, argument: str, stub: StubLine) -> str:
    """Returns the message for an unknown argument, with the nearest parameter, or all."""
    parameters = program.stubs.parameters(stub)
    guess = nearest(argument, parameters)
    there = f"Did you mean `{guess}`?" if guess else f"It takes: {', '.join(parameters) or 'nothing'}."
    return f"{finding.message}. {there}"


def classify_argument(finding: TyFinding, program: Program) -> Mistake | None:
    """Classifies an argument, or a key's value, of the wrong type; None if the host may accept it."""
    names = QUOTED.findall(finding.message)
    if finding.message.startswith("Invalid argument to key"):
        return _classify_input_value(finding, program)
    if not finding.message.startswith("Argument to ") or len(names) < 3:
        return None
    stub = program.stubs.function(names[0])
    if stub is None:
        return _classify_length(finding, program, names[0], names[-1]) or classify_builtin(finding, program)
    return (
        None
        if _may_call_another(finding, program, names[0])
        else _classify_tool_argument(finding, program, stub, names)
    )


def _classify_tool_argument(finding: TyFinding, program: Program, stub: StubLine, names: list[str]) -> Mistake | None:
    """Classifies an argument of a tool by the finding's quoted `names`; None if the host may accept it."""
    function, expected, found = names[0], names[-2], names[-1]
    rest = program.rest(finding)
    keyword = _KEYWORD.match(rest)
    if rest.startswith("*"):
        return None
    if keyword is None:
        may_assign = _value_types(program).may_assign(expected, found)
        return (
            None if may_assign else mistake_at(finding, stub, f"`{function}`: it takes keyword arguments, or one dict.")
        )
    none_allowed = not program.stubs.is_required(stub, keyword[1])
    given = program.text_of(finding)[keyword.end() :] or rest[keyword.end() :]
    if not _is_wrong(expected, found, program, given, none_allowed=none_allowed):
        wrong = _value_types(program).wrong_constants(expected, found)
        at = locate_wrong_constant(finding, wrong, program) if wrong else None
        if at is None:
            return None
        line, column = program.position(at)
        message = f"Wrong value for `{keyword[1]}` of `{function}`: expected `{expected}`, found `{found}`."
        written = mistake_at(finding, program.stubs.parameter(stub, keyword[1]) or stub, message)
        return written._replace(line=line, column=column)
    message = f"Wrong argument for `{keyword[1]}` of `{function}`: expected `{expected}`, found `{found}`."
    return mistake_at(finding, program.stubs.parameter(stub, keyword[1]) or stub, message)


def _value_types(program: Program) -> ValueTypes:
    return ValueTypes(lambda name: program.stubs.type(name) is not None, program.defines)


def _is_wrong(expected: str, found: str, program: Program, text: str, *, none_allowed: bool) -> bool:
    """Returns whether a value, whose source begins with this text, is certainly invalid."""
    types = _value_types(program)
    if not types.may_assign(expected, found, none_allowed=none_allowed, digits_allowed=may_be_digits(text, program)):
        return True
    if found.startswith("float") and _FRACTION.match(text):
        return not types.may_assign(expected, "float") or "float" not in expected
    # The checker infers a list literal's type as a union with the expected one.
    item = _FIRST_ITEM.match(text)
    if item is None or not found.startswith("list["):
        return False
    if written := _TEXTS.match(text):
        return not all(types.may_assign(expected, f'tuple[Literal["{each}"]]') for _, each in _TEXT.findall(written[0]))
    kind = next((kind for kind, group in _ITEM_KINDS if item[group]), f"Literal[{item['number'] or item['truth']}]")
    return not types.may_assign(expected, f"tuple[{kind}]")


def _classify_length(finding: TyFinding, program: Program, function: str, found: str) -> Mistake | None:
    """Classifies `len` of a number."""
    if function != "len" or program.defines("len") or not _WITHOUT_LENGTH.fullmatch(found):
        return None
    return mistake_at(finding, program.result_field_stub(finding, found), f"Object of type `{found}` has no length.")


def classify_input_key(finding: TyFinding, program: Program) -> Mistake | None:
    """Classifies a dictionary literal with a missing or unknown key; None if keys may come from elsewhere."""
    owner = next(iter(QUOTED.findall(finding.message)), "")
    stub = program.stubs.type(owner)
    missing, unknown = _MISSING_KEY.match(finding.message), _UNKNOWN_KEY.match(finding.message)
    if stub is None or (missing and not _has_all_keys(finding, program)) or not (missing or unknown):
        return None
    if missing:
        return mistake_at(finding, program.stubs.field(stub, missing[1]) or stub)
    assert unknown is not None
    guess = nearest(unknown[1], program.stubs.fields(owner))
    there = f'Did you mean "{guess}"?' if guess else f"It has: {', '.join(program.stubs.fields(owner))}."
    line = program.stubs.field(stub, guess) if guess else None
    return mistake_at(finding, line or stub, f'`{owner}` has no key "{unknown[1]}". {there}')


def _has_all_keys(finding: TyFinding, program: Program) -> bool:
    """Returns whether all keys are in the literal: none from `**` or from keywords beside it."""
    at = program.at(finding)
    opening = _OPENING.match(program.code, at)
    end = None if opening is None else end_of_bracket(program.code, opening.end() - 1)
    if end is None or "**" in program.code[at:end]:
        return False
    is_argument = program.code[max(0, at - _NEAR) : at].rstrip().endswith("(")
    after = program.code[end : end + _NEAR].lstrip().removeprefix(",").lstrip()
    return not is_argument or after.startswith(")")


def _classify_input_value(finding: TyFinding, program: Program) -> Mistake | None:
    """Classifies a value of the wrong type in a dictionary literal; None if the host may accept it.

    Raises IndexError or ValueError for an unexpected message.
    """
    declared, owner, found = QUOTED.findall(finding.message)[:3]
    key = finding.message.split('"')[1]
    stub = program.stubs.type(owner)
    none_allowed = stub is not None and not program.stubs.is_required_field(stub, key)
    if stub is None or not _is_wrong(
        declared, found, program, program.text_of(finding) or program.rest(finding), none_allowed=none_allowed
    ):
        return None
    message = f"Wrong value for `{key}`: expected `{declared}`, found `{found}`."
    return mistake_at(finding, program.stubs.field(stub, key) or stub, message)
