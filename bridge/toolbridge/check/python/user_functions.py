"""Rewrites user-defined functions so that the checker knows the types of their arguments.

Of a parameter without an annotation, or with a vague one (`row: dict`), the checker knows nothing. So every call also
assigns its argument to a variable, from which the function takes its parameter: `def total(line): line = _given_0`,
`total((_given_0 := row))`. The program that runs is never changed, nor a function with a use that can't be read.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import NamedTuple

from toolbridge.check.python.comparisons import may_be_digits
from toolbridge.check.python.mistakes import find_mistakes
from toolbridge.check.python.program import QUOTED, Mistake, Program, TyFinding, UserFunction, mistake_at
from toolbridge.check.python.rewriting import HELPERS, Edit, Rewriting, is_vague, relocated
from toolbridge.check.python.text import end_of_bracket, parts, split_outside, start_of_bracket_around

ARGUMENT_PREFIX = "_given_"
"""The prefix of the variables."""
_PARAMETER = re.compile(r"\s*(\w+)\s*(:[^=]*)?(=.*)?\Z", re.DOTALL)
_KEYWORD = re.compile(r"\s*(\w+)\s*=(?!=)\s*")
_CONSTANT = re.compile(r"""\s*(?:(["'])[^"']*\1|-?\d+|-?\d+\.\d+|True|False)\s*\Z""")
_OPENING = re.compile(r"[ \t]*\(")
_LAST_NAME = re.compile(r"(?<![\w.])(\w+)[ \t]*\Z")
_ITERATED = re.compile(r"\bfor\b.*\bin\b(?!.*\bif\b)", re.DOTALL)
_MOST_PARAMETERS = 40
_MOST_CALLS = 20
_FARTHEST = 2000


class Parameter(NamedTuple):
    """A parameter of a user-defined function."""

    name: str
    annotation: tuple[int, int] | None
    """The span of `: annotation`."""
    is_positional: bool
    position: int


class Argument(NamedTuple):
    """The argument that a call passes for a parameter."""

    start: int
    end: int
    has_many: bool = False
    """Whether the function gets each item of it: `map(title, issues)`."""


class Use(NamedTuple):
    """A call of a function, directly or by `map`, `filter`, `sorted` …"""

    start: int
    end: int
    given: dict[str, Argument]


def parameters_of(function: UserFunction, code: str) -> list[Parameter] | None:
    """Returns the parameters of a function; None if they can't be read, or it is a method."""
    found: list[Parameter] = []
    is_positional = True
    for start, end in parts(code, *function.parameters):
        text = code[start:end]
        if text.strip() in ("*", "/"):
            is_positional = is_positional and text.strip() == "/"
            continue
        plain = _PARAMETER.match(text)
        if plain is None or plain[1] in ("self", "cls"):
            return None
        noted = (start + plain.start(2), start + len(text[: plain.end(2)].rstrip())) if plain[2] else None
        found.append(Parameter(plain[1], noted, is_positional, len(found)))
    return found


def uses_of(function: UserFunction, parameters: list[Parameter], program: Program) -> list[Use] | None:
    """Returns the uses of a function in the program; None if one of them can't be read as a call."""
    code = program.code_with_fields
    name = re.escape(function.name)
    uses: list[Use] = []
    for found in re.finditer(rf"(?<![\w.]){name}\b", code):
        if re.search(r"\b(?:def|class)[ \t]+\Z", code[max(0, found.start() - 20) : found.start()]):
            if not function.start <= found.start() < function.parameters[0]:
                return None
            continue
        opening = _OPENING.match(code, found.end())
        end = end_of_bracket(code, opening.end() - 1) if opening else None
        if opening is not None and end is not None:
            given = arguments_of(parameters, (opening.end() - 1, end), code)
        else:
            given = _iterated_argument(parameters, found.span(), code)
        if given is None:
            return None
        uses.append(Use(found.start(), end or found.end(), given))
    return uses


def _iterated_argument(parameters: list[Parameter], name: tuple[int, int], code: str) -> dict[str, Argument] | None:
    """Returns the argument for a function in `map(name, values)`, `filter(name, values)` or `sorted(values, key=name)`.

    `name` is the span of its name. None for any other use.
    """
    opening = start_of_bracket_around(code, name[0])
    end = end_of_bracket(code, opening) if opening is not None else None
    called = _LAST_NAME.search(code, max(0, (opening or 0) - 40), opening or 0)
    if opening is None or end is None or called is None or not parameters:
        return None
    arguments = list(parts(code, opening, end))
    key = re.compile(r"\bkey[ \t]*=[ \t]*\Z").search(code, max(0, name[0] - 20), name[0])
    first = code[slice(*arguments[0])] if arguments else ""
    is_mapped = called[1] in ("map", "filter") and len(arguments) == 2 and first.strip() == code[slice(*name)]
    is_key = called[1] in ("sorted", "max", "min") and key and len(arguments) > 1 and not _KEYWORD.match(first)
    if not (is_mapped or is_key):
        return None
    start, end = arguments[1 if is_mapped else 0]
    text = code[start:end]
    if text.lstrip().startswith("*"):
        return None
    return {parameters[0].name: Argument(start + len(text) - len(text.lstrip()), start + len(text.rstrip()), True)}


def arguments_of(parameters: list[Parameter], call: tuple[int, int], code: str) -> dict[str, Argument] | None:
    """Returns a call's arguments by parameter; None if they can't be read. `call` is the span of its brackets."""
    given: dict[str, Argument] = {}
    names = {each.name for each in parameters}
    positional = [each.name for each in parameters if each.is_positional]
    if "lambda" in code[call[0] : call[1]]:
        return None
    for number, (start, end) in enumerate(parts(code, *call)):
        text = code[start:end]
        if text.lstrip().startswith("*"):
            return None
        keyword = _KEYWORD.match(text)
        name = keyword[1] if keyword else (positional[number] if number < len(positional) else "")
        if name not in names or name in given:
            return None
        first = start + (keyword.end() if keyword else len(text) - len(text.lstrip()))
        given[name] = Argument(first, start + len(text.rstrip()))
    return given


def argument_edits(program: Program) -> Iterator[Edit]:
    """Yields edits that reveal the types of arguments in user-defined functions."""
    number = 0
    shared: dict[int, set[str]] = {}
    for function in program.functions:
        for parameter, arguments in islice(_known(function, program), _MOST_PARAMETERS):
            spans = {program.function_around(each.start) for each in arguments}
            if None in spans and any(_is_in_unusual_place(each, program) for each in arguments):
                continue
            variable = f"{ARGUMENT_PREFIX}{number}"
            number += 1
            for each in spans:
                if each is not None:
                    shared.setdefault(each, set()).update((variable, f"{variable}_all"))
            yield from edits_for(function, parameter, arguments, variable, program)
    for index, variables in shared.items():
        first = program.functions[index].lines[0]
        indent = program.indent(first)
        yield Edit(first.start, first.start, f"global {', '.join(sorted(variables))}\n{indent}", -3)


def _known(function: UserFunction, program: Program) -> Iterator[tuple[Parameter, list[Argument]]]:
    """Yields the parameters without a precise annotation, with the argument of every call.

    None of a function that is decorated, rebound, named like a tool, or has a use that can't be read.
    """
    code = program.code
    is_rebound = re.search(rf"(?<![\w.]){function.name}[ \t]*=(?!=)", code)
    if function.is_decorated or program.stubs.function(function.name) or is_rebound:
        return
    parameters = parameters_of(function, code)
    found = uses_of(function, parameters, program) if parameters else None
    # Recursive calls pass on what another call passed.
    uses = [use for use in found or [] if not function.colon < use.start <= function.end]
    if not parameters or not uses or len(uses) > _MOST_CALLS:
        return
    for each in parameters:
        says = "" if each.annotation is None else code[slice(*each.annotation)].removeprefix(":")
        arguments = [use.given[each.name] for use in uses if each.name in use.given]
        if len(arguments) != len(uses) or (says and not is_vague(says)):
            continue
        if not any(_is_callable(one, program) or _is_within_iterable(one, program) for one in arguments):
            yield each, arguments


def _is_callable(argument: Argument, program: Program) -> bool:
    """Returns whether an argument is the name of a tool, or of a function or class of the program."""
    text = program.code[argument.start : argument.end].strip()
    name = text.rpartition(".")[2]
    return program.stubs.function(name) is not None or program.defines(name) if name.isidentifier() else False


def _is_within_iterable(argument: Argument, program: Program) -> bool:
    """Returns whether it is in a lambda or a comprehension's iterable, which can't have assignment expressions."""
    code, at = program.code_with_fields, argument.start
    line_start = max(code.rfind("\n", 0, at), at - _FARTHEST)
    if "lambda" in code[line_start:at]:
        return True
    while (opening := start_of_bracket_around(code, at)) is not None:
        if _ITERATED.search(code[opening:at]):
            return True
        at = opening
    return False


def _is_in_unusual_place(argument: Argument, program: Program) -> bool:
    """Returns whether a call is in a class body, or in a function with unusual formatting."""
    line = program.line_around(argument.start)
    return line is None or bool(re.match(r"(?:async[ \t]+)?def\b", line.text)) or program.is_in_class(line)


def edits_for(
    function: UserFunction,
    parameter: Parameter,
    arguments: list[Argument],
    variable: str,
    program: Program,
    *,
    instead: str = "",
) -> Iterator[Edit]:
    """Yields the edits for one parameter, whose arguments in some calls are assigned to a variable.

    `instead` is put before the argument's text.
    """
    first = function.lines[0]
    kinds = sorted({each.has_many for each in arguments})
    values = [f"{HELPERS}.item({variable}_all)" if has_many else variable for has_many in kinds]
    value = f" if {HELPERS}.either else ".join(values)
    yield Edit(first.start, first.start, f"{parameter.name} = {value}\n{program.indent(first)}", -2)
    if parameter.annotation:
        yield Edit(*parameter.annotation, "")
    for each in arguments:
        name = f"{variable}_all" if each.has_many else variable
        is_constant = _CONSTANT.match(program.source[each.start : each.end])
        yield Edit(each.start, each.start, f"({name} := {instead}{_constant_type(is_constant)}(", -1)
        yield Edit(each.end, each.end, "))", 1)


def _constant_type(constant: re.Match[str] | None) -> str:
    """Returns the call that widens a constant to its type; empty for no constant.

    Other calls may pass other values.
    """
    if constant is None:
        return ""
    text = constant[0].strip()
    return "bool" if text in ("True", "False") else "str" if text[0] in "\"'" else "float" if "." in text else "int"


# Trial calls. Annotations don't bind at run time. So a call whose argument contradicts an annotation is tried: in a
# copy of the program, the parameter gets the argument's type. If the checker then finds a mistake in the function, the
# call is wrong.

_MOST_TRIED = 3
_MOST_LOOKED_AT = 20
_TRIED = "_given_to_try"


class _Trial(NamedTuple):
    finding: TyFinding
    function: UserFunction
    parameter: Parameter
    argument: Argument


class TrialCalls:
    """Calls with contradicted annotations, each tried in a copy of the program; at most three.

    `edits` are those of the program itself, and `before` the text to stand before it.
    """

    def __init__(self, findings: Iterable[TyFinding], program: Program, edits: Iterable[Edit], before: str) -> None:
        self._program = program
        listed = list(findings) if program.is_small else []
        self._known = {(each.line, each.column, each.rule) for each in listed}
        known = list(edits)
        self._copies = [
            (each, Rewriting(program.source, [*_trial_edits(each, program), *known], before))
            for each, _ in zip(_trials_of(listed, program), range(_MOST_TRIED), strict=False)
        ]
        self.files = {f"tried_{number}.py": copy.text for number, (_, copy) in enumerate(self._copies)}
        """The copies for the checker, by file name."""

    def mistakes(self, answers: Mapping[str, list[TyFinding]]) -> list[Mistake]:
        """Returns the calls after which the checker finds a mistake in the function, at most one per line."""
        found: list[Mistake] = []
        for name, (each, copy) in zip(self.files, self._copies, strict=True):
            findings = [one for one in relocated(answers.get(name, []), copy) if self._is_new(one, each)]
            inside = find_mistakes(findings, self._program, is_whole=False)
            if inside and all(other.line != each.finding.line for other in found):  # once per call
                expected, given = QUOTED.findall(each.finding.message)[-2:]
                message = f"Wrong argument for `{each.parameter.name}` of `{each.function.name}`: expected `{expected}`"
                message += f", found `{given}`. In line {inside[0].line}: {inside[0].message.rstrip('.')}."
                found.append(mistake_at(each.finding, inside[0].stub, message))
        return found

    def _is_new(self, finding: TyFinding, tried: _Trial) -> bool:
        """Returns whether a finding is in the tried function, and was not there before the trial."""
        if (finding.line, finding.column, finding.rule) in self._known or finding.rule == "invalid-syntax":
            return False
        return tried.function.colon < self._program.at(finding) <= tried.function.end


def _trials_of(findings: Iterable[TyFinding], program: Program) -> Iterator[_Trial]:
    """Yields a trial for each finding about an argument of a user-defined function, if its type is no union."""
    mismatched = (each for each in findings if each.rule == "invalid-argument-type")
    about_functions = (each for each in mismatched if each.message.startswith("Argument to function"))
    for each in islice(about_functions, _MOST_LOOKED_AT):
        names = QUOTED.findall(each.message)
        if len(names) < 3 or len(split_outside(names[-1], " | ")) > 1:
            continue
        functions = [one for one in program.functions if one.name == names[0]]
        if len(functions) != 1 or program.stubs.function(names[0]) or functions[0].is_decorated:
            continue
        found = _argument(each, functions[0], program)
        if found is not None:
            yield _Trial(each, functions[0], *found)


def _argument(finding: TyFinding, function: UserFunction, program: Program) -> tuple[Parameter, Argument] | None:
    """Returns the parameter and the argument of a finding; None if the function changes or tests the parameter."""
    at = program.at(finding)
    parameters = parameters_of(function, program.code)
    uses = uses_of(function, parameters, program) if parameters else None
    given = next((use.given for use in reversed(uses or []) if use.start < at < use.end), None)
    for each in parameters or []:
        argument = (given or {}).get(each.name)
        end = program.index(finding.end_line, finding.end_column)
        if argument is not None and at <= argument.start < end:
            body = program.code[function.colon : function.end]
            assigned = rf"(?:[\w.* \t,]*,[ \t]*)?{each.name}[ \t]*(?:,|(?::[^=]*)?[-+*/|]?=(?!=))"
            changed = re.compile(rf"{assigned}|for\b.*\b{each.name}\b.*\bin\b")
            is_changed = any(changed.match(line.text) for line in function.lines)
            return None if is_changed or "isinstance" in body or ":=" in body else (each, argument)
    return None


def _trial_edits(tried: _Trial, program: Program) -> Iterator[Edit]:
    """Yields the edits that give the parameter the argument's type, in place of its annotation."""
    given = QUOTED.findall(tried.finding.message)[-1]
    text = program.source[tried.argument.start : tried.argument.end]
    # A string that is no number: a literal that can't be taken for one.
    is_word = given == "str" and not may_be_digits(text, program)
    yield from edits_for(
        tried.function, tried.parameter, [tried.argument], _TRIED, program, instead='"words" or ' if is_word else ""
    )
    around = program.function_around(tried.argument.start)
    if around is not None:
        first = program.functions[around].lines[0]
        yield Edit(first.start, first.start, f"global {_TRIED}\n{program.indent(first)}", -4)
