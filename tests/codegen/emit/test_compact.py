"""Compact stubs: one line per tool, whatever the types."""

from __future__ import annotations

import pytest

from codegen.hand_models import (
    ANYTHING,
    INTEGER,
    NULL,
    NUMBER,
    STRING,
    closed,
    everything,
    forecast,
    function,
    known,
    module,
)
from growth import work_within
from toolbridge_codegen.emit.compact import emit_compact, first_sentence
from toolbridge_codegen.model import (
    ArrayType,
    Declaration,
    LiteralType,
    MapType,
    NamedType,
    ObjectType,
    TupleType,
    TypeNode,
    UnionType,
)
from toolbridge_codegen.stubs import Language

LANGUAGES: tuple[Language, ...] = ("typescript", "python")


def line(node: TypeNode, *declarations: Declaration, language: Language = "typescript") -> str:
    """The line of a function that returns this type, from there on."""
    text = emit_compact(module(function("f", returned=node), declarations=declarations), language)
    return text.splitlines()[1].removeprefix("f(): ").removeprefix("f() -> ")


def test_a_tool_is_one_line_in_either_language() -> None:
    assert emit_compact(forecast(), "typescript") == (
        '// import from "host:mcp-weather"\n'
        "get_forecast(input: { location: string; days?: number }): { celsius: number[]; text: string }"
        " // Get the weather forecast for a location\n"
    )
    assert emit_compact(forecast(), "python") == (
        "# from host.mcp_weather import …; arguments by keyword, except before /\n"
        'get_forecast(location: str, days: int = ...) -> { "celsius": list[float], "text": str }'
        " # Get the weather forecast for a location\n"
    )


def test_failures_that_are_returned_are_part_of_what_a_line_says_even_where_it_is_cut() -> None:
    wide = closed(*(known(f"property_{number}", STRING) for number in range(100)))
    model = module(function("f", returned=NamedType("Wide")), declarations=(Declaration("Wide", wide),))
    assert emit_compact(model, "typescript", errors="return").endswith("; … } | { error: string }\n")
    assert emit_compact(model, "python", errors="return").endswith(', … } | { "error": str }\n')


@pytest.mark.parametrize(
    ("node", "typescript", "python"),
    [
        (ANYTHING, "any", "Any"),
        (LiteralType(("a", 1, None, True)), '"a" | 1 | null | true', '"a" | 1 | None | True'),
        (LiteralType(tuple(range(20))), "0 | 1 | 2 | 3 | 4 | 5 | 6 | 7 | …", "0 | 1 | 2 | 3 | 4 | 5 | 6 | 7 | …"),
        (LiteralType(("x" * 50,)), f'"{"x" * 40}"…', f'"{"x" * 40}"…'),
        (LiteralType(("\u202e*/\n",)), r'"\u202e*/\n"', r'"\u202e*/\n"'),
        (ArrayType(UnionType((STRING, NULL))), "(string | null)[]", "list[str | None]"),
        (TupleType((STRING, NUMBER), 2, None), "(string | number)[]", "list[str | float]"),
        (MapType(INTEGER), "{ [key: string]: number }", "dict[str, int]"),
    ],
    ids=str,
)
def test_each_kind_of_type(node: TypeNode, typescript: str, python: str) -> None:
    assert (line(node), line(node, language="python")) == (typescript, python)


def test_objects_are_shown_as_deep_as_there_is_room() -> None:
    inner = Declaration("Inner", closed(known("x", INTEGER), known("y", INTEGER, optional=True)))
    assert line(NamedType("Outer"), Declaration("Outer", closed(known("a", NamedType("Inner")))), inner) == (
        "{ a: { x: number; y?: number } }"
    )
    wide = Declaration("Outer", closed(*(known(f"property_{number}", NamedType("Inner")) for number in range(8))))
    assert line(NamedType("Outer"), wide, inner).startswith("{ property_0: {…}; property_1: {…};")
    assert line(NamedType("Outer"), wide, inner, language="python").startswith(
        '{ "property_0": dict, "property_1": dict,'
    )


@pytest.mark.parametrize("language", LANGUAGES)
def test_required_properties_are_shown_first_when_space_is_short(language: Language) -> None:
    properties = [known(f"optional_property_{number}", STRING, optional=True) for number in range(100)]
    declaration = Declaration("FInput", closed(*properties, known("needed", STRING)))
    text = emit_compact(module(function("f", "FInput"), declarations=(declaration,)), language).splitlines()[1]
    assert len(text) < 400
    assert "needed: str" in text
    assert "optional_property_1" in text
    assert "…" in text


def test_an_object_with_other_properties_says_so() -> None:
    assert (
        line(NamedType("Open"), Declaration("Open", ObjectType((known("a", STRING),), ANYTHING))) == "{ a: string; … }"
    )


def test_names_that_are_no_keywords_make_one_mapping_in_python() -> None:
    declaration = Declaration("FInput", closed(known("a-b", STRING), known("c", STRING, optional=True)))
    text = emit_compact(module(function("f", "FInput"), declarations=(declaration,)), "python")
    assert 'f(input: { "a-b": str, "c"?: str }, /) -> Any\n' in text


def python_line(given: str | MapType, *declarations: Declaration, optional: bool = False) -> str:
    model = module(function("f", given, optional=optional), declarations=declarations)
    return emit_compact(model, "python").splitlines()[1]


def test_required_python_parameters_come_first() -> None:
    declaration = Declaration("FInput", closed(known("a", STRING, optional=True), known("b", INTEGER)))
    assert python_line("FInput", declaration) == "f(b: int, a: str = ...) -> Any"


def test_no_python_parameter_has_the_name_of_another() -> None:
    declaration = Declaration("FInput", ObjectType((known("more", STRING), known("more_", STRING)), ANYTHING))
    assert python_line("FInput", declaration) == "f(more: str, more_: str, **more__: Any) -> Any"


def test_a_python_mapping_that_may_be_left_out_says_so() -> None:
    odd = Declaration("FInput", closed(known("a-b", STRING, optional=True)))
    assert python_line("FInput", odd, optional=True) == 'f(input: { "a-b"?: str } = ..., /) -> Any'
    assert python_line(MapType(INTEGER), optional=True) == "f(input: dict[str, int] = ..., /) -> Any"


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_tool_has_its_line_and_no_more(language: Language) -> None:
    model = everything()
    lines = emit_compact(model, language).splitlines()
    assert [text.partition("(")[0] for text in lines[1:]] == [each.tool.identifier for each in model.functions]
    assert all(len(text) < 1000 and text.isprintable() for text in lines)


@pytest.mark.parametrize("language", LANGUAGES)
def test_highly_recursive_types_end_soon(language: Language) -> None:
    many = tuple(NamedType(f"T{number}") for number in range(100))
    declarations = [
        Declaration(f"T{number}", UnionType((ArrayType(UnionType(many)), TupleType(many, 0, None), STRING)))
        for number in range(100)
    ]
    loop = Declaration("Loop", ArrayType(NamedType("Loop")))
    model = module(
        *(function(f"f{number}", returned=NamedType(f"T{number}")) for number in range(100)),
        function("g", returned=NamedType("Loop")),
        declarations=(*declarations, loop),
    )
    with work_within(5):
        text = emit_compact(model, language)
    assert max(map(len, text.splitlines())) < 1000


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("", ""),
        ("Get it", "Get it"),
        ("Get it.", "Get it"),
        ("Get it. Then more.", "Get it"),
        ("Get v1.2 of it, e.g. this. Or that.", "Get v1.2 of it, e.g. this"),
        ("Get it\n\nArgs:\n  a: b", "Get it"),
        ("天気を取得する。以下", "天気を取得する"),
        ("word " * 50, "word " * 19 + "word…"),
        ("x" * 200, "x" * 100 + "…"),
    ],
)
def test_of_a_description_the_first_sentence_is_shown(text: str, first: str) -> None:
    assert first_sentence(text) == first
