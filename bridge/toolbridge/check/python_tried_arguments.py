"""Arguments of a program's own functions that are not what their annotations say.

Annotations are the program's own affair: it runs with whatever is given. So the function is tried: the checker is given
the program again, with the parameter being what the call gives. If something in the function goes wrong then, the call
is the mistake.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import NamedTuple

from toolbridge.check.python_digits import may_be_digits
from toolbridge.check.python_functions import OwnFunction
from toolbridge.check.python_mistakes import find_mistakes
from toolbridge.check.python_own_arguments import Argument, Parameter, edits_for, parameters_of, uses_of
from toolbridge.check.python_program import QUOTED, Finding, Mistake, Program, mistake_at
from toolbridge.check.python_rewriting import Edit, Rewriting, placed
from toolbridge.check.python_text import split_outside

_MOST_TRIED = 3
_MOST_LOOKED_AT = 20
_TRIED = "_given_to_try"


class _Try(NamedTuple):
    finding: Finding
    function: OwnFunction
    parameter: Parameter
    argument: Argument


class TriedArguments:
    """The calls that are tried, each in a copy of the program."""

    def __init__(self, findings: Iterable[Finding], program: Program, edits: Iterable[Edit], before: str) -> None:
        self._program = program
        listed = list(findings) if program.is_readable else []
        self._known = {(each.line, each.column, each.rule) for each in listed}
        known = list(edits)
        self._copies = [
            (each, Rewriting(program.source, [*_edits(each, program), *known], before))
            for each, _ in zip(_tries(listed, program), range(_MOST_TRIED), strict=False)
        ]
        self.files = {f"tried_{number}.py": copy.text for number, (_, copy) in enumerate(self._copies)}
        """What the checker is to be given; nothing if there is nothing to try."""

    def mistakes(self, answers: Mapping[str, list[Finding]]) -> list[Mistake]:
        """The calls after which something goes wrong in the function."""
        found: list[Mistake] = []
        for name, (each, copy) in zip(self.files, self._copies, strict=True):
            findings = [one for one in placed(answers.get(name, []), copy) if self._is_new(one, each)]
            inside = find_mistakes(findings, self._program, is_whole=False)
            if inside and all(other.line != each.finding.line for other in found):  # once for a call
                expected, given = QUOTED.findall(each.finding.message)[-2:]
                told = inside[0].message.rstrip(".")
                message = (
                    f"Wrong argument for `{each.parameter.name}` of `{each.function.name}`: expected `{expected}`, "
                )
                message += f"found `{given}`. In line {inside[0].line}: {told}."
                found.append(mistake_at(each.finding, inside[0].stub, message))
        return found

    def _is_new(self, finding: Finding, tried: _Try) -> bool:
        if (finding.line, finding.column, finding.rule) in self._known or finding.rule == "invalid-syntax":
            return False
        return tried.function.colon < self._program.at(finding) <= tried.function.end


def _tries(findings: Iterable[Finding], program: Program) -> Iterator[_Try]:
    about_arguments = (
        each
        for each in findings
        if each.rule == "invalid-argument-type" and each.message.startswith("Argument to function")
    )
    for each in islice(about_arguments, _MOST_LOOKED_AT):
        names = QUOTED.findall(each.message)
        if len(names) < 3 or len(split_outside(names[-1], " | ")) > 1:
            continue
        functions = [one for one in program.functions if one.name == names[0]]
        if len(functions) != 1 or program.stubs.function(names[0]) or functions[0].is_decorated:
            continue
        found = _argument(each, functions[0], program)
        if found is not None:
            yield _Try(each, functions[0], *found)


def _argument(finding: Finding, function: OwnFunction, program: Program) -> tuple[Parameter, Argument] | None:
    """The parameter that a finding is about, and what it is given."""
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


def _edits(tried: _Try, program: Program) -> Iterator[Edit]:
    given = QUOTED.findall(tried.finding.message)[-1]
    text = program.source[tried.argument.start : tried.argument.end]
    # A text that is no number in digits: as one that is written there, which nobody takes for one.
    is_word = given == "str" and not may_be_digits(text, program)
    yield from edits_for(
        tried.function, tried.parameter, [tried.argument], _TRIED, program, instead='"words" or ' if is_word else ""
    )
    around = program.function_around(tried.argument.start)
    if around is not None:
        first = program.functions[around].lines[0]
        yield Edit(first.start, first.start, f"global {_TRIED}\n{program.indent(first)}", -4)
