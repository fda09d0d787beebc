"""Hand-written type models, for tests of the emitters."""

from __future__ import annotations

from toolbridge_codegen.catalog import ServerListing, ToolDefinition, build_catalog
from toolbridge_codegen.model import (
    ArrayType,
    Declaration,
    Docs,
    FunctionModel,
    LiteralType,
    MapType,
    ModuleModel,
    NamedType,
    NeverType,
    ObjectType,
    Property,
    ScalarType,
    TupleType,
    TypeNode,
    UnionType,
    UnknownType,
)

STRING = ScalarType("string")
NUMBER = ScalarType("number")
INTEGER = ScalarType("integer")
BOOLEAN = ScalarType("boolean")
NULL = ScalarType("null")
ANYTHING = UnknownType()
NO_INPUT = Declaration("NoInput", ObjectType((), None))


def known(name: str, node: TypeNode, text: str = "", *notes: str, optional: bool = False) -> Property:
    """A property."""
    return Property(name, node, not optional, Docs(text, notes))


def closed(*properties: Property) -> ObjectType:
    """An object with no other properties than these."""
    return ObjectType(properties, None)


def function(
    name: str,
    given: NamedType | MapType | str = "NoInput",
    returned: TypeNode = ANYTHING,
    text: str = "",
    *,
    optional: bool = False,
    docs: Docs | None = None,
) -> FunctionModel:
    """A function for a tool of this name; its specification is filled in by `module`."""
    spec = build_catalog([ServerListing("x", (ToolDefinition(name, {}),))]).modules[0].tools[0]
    node = NamedType(given) if isinstance(given, str) else given
    return FunctionModel(spec, node, not optional and given != "NoInput", returned, docs or Docs(text))


def module(
    *functions: FunctionModel, declarations: tuple[Declaration, ...] = (), docs: str = "", server: str = "weather"
) -> ModuleModel:
    """A module with these functions and types; `NoInput` is always among the types."""
    tools = tuple(ToolDefinition(function.tool.name, {}) for function in functions)
    spec = build_catalog([ServerListing(server, tools)]).modules[0]
    by_name = {tool.name: tool for tool in spec.tools}
    placed = tuple(
        FunctionModel(by_name[each.tool.name], each.input, each.input_required, each.output, each.docs)
        for each in functions
    )
    return ModuleModel(spec, Docs(docs), (NO_INPUT, *declarations), placed)


def forecast() -> ModuleModel:
    """The one that the documents show."""
    return module(
        function(
            "get_forecast",
            "GetForecastInput",
            NamedType("GetForecastOutput"),
            "Get the weather forecast for a location",
        ),
        declarations=(
            Declaration(
                "GetForecastInput",
                closed(
                    known("location", STRING, "City or postcode"),
                    known("days", INTEGER, "", "default: 5", "minimum: 1", optional=True),
                ),
            ),
            Declaration("GetForecastOutput", closed(known("celsius", ArrayType(NUMBER)), known("text", STRING))),
        ),
    )


def everything(*, typed_dict: bool = False) -> ModuleModel:
    """Each kind of type, in inputs and in results, and every name that is in some language's way.

    The name of the class that typed dictionaries are made with is only there if asked for: it changes how others look.
    """
    kinds: list[tuple[str, TypeNode]] = [
        ("anything", ANYTHING),
        ("never", NeverType()),
        ("text", STRING),
        ("number", NUMBER),
        ("integer", INTEGER),
        ("flag", BOOLEAN),
        ("nothing", NULL),
        ("literals", LiteralType(("a", 1, 1.5, True, None, -2, "\u202e", 10**400, float("inf")))),
        ("one", LiteralType((None,))),
        ("list", ArrayType(UnionType((STRING, NULL)))),
        ("lists", ArrayType(ArrayType(LiteralType(("x", "y"))))),
        ("tuple", TupleType((STRING, UnionType((NUMBER, BOOLEAN))), 1, INTEGER)),
        ("pair", TupleType((STRING, NUMBER), 2, None)),
        ("empty_tuple", TupleType((), 0, None)),
        ("map", MapType(ArrayType(STRING))),
        ("open_map", MapType(ANYTHING)),
        ("union", UnionType((NamedType("Tree"), NamedType("Closed"), STRING))),
        ("tree", NamedType("Tree")),
        ("json", NamedType("Json")),
        ("alias", NamedType("Alias")),
        ("open", NamedType("Open")),
        ("open_numbers", NamedType("OpenNumbers")),
        ("nameless", NamedType("Nameless")),
        ("nothing_known", NamedType("NoInput")),
        ("inline", NamedType("Inline")),
    ]
    names = "str int list dict Any Literal NotRequired keys items values get self input type match class None a-b 1 é"
    odd = [*names.split(), "__proto__", "__class__", "constructor", "new", "", "a b", 'q"\\', "\n", "\ud800", "Tree"]
    declarations = (
        Declaration("AllInput", closed(*(known(name, node, f"About {name}", optional=True) for name, node in kinds))),
        Declaration("AllOutput", closed(*(known(name, node) for name, node in kinds if name != "never"))),
        Declaration("OddInput", closed(*(known(name, STRING, optional=True) for name in odd))),
        Declaration("OddOutput", closed(*(known(name, NamedType("Tree"), optional=True) for name in odd if name))),
        Declaration("Tree", closed(known("kids", ArrayType(NamedType("Tree"))), known("list", STRING, optional=True))),
        Declaration("Json", UnionType((STRING, NULL, ArrayType(NamedType("Json")), MapType(NamedType("Json"))))),
        Declaration("Alias", NamedType("Json")),
        Declaration("Closed", closed(known("tag", LiteralType(("closed",))))),
        Declaration(
            "Open", ObjectType((known("a", STRING, "type: ignore"), known("b", NULL, optional=True)), ANYTHING)
        ),
        Declaration("OpenNumbers", ObjectType((known("a", STRING), known("type", BOOLEAN, optional=True)), NUMBER)),
        Declaration("Nameless", closed(known("", INTEGER))),
        Declaration(
            "Inline", closed(known("deep", NamedType("InlineInInline"), "Deep")), Docs("In place"), inline=True
        ),
        Declaration("InlineInInline", closed(known("x", INTEGER, "X")), inline=True),
        Declaration("KeysInput", closed(known("items", ArrayType(STRING)), known("input", STRING, optional=True))),
        Declaration("UnionInput", UnionType((NamedType("Closed"), NamedType("Open")))),
        Declaration("AliasInput", NamedType("KeysInput")),
    )
    return module(
        function(
            "all", "AllInput", NamedType("AllOutput"), 'All kinds. """ */ \\ @deprecated\n\n# mypy: ignore-errors'
        ),
        function("odd", "OddInput", NamedType("OddOutput")),
        function("keys", "KeysInput", docs=Docs("Old", ("a note",), deprecated=True)),
        function("alias", "AliasInput"),
        function("union", "UnionInput"),
        function("open", "Open", NamedType("OpenNumbers")),
        function("open-numbers", "OpenNumbers", ArrayType(NamedType("OpenNumbers"))),
        function("map", MapType(INTEGER), MapType(INTEGER), optional=True),
        function("any map", MapType(ANYTHING), TupleType((STRING, NUMBER), 1, None), optional=True),
        function("optional", "NamedOptional", NULL, optional=True),
        function("list", returned=ArrayType(STRING)),
        function("str", returned=STRING),
        function("Any", returned=ANYTHING),
        function("Mapping", returned=NamedType("Tree")),
        *([function("TypedDict")] if typed_dict else []),
        function("overload"),
        function("_s"),
        function("_a"),
        function("_P"),
        function("Callable"),
        function("Failure"),
        function("_list"),
        function("twin"),
        function("Sync"),
        function("Parameters"),
        declarations=(*declarations, Declaration("NamedOptional", closed(known("a-b", STRING, optional=True)))),
        docs="Everything. */ @ts-nocheck",
    )
