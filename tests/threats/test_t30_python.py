"""T30, boundary abuse by programs in Python, whose guest is a component."""

from __future__ import annotations

import pytest

from threats.hostile_programs import Contain, HostileProgram, python_programs, python_programs_for


def test_there_are_many_attacks_and_all_are_about_the_guest() -> None:
    programs = python_programs()
    assert len(programs) >= 200
    assert len({program.name for program in programs}) == len(programs)
    assert {program.threat for program in programs} == {"T30", "T31", "T32", "T33"}


@pytest.mark.parametrize("program", python_programs_for("T30"), ids=lambda program: program.name)
def test_a_program_that_abuses_the_boundary_is_contained(program: HostileProgram, contain_python: Contain) -> None:
    contain_python(program)
