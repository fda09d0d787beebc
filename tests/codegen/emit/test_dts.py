"""TypeScript stubs: their text, and how the compiler sees them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from codegen import checkers
from codegen.hand_models import (
    ANYTHING,
    BOOLEAN,
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
from toolbridge_codegen.emit.dts import emit_dts
from toolbridge_codegen.model import (
    ArrayType,
    Declaration,
    Docs,
    LiteralType,
    MapType,
    ModuleModel,
    NamedType,
    NeverType,
    ObjectType,
    TupleType,
    TypeNode,
    UnionType,
)
from toolbridge_codegen.stubs import bridge_dts


def lines_of(model: TypeNode, *declarations: Declaration) -> list[str]:
    """The lines of a module whose only function returns this type, without the frame."""
    text = emit_dts(module(function("f", returned=model), declarations=declarations))
    return text.partition("}\ndeclare")[0].splitlines()[1:]


def written(node: TypeNode, *declarations: Declaration) -> str:
    """How a type is written as a result."""
    line = lines_of(node, *declarations)[-1]
    return line.removeprefix(" export function f(input?: { [key: string]: never }): ").removesuffix(";")


def test_a_module_has_the_form_that_the_requirements_show() -> None:
    assert emit_dts(forecast()) == (
        'declare module "host:mcp-weather" {\n'
        " interface GetForecastInput {\n"
        "  /** City or postcode */\n"
        "  location: string;\n"
        "  /** (default: 5; minimum: 1) */\n"
        "  days?: number;\n"
        " }\n"
        " interface GetForecastOutput { celsius: number[]; text: string }\n"
        " /** Get the weather forecast for a location */\n"
        " export function get_forecast(input: GetForecastInput): GetForecastOutput;\n"
        "}\n"
        'declare module "host:mcp-weather/async" {\n'
        ' type Sync = typeof import("host:mcp-weather");\n'
        " const twin: { [F in keyof Sync]: (...input: Parameters<Sync[F]>) => Promise<ReturnType<Sync[F]>> };\n"
        " export = twin;\n"
        "}\n"
    )


@pytest.mark.parametrize(
    ("node", "text"),
    [
        (ANYTHING, "any"),
        (NeverType(), "never"),
        (STRING, "string"),
        (NUMBER, "number"),
        (INTEGER, "number"),
        (BOOLEAN, "boolean"),
        (NULL, "null"),
        (LiteralType(("a", 1, -1.5, True, False, None)), '"a" | 1 | -1.5 | true | false | null'),
        (LiteralType(('q"\n',)), r'"q\"\n"'),
        (LiteralType((float("inf"), 10**400, 1)), "number | 1"),
        (ArrayType(STRING), "string[]"),
        (ArrayType(UnionType((STRING, NULL))), "(string | null)[]"),
        (ArrayType(LiteralType(("a", "b"))), '("a" | "b")[]'),
        (ArrayType(LiteralType(("a",))), '"a"[]'),
        (MapType(STRING), "{ [key: string]: string }"),
        (MapType(ANYTHING), "{ [key: string]: any }"),
        (UnionType((INTEGER, NUMBER)), "number"),
        (TupleType((STRING, NUMBER), 2, None), "[string, number]"),
        (TupleType((STRING, NUMBER), 1, BOOLEAN), "[string, number?, ...boolean[]]"),
        (
            TupleType((UnionType((STRING, NULL)),), 0, UnionType((STRING, NULL))),
            "[(string | null)?, ...(string | null)[]]",
        ),
        (TupleType((), 0, None), "[]"),
    ],
    ids=str,
)
def test_each_kind_of_type(node: TypeNode, text: str) -> None:
    assert written(node) == text


def test_an_open_place_is_unknown_in_inputs_and_any_in_results() -> None:
    text = emit_dts(
        module(
            function("f", "FInput", NamedType("FOutput")),
            declarations=(
                Declaration(
                    "FInput", closed(known("a", ANYTHING), known("b", MapType(ANYTHING)), known("c", NamedType("Both")))
                ),
                Declaration("FOutput", closed(known("a", ANYTHING), known("c", NamedType("Both")))),
                Declaration("Both", closed(known("x", ANYTHING))),
            ),
        )
    )
    assert "interface FInput { a: unknown; b: { [key: string]: any }; c: Both }" in text
    assert "interface FOutput { a: any; c: Both }" in text
    assert "interface Both { x: any }" in text


def test_the_type_of_other_properties_is_as_wide_as_those_of_the_known_ones() -> None:
    open_object = ObjectType((known("a", STRING), known("b", BOOLEAN, optional=True)), NUMBER)
    assert lines_of(NamedType("Open"), Declaration("Open", open_object))[0] == (
        " interface Open { a: string; b?: boolean; [key: string]: number | string | boolean | undefined }"
    )


def test_other_properties_are_any_where_a_union_would_be_long() -> None:
    many = tuple(known(f"p{number}", LiteralType((f"value {number}",))) for number in range(20))
    assert "  [key: string]: any;" in lines_of(NamedType("Open"), Declaration("Open", ObjectType(many, NUMBER)))


@pytest.mark.parametrize("name", ["constructor", "toString", "valueOf", "hasOwnProperty"])
def test_an_optional_property_may_be_what_every_object_has(name: str) -> None:
    def first_line(*, optional: bool, extra: TypeNode | None = None) -> str:
        return lines_of(NamedType("A"), Declaration("A", ObjectType((known(name, STRING, optional=optional),), extra)))[
            0
        ]

    assert first_line(optional=True) == f' interface A {{ {name}?: string | Object["{name}"] }}'
    assert first_line(optional=False) == f" interface A {{ {name}: string }}"
    assert first_line(optional=True, extra=NUMBER).endswith("[key: string]: any }")


def test_a_type_that_is_used_in_one_place_is_written_there() -> None:
    declarations = (
        Declaration("FOutput", closed(known("place", NamedType("Place"), "Where"), known("other", NamedType("Other")))),
        Declaration("Place", closed(known("lat", NUMBER)), inline=True),
        Declaration("Other", closed(known("x", NUMBER, "An x")), Docs("Something"), inline=True),
    )
    assert lines_of(NamedType("FOutput"), *declarations)[:-1] == [
        " interface FOutput {",
        "  /** Where */",
        "  place: { lat: number };",
        "  /** Something */",
        "  other: {",
        "   /** An x */",
        "   x: number;",
        "  };",
        " }",
    ]


def test_types_that_refer_to_themselves_keep_their_names() -> None:
    tree = Declaration("Tree", closed(known("kids", ArrayType(NamedType("Tree")))))
    assert lines_of(NamedType("Tree"), tree)[0] == " interface Tree { kids: Tree[] }"


def test_a_type_that_no_function_needs_is_left_out() -> None:
    assert "Unused" not in emit_dts(module(function("f"), declarations=(Declaration("Unused", STRING),)))


def test_an_input_that_may_be_empty_may_be_left_out() -> None:
    declaration = Declaration("FInput", closed(known("a", STRING, optional=True)))
    text = emit_dts(module(function("f", "FInput", optional=True), declarations=(declaration,)))
    assert "export function f(input?: FInput): any;" in text


def test_the_original_name_is_told_where_it_differs() -> None:
    assert '/** Do it (tool "do-it") */' in emit_dts(module(function("do-it", text="Do it")))
    assert '/** (tool "\\u202e*\\/") */' in emit_dts(module(function("\u202e*/")))
    assert f'/** (tool "{"-" * 100}"…) */' in emit_dts(module(function("-" * 5000)))


def test_a_deprecated_tool_and_property_say_so() -> None:
    model = module(
        function("f", "FInput", docs=Docs("Use g", deprecated=True)),
        declarations=(Declaration("FInput", closed(known("a", STRING))),),
    )
    assert " /** @deprecated Use g */\n export function f" in emit_dts(model)


def test_errors_can_be_part_of_the_result() -> None:
    text = emit_dts(forecast(), errors="return")
    assert "export function get_forecast(input: GetForecastInput): GetForecastOutput | { error: string };" in text


def test_a_module_may_have_no_tools() -> None:
    assert emit_dts(module()).startswith('declare module "host:mcp-weather" {\n}\n')


# ---- what the compiler says

PROGRAM = """\
import { get_forecast } from "host:mcp-weather";
import * as all from "host:mcp-weather";
import { get_forecast as later } from "host:mcp-weather/async";
import * as laters from "host:mcp-weather/async";
const forecast = get_forecast({ location: "Oslo" });
const celsius: number[] = forecast.celsius;
const text: Promise<string> = later({ location: "Oslo", days: 3 }).then((value) => value.text);
const required = require("host:mcp-weather").get_forecast({ location: "Oslo" }).celsius.length;
const awaited = require("host:mcp-weather/async").get_forecast({ location: "Oslo" }).then((value) => value.celsius);
const sum = async () => (await Promise.all([later({ location: "a" }), laters.get_forecast({ location: "b" })]))[1].text;
const nothing: all.Empty = {}, something: all.Empty = { constructor: "x", toString: "y" };
export default [nothing, something, celsius, text, required, awaited, sum, all.get_forecast({ location: "Oslo" }).text];
get_forecast({ locatio: "Oslo" });
get_forecast({});
get_forecast({ location: "Oslo", days: "3" });
later({ location: 3 });
laters.get_forecasts({ location: "Oslo" });
forecast.fahrenheit;
require("host:mcp-weather").get_forecasts;
"""
FIRST_BAD_LINE = 13


def with_empty(model: ModuleModel) -> ModuleModel:
    """The same with a type of which no property has to be there."""
    names = ["constructor", "toString", "valueOf", "__proto__"]
    empty = Declaration("Empty", closed(*(known(name, STRING, optional=True) for name in names)))
    return module(*model.functions, function("g", "Empty"), declarations=(*model.declarations[1:], empty))


@pytest.fixture(scope="module")
def problems(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, list[checkers.Problem]]:
    """What the compiler objects to, by directory: one program for each."""
    found: dict[str, list[checkers.Problem]] = {}
    for name, files in {
        "program": {"program.ts": PROGRAM, "stub.d.ts": emit_dts(with_empty(forecast()))},
        "everything": {"stub.d.ts": emit_dts(everything())},
        "everything with errors": {"stub.d.ts": emit_dts(everything(), errors="return")},
    }.items():
        directory = tmp_path_factory.mktemp("typescript")
        checkers.write_files(directory, {**files, "bridge.d.ts": bridge_dts(["host:mcp-weather"])})
        found[name] = list(checkers.run_tsc(directory))
    return found


@pytest.mark.parametrize("name", ["everything", "everything with errors"])
def test_every_kind_of_type_and_name_passes_the_compiler(
    problems: Mapping[str, list[checkers.Problem]], name: str
) -> None:
    assert not problems[name]


def test_the_compiler_accepts_right_calls_and_refuses_each_wrong_one(
    problems: Mapping[str, list[checkers.Problem]],
) -> None:
    lines = [problem.line for problem in problems["program"]]
    assert lines == list(range(FIRST_BAD_LINE, PROGRAM.count("\n") + 1))


def test_the_compiler_names_the_property_that_was_meant(problems: Mapping[str, list[checkers.Problem]]) -> None:
    assert "Did you mean to write 'location'?" in problems["program"][0].message
    assert "'get_forecast'" in problems["program"][4].message


def test_stubs_of_other_checks_merge_with_nodes_own_types(tmp_path: Path) -> None:
    """An editor that has Node's types must not see two `require`."""
    node = (
        "declare namespace NodeJS { interface Require { (id: string): any } }\ndeclare var require: NodeJS.Require;\n"
    )
    files = {"node.d.ts": node, "bridge.d.ts": bridge_dts(["host:mcp-weather"]), "stub.d.ts": emit_dts(forecast())}
    program = 'const text: string = require("host:mcp-weather").get_forecast({ location: "" }).text;\n'
    checkers.write_files(tmp_path, {**files, "program.ts": program})
    assert not checkers.run_tsc(tmp_path)
