"""The order of a module: types next to the first function that needs them."""

from __future__ import annotations

from codegen.hand_models import INTEGER, STRING, closed, function, known, module
from toolbridge_codegen.emit.layout import arrange, short_names
from toolbridge_codegen.model import ArrayType, Declaration, NamedType, UnionType


def test_each_function_brings_the_types_that_were_not_needed_before() -> None:
    model = module(
        function("a", "A", NamedType("Shared")),
        function("b", "B", ArrayType(NamedType("Shared"))),
        declarations=(
            Declaration("B", closed(known("shared", NamedType("Shared")))),
            Declaration("Shared", closed(known("deep", NamedType("Deep")))),
            Declaration("Deep", closed(known("shared", NamedType("Shared"), optional=True))),
            Declaration("A", closed(known("x", INTEGER))),
            Declaration("Unused", STRING),
        ),
    )
    layout = arrange(model)
    brought = [[declaration.name for declaration in declarations] for _, declarations in layout.functions]
    assert brought == [["A", "Shared", "Deep"], ["B"]]
    assert layout.results == {"Shared", "Deep"}


def test_a_name_is_followed_to_the_type_behind_it() -> None:
    declarations = (
        Declaration("A", NamedType("B")),
        Declaration("B", NamedType("C")),
        Declaration("C", STRING),
        Declaration("Loop", NamedType("Loop")),
    )
    layout = arrange(module(function("f", "A"), declarations=declarations))
    assert layout.resolve(NamedType("A")) == STRING
    assert layout.resolve(INTEGER) == INTEGER
    assert layout.resolve(NamedType("Loop")) == NamedType("Loop")


def test_short_names_are_properties_names_and_nobody_elses() -> None:
    def inline(name: str, *names: tuple[str, str]) -> Declaration:
        return Declaration(name, closed(*(known(each, NamedType(target)) for each, target in names)), inline=True)

    long = "AVeryLongNameThatTellsTheWholeWay"
    model = module(
        function("f", returned=NamedType("FOutput")),
        function("Taken"),
        declarations=(
            Declaration("FOutput", closed(known("data", NamedType(f"{long}A")), known("date", NamedType(f"{long}B")))),
            inline(f"{long}A", ("data", f"{long}C"), ("taken", f"{long}D"), ("1", f"{long}E"), ("short", "Short")),
            inline(f"{long}B"),
            inline(f"{long}C"),
            inline(f"{long}D"),
            inline(f"{long}E"),
            inline("Short"),
            Declaration("Choice", UnionType((NamedType(f"{long}F"), NamedType(f"{long}G")))),
            inline(f"{long}F"),
            inline(f"{long}G"),
        ),
    )
    model_with_choice = module(
        *model.functions, function("g", returned=NamedType("Choice")), declarations=model.declarations[1:]
    )
    short = short_names(arrange(model_with_choice), ["f", "Taken", "g"])
    assert short == {
        f"{long}A": "Data",
        f"{long}B": "Date2",  # Date is JavaScript's
        f"{long}C": "Data2",
        f"{long}D": "Taken2",
        f"{long}E": "Data3",
        f"{long}F": "Choice2",
        f"{long}G": "Choice3",
    }
