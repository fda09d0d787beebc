"""Python stubs: their text, and how the checkers see them."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any, cast

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
from codegen.stub_syntax import undeclared_names
from toolbridge_codegen.catalog import ServerListing, ToolDefinition, build_catalog
from toolbridge_codegen.emit.layout import arrange, short_names
from toolbridge_codegen.emit.pyi import emit_aio_pyi, emit_pyi, input_style
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
    Property,
    TupleType,
    TypeNode,
    UnionType,
)
from toolbridge_codegen.stubs import bridge_pyi, generate


def written(node: TypeNode) -> str:
    """How a type is written as a result."""
    line = emit_pyi(module(function("f", returned=node))).splitlines()[-1]
    return line.removeprefix("def f() -> ").removesuffix(": ...")


def with_input(*properties: Property, extra: TypeNode | None = None, optional: bool = False) -> str:
    """The stub of a module with one function of this input, without its imports."""
    declaration = Declaration("FInput", ObjectType(properties, extra))
    text = emit_pyi(module(function("f", "FInput", optional=optional), declarations=(declaration,)))
    return "".join(line for line in text.splitlines(keepends=True) if not line.startswith("from"))


def test_a_package_has_typed_dictionaries_and_functions_with_keywords() -> None:
    assert emit_pyi(forecast()) == (
        "from typing import NotRequired, TypedDict, Unpack\n"
        "class GetForecastInput(TypedDict):\n"
        " location: str # City or postcode\n"
        " days: NotRequired[int] # (default: 5; minimum: 1)\n"
        "class GetForecastOutput(TypedDict):\n"
        " celsius: list[float]\n"
        " text: str\n"
        "def get_forecast(**input: Unpack[GetForecastInput]) -> GetForecastOutput:\n"
        ' """Get the weather forecast for a location"""\n'
    )


def test_the_twin_has_the_same_functions_returning_coroutines() -> None:
    assert emit_aio_pyi(forecast()) == (
        "from collections.abc import Callable, Coroutine\n"
        "from typing import Any, ParamSpec, TypeVar\n"
        "from host import mcp_weather as _s\n"
        '_P = ParamSpec("_P")\n'
        '_R = TypeVar("_R")\n'
        "def _a(function: Callable[_P, _R]) -> Callable[_P, Coroutine[Any, Any, _R]]: ...\n"
        "get_forecast = _a(_s.get_forecast)\n"
    )


@pytest.mark.parametrize(
    ("node", "text"),
    [
        (ANYTHING, "Any"),
        (NeverType(), "Never"),
        (STRING, "str"),
        (NUMBER, "float"),
        (INTEGER, "int"),
        (BOOLEAN, "bool"),
        (NULL, "None"),
        (LiteralType(("a", 1, True, None)), 'Literal["a", 1, True, None]'),
        (LiteralType((None,)), "None"),
        (LiteralType((1.5, "a", 2.5)), 'Literal["a"] | float'),
        (LiteralType((1.5, None)), "None | float"),
        (LiteralType((10**400, 1)), "Literal[1] | int"),
        (LiteralType(('q"\u202e',)), r'Literal["q\"\u202e"]'),
        (ArrayType(STRING), "list[str]"),
        (ArrayType(UnionType((STRING, NULL))), "list[str | None]"),
        (MapType(STRING), "dict[str, str]"),
        (UnionType((INTEGER, STRING, INTEGER)), "int | str"),
        (TupleType((STRING, NUMBER), 1, STRING), "list[str | float]"),
        (TupleType((), 0, None), "list[Never]"),
    ],
    ids=str,
)
def test_each_kind_of_type(node: TypeNode, text: str) -> None:
    assert written(node) == text


def test_an_input_takes_any_mapping_and_a_result_is_a_dictionary() -> None:
    assert " a: Mapping[str, int]\n" in with_input(known("a", MapType(INTEGER)))
    assert written(MapType(INTEGER)) == "dict[str, int]"


@pytest.mark.parametrize(
    ("node", "text"),
    [
        (ArrayType(NUMBER), "Sequence[float]"),
        (ArrayType(UnionType((INTEGER, NULL))), "Sequence[int | None]"),
        (ArrayType(ArrayType(INTEGER)), "Sequence[Sequence[int]]"),
        (ArrayType(LiteralType(("a", "b"))), 'Sequence[Literal["a", "b"]]'),
        (MapType(ArrayType(INTEGER)), "Mapping[str, Sequence[int]]"),
        (TupleType((INTEGER, NUMBER), 2, None), "Sequence[int | float]"),
    ],
    ids=str,
)
def test_an_argument_takes_any_sequence(node: TypeNode, text: str) -> None:
    assert f" a: {text}\n" in with_input(known("a", node))
    assert f"def f(*, a: {text}, **more: Any)" in with_input(known("a", node), extra=ANYTHING)


@pytest.mark.parametrize(
    ("node", "text"),
    [
        (ArrayType(STRING), "list[str]"),
        (ArrayType(UnionType((STRING, NULL))), "list[str | None]"),
        (ArrayType(ArrayType(STRING)), "Sequence[list[str]]"),
        (ArrayType(ANYTHING), "list[Any]"),
        (TupleType((INTEGER, STRING), 2, None), "list[int | str]"),
        (TupleType((), 0, None), "list[Never]"),
    ],
    ids=str,
)
def test_a_lone_string_is_no_list_of_strings(node: TypeNode, text: str) -> None:
    assert f" a: {text}\n" in with_input(known("a", node))


def test_a_lone_string_is_no_list_of_what_is_called_otherwise_either() -> None:
    declarations = (
        Declaration(
            "FInput", closed(known("a", ArrayType(NamedType("Key"))), known("b", ArrayType(NamedType("Tree"))))
        ),
        Declaration("Key", UnionType((INTEGER, NamedType("Text")))),
        Declaration("Text", UnionType((STRING, NamedType("Key")))),
        Declaration("Tree", UnionType((INTEGER, ArrayType(NamedType("Tree"))))),
    )
    text = emit_pyi(module(function("f", "FInput"), declarations=declarations))
    assert " a: list[Key]\n b: Sequence[Tree]\n" in text
    assert "Tree: TypeAlias = int | Sequence[Tree]\n" in text


def test_fields_of_objects_that_are_given_are_lists_as_in_results() -> None:
    declarations = (
        Declaration("FInput", closed(known("a", ArrayType(NamedType("Part"))))),
        Declaration("Part", closed(known("x", ArrayType(NUMBER)))),
    )
    text = emit_pyi(module(function("f", "FInput"), declarations=declarations))
    assert " a: Sequence[Part]\nclass Part(TypedDict):\n x: list[float]\n" in text


@pytest.mark.parametrize(
    ("required", "optional", "total"), [(0, 1, True), (0, 2, False), (2, 2, True), (1, 2, False), (3, 0, True)]
)
def test_the_shorter_of_required_and_not_required_is_marked(required: int, optional: int, total: bool) -> None:
    properties = [known(f"r{number}", STRING) for number in range(required)]
    properties += [known(f"o{number}", STRING, optional=True) for number in range(optional)]
    text = with_input(*properties)
    assert ("class FInput(TypedDict):" if total else "class FInput(TypedDict, total=False):") in text
    assert text.count(" NotRequired[") == (optional if total else 0)
    assert text.count(" Required[") == (0 if total else required)


@pytest.mark.parametrize("name", ["a-b", "class", "1st", "é", "__x", "a b", "", 'q"'])
def test_a_property_that_is_no_keyword_makes_the_input_one_mapping(name: str) -> None:
    text = with_input(known(name, STRING), known("b", INTEGER, optional=True))
    assert "def f(input: FInput, /) -> Any: ..." in text


def test_names_that_a_class_can_not_declare_are_written_as_keys() -> None:
    text = with_input(known("a-b", STRING, "What"), known("\u202e", INTEGER, optional=True))
    assert text.startswith('FInput = TypedDict("FInput", {\n "a-b": str, # What\n "\\u202e": NotRequired[int],\n})\n')


@pytest.mark.parametrize("name", ["str", "int", "list", "Any", "NotRequired", "Literal", "FInput"])
def test_a_property_hides_no_type_that_its_neighbours_need(name: str) -> None:
    text = with_input(known(name, STRING), known("b", ArrayType(STRING)))
    assert text.startswith('FInput = TypedDict("FInput", {')
    assert "def f(**input: Unpack[FInput]) -> Any: ..." in text


def test_an_empty_input_takes_nothing() -> None:
    assert "def f() -> Any: ..." in emit_pyi(module(function("f")))


def test_an_open_input_takes_any_keyword_or_one_mapping() -> None:
    assert with_input(known("a", STRING, "An a"), known("more", BOOLEAN, optional=True), extra=NUMBER) == (
        "FInput: TypeAlias = Mapping[str, str | bool | float]\n"
        '# "a": str # An a\n'
        '# "more"?: bool\n'
        "@overload\n"
        "def f(*, a: str, more: bool = ..., **more_: float) -> Any: ...\n"
        "@overload\n"
        "def f(input: FInput, /) -> Any: ...\n"
    )


def test_an_input_without_known_properties_takes_any_keyword_and_one_mapping() -> None:
    text = emit_pyi(module(function("f", MapType(INTEGER), optional=True)))
    assert "def f(input: Mapping[str, int] = ..., /, **more: int) -> Any: ..." in text


def test_an_input_that_is_one_of_several_objects_is_one_mapping() -> None:
    declarations = (
        Declaration("FInput", UnionType((NamedType("A"), NamedType("B")))),
        Declaration("A", closed(known("a", STRING))),
        Declaration("B", closed(known("b", STRING, optional=True))),
    )
    text = emit_pyi(module(function("f", "FInput", optional=True), declarations=declarations))
    assert "FInput: TypeAlias = A | B\n" in text
    assert "def f(input: FInput = ..., /) -> Any: ..." in text


def test_the_style_of_an_input_is_known_without_writing_it() -> None:
    model = everything()
    styles = {each.tool.name: input_style(model.by_name, each) for each in model.functions}
    mapping_only = {"odd", "union", "optional"}
    assert {name for name, style in styles.items() if style == "mapping"} == mapping_only


@pytest.mark.parametrize("name", ["list", "str", "Any", "TypedDict", "Unpack", "NotRequired", "Mapping"])
def test_a_tool_hides_no_type_that_others_need(name: str) -> None:
    declaration = Declaration(
        "FInput", closed(known("a", MapType(ArrayType(STRING)), optional=True), known("b", STRING))
    )
    text = emit_pyi(module(function("f", "FInput", ANYTHING), function(name), declarations=(declaration,)))
    names = {node.id for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name)}
    assert name not in names
    assert f"_{name}" in names


def test_a_property_hides_no_type_that_is_imported_as_another() -> None:
    declaration = Declaration("FInput", closed(known("_str", INTEGER), known("b", STRING)))
    text = emit_pyi(module(function("f", "FInput"), function("str"), declarations=(declaration,)))
    assert 'FInput = TypedDict("FInput", {\n "_str": int,\n "b": _str,\n})' in text


def test_types_of_one_place_have_short_names() -> None:
    declarations = (
        Declaration("FOutput", closed(known("data", NamedType("FOutputWithALongWayToIt1")))),
        Declaration(
            "FOutputWithALongWayToIt1", closed(known("data", NamedType("FOutputWithALongWayToIt2"))), inline=True
        ),
        Declaration("FOutputWithALongWayToIt2", closed(known("é", NamedType("FOutputWithALongWayToIt3"))), inline=True),
        Declaration("FOutputWithALongWayToIt3", closed(known("x", INTEGER), known("y", INTEGER)), inline=True),
    )
    text = emit_pyi(module(function("f", returned=NamedType("FOutput")), function("Data2"), declarations=declarations))
    assert "class FOutput(TypedDict):\n data: Data\nclass Data(TypedDict):\n data: Data3\n" in text
    assert 'Data3 = TypedDict("Data3", {\n "é": Data32,\n})\nclass Data32(TypedDict):\n x: int\n y: int\n' in text


def test_an_input_that_stands_for_a_type_with_a_short_name_is_called_by_it() -> None:
    declarations = (
        Declaration("SearchRepositoriesInput", NamedType("SearchRepositoriesInput1")),
        Declaration("SearchRepositoriesInput1", closed(known("id", STRING)), inline=True),
    )
    text = emit_pyi(module(function("f", "SearchRepositoriesInput"), declarations=declarations))
    assert "class SearchRepositoriesInput2(TypedDict):\n id: str\n" in text
    assert "def f(**input: Unpack[SearchRepositoriesInput2]) -> Any: ..." in text


def test_two_equal_alternatives_of_a_tool_with_a_long_name_are_one_that_exists() -> None:
    alternative = {"type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"]}
    tool = ToolDefinition("search_repositories", {"anyOf": [alternative, dict(alternative)]})
    for name, text in generate(build_catalog([ServerListing("x", (tool,))]), language="python").files.items():
        assert not undeclared_names(text), name


@pytest.mark.parametrize("errors", ["raise", "return"])
def test_every_name_is_declared_however_long_the_types_names_are(errors: str) -> None:
    model = with_long_names(everything())
    assert short_names(arrange(model), ())
    assert not undeclared_names(emit_pyi(model, errors="raise" if errors == "raise" else "return"))
    assert not undeclared_names(emit_aio_pyi(model))


def with_long_names(model: ModuleModel) -> ModuleModel:
    """The same types with longer names, each of them one that could do without: the stub finds shorter ones."""

    def renamed(node: object) -> Any:
        if isinstance(node, NamedType):
            return NamedType(f"{node.name}WithALongWayToIt")
        if isinstance(node, tuple):
            return tuple(renamed(part) for part in cast("tuple[object, ...]", node))
        if isinstance(node, Docs | LiteralType) or not is_dataclass(node) or isinstance(node, type):
            return node
        return replace(node, **{each.name: renamed(getattr(node, each.name)) for each in fields(node)})

    declarations: list[Declaration] = []
    for each in model.declarations:
        inner = f"{each.name}Inner"
        declarations.append(
            replace(renamed(each), name=f"{inner}WithALongWayToIt", inline=isinstance(each.type, ObjectType))
        )
        declarations.append(Declaration(f"{each.name}WithALongWayToIt", NamedType(f"{inner}WithALongWayToIt")))
    functions = tuple(replace(each, input=renamed(each.input), output=renamed(each.output)) for each in model.functions)
    return replace(model, declarations=tuple(declarations), functions=functions)


def test_imports_are_only_those_that_are_used() -> None:
    model = module(
        function("f", "FInput"),
        declarations=(
            Declaration(
                "FInput",
                ObjectType((known("a", LiteralType(("x",))), known("b", NeverType()), known("c", ANYTHING)), ANYTHING),
            ),
        ),
    )
    imports = [line for line in emit_pyi(model).splitlines() if line.startswith("from")]
    assert imports == [
        "from collections.abc import Mapping",
        "from typing import Any, Literal, Never, TypeAlias, overload",  # all of them for the keywords
    ]
    assert emit_pyi(module(function("f", returned=STRING))) == "def f() -> str: ...\n"


def test_a_description_stands_in_the_docstring_with_the_original_name() -> None:
    text = emit_pyi(
        module(function("do-it", docs=Docs('Say "x"\n\n# mypy: ignore-errors\\', ("note",), deprecated=True)))
    )
    assert text.endswith(
        'def do_it() -> Any:\n """Deprecated. Say "x"\n # mypy: ignore-errors\\\\ (tool "do-it"; note)"""\n'
    )


def test_a_modules_description_is_its_docstring() -> None:
    assert emit_pyi(module(function("f"), docs='The "weather"')).startswith(
        '"""The "weather\\""""\nfrom typing import Any\n'
    )


def test_errors_can_be_part_of_the_result() -> None:
    text = emit_pyi(forecast(), errors="return")
    assert "class Failure(TypedDict):\n error: str\n" in text
    assert "-> GetForecastOutput | Failure:" in text


def test_a_package_may_have_no_tools() -> None:
    assert (emit_pyi(module()), emit_pyi(module(), errors="return"), emit_aio_pyi(module())) == ("", "", "")


@pytest.mark.parametrize("errors", ["raise", "return"])
def test_stubs_are_valid_for_the_oldest_python_that_runs_us(errors: str) -> None:
    ast.parse(emit_pyi(everything(), errors="raise" if errors == "raise" else "return"), feature_version=(3, 11))
    ast.parse(emit_aio_pyi(everything()), feature_version=(3, 11))


# ---- what the checkers say

PROGRAM = """\
import asyncio
from host import mcp_weather
from host.mcp_weather import get_forecast
from host.mcp_weather.aio import get_forecast as later
celsius: list[float] = get_forecast(location="Oslo", days=3)["celsius"]
text: str = mcp_weather.get_forecast(location="Oslo")["text"]
async def both() -> tuple[str, str]:
    first, second = await asyncio.gather(later(location="a"), later(location="b", days=1))
    return first["text"], second["text"]
get_forecast(locatio="Oslo")
get_forecast()
get_forecast(location="Oslo", days="3")
asyncio.run(later(location=3))
get_forecast(location="Oslo")["fahrenheit"]
"""
FIRST_BAD_LINE = 10

CHAIN = """\
from host.mcp_weather import give, take
found = give()
take(numbers=found["integers"], nullable=found["integers"], objects=found["objects"])
take(numbers=[1, 2.5], nullable=[None, 1], objects=[{"name": "a", "sizes": [1]}], words=["a"])
take(words=found["words"])
found["integers"].append(found["integers"][0])
take(objects=found["objects"][:1], numbers=found["integers"] + [1])
take(words="a")
take(numbers="a")
take(nullable=["a"])
take(objects=[{"name": 1}])
"""
"""What one tool returns is what another takes."""
FIRST_BAD_LINK = 8


def chained() -> ModuleModel:
    sizes = known("sizes", ArrayType(INTEGER))
    return module(
        function("give", returned=NamedType("GiveOutput")),
        function("take", "TakeInput"),
        declarations=(
            Declaration(
                "GiveOutput",
                closed(
                    known("integers", ArrayType(INTEGER)),
                    known("objects", ArrayType(NamedType("Given"))),
                    known("words", ArrayType(STRING)),
                ),
            ),
            Declaration("Given", closed(known("id", INTEGER), known("name", STRING), sizes)),
            Declaration(
                "TakeInput",
                closed(
                    known("numbers", ArrayType(NUMBER), optional=True),
                    known("nullable", ArrayType(UnionType((INTEGER, NULL))), optional=True),
                    known("objects", ArrayType(NamedType("Taken")), optional=True),
                    known("words", ArrayType(STRING), optional=True),
                ),
            ),
            Declaration("Taken", closed(known("name", STRING), sizes)),
        ),
    )


def files_of(model: ModuleModel, **options: str) -> dict[str, str]:
    errors = "return" if options.get("errors") == "return" else "raise"
    return {
        "host/__init__.pyi": "",
        "host/bridge.pyi": bridge_pyi(),
        "host/mcp_weather/__init__.pyi": emit_pyi(model, errors=errors),
        "host/mcp_weather/aio.pyi": emit_aio_pyi(model),
    }


Problems = Mapping[tuple[str, str], tuple[checkers.Problem, ...]]


@pytest.fixture(scope="module")
def problems(tmp_path_factory: pytest.TempPathFactory) -> Problems:
    """What each checker objects to in each set of files."""
    found: dict[tuple[str, str], tuple[checkers.Problem, ...]] = {}
    for name, files in {
        "program": {"program.py": PROGRAM, **files_of(forecast())},
        "chain": {"program.py": CHAIN, **files_of(chained())},
        "everything": files_of(everything()),
        "everything with errors": files_of(everything(typed_dict=True), errors="return"),
    }.items():
        directory = tmp_path_factory.mktemp("python")
        checkers.write_files(directory, files)
        found[name, "pyright"] = checkers.run_pyright(directory)
        found[name, "mypy"] = checkers.run_mypy(directory)
    return found


@pytest.mark.parametrize("checker", ["pyright", "mypy"])
@pytest.mark.parametrize("name", ["everything", "everything with errors"])
def test_every_kind_of_type_and_name_passes_both_checkers(problems: Problems, name: str, checker: str) -> None:
    assert not problems[name, checker]


@pytest.mark.parametrize("checker", ["pyright", "mypy"])
def test_the_checkers_accept_right_calls_and_refuse_each_wrong_one(problems: Problems, checker: str) -> None:
    found = sorted({problem.line for problem in problems["program", checker]})
    assert found == list(range(FIRST_BAD_LINE, PROGRAM.count("\n") + 1))


@pytest.mark.parametrize("checker", ["pyright", "mypy"])
def test_what_one_tool_returns_can_be_given_to_another(problems: Problems, checker: str) -> None:
    found = sorted({problem.line for problem in problems["chain", checker]})
    assert found == list(range(FIRST_BAD_LINK, CHAIN.count("\n") + 1))
