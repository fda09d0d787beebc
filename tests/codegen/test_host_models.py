"""Models for host programs, by datamodel-code-generator, from hostile types too."""

from __future__ import annotations

import ast
import subprocess
import sys
import types
from typing import Any, get_args

import jsonschema
import pytest

from codegen import corpus
from codegen.hand_models import (
    ANYTHING,
    STRING,
    closed,
    everything,
    forecast,
    function,
    known,
    module,
)
from codegen.notation import build
from toolbridge_codegen.catalog import ToolDefinition, build_catalog
from toolbridge_codegen.derive.tools import build_module
from toolbridge_codegen.emit.pyi import emit_pyi
from toolbridge_codegen.host_models import ModelKind, ModelsError, host_models, model_to_schema
from toolbridge_codegen.model import Declaration, Docs, LiteralType, ModuleModel, NamedType, ObjectType, Property

pytest.importorskip("datamodel_code_generator")

KINDS: tuple[ModelKind, ...] = get_args(ModelKind)
HOSTILE_TEXT = 'Bad """ \' \\ */\n"""\nimport os; os.abort()\n{{ 1 }} {% x %} %s \\N{BULLET} \\'
HOSTILE_NAMES = (
    "\"]);x( ''' \\ \\N{BULLET} __proto__ __class__ __annotations__ __slots__ __init__ model_config model_fields copy "
    "json schema self class None 1 é a-b a_b dict str int list Any BaseModel Field {x} %s {{1}} # $ref a.b a/b a~b "
    "_private field mro validate async print"
)
WHOLE_NAMES = ["", "a b", 'a"b', "a\nb", '"""', "\u202e", "\ud800", "x" * 500, "{% raw %}"]


def hostile() -> ModuleModel:
    names = [*HOSTILE_NAMES.split(), *WHOLE_NAMES]
    properties = tuple(
        Property(name, STRING, place % 2 == 0, Docs(HOSTILE_TEXT, (HOSTILE_TEXT,), deprecated=place % 3 == 0))
        for place, name in enumerate(names)
    )
    return module(
        function("f", "FInput", NamedType("FOutput")),
        declarations=(
            Declaration("FInput", ObjectType(properties, None), Docs(HOSTILE_TEXT)),
            Declaration("FOutput", closed(known("value", LiteralType((*names, 1.5, 10**400, float("nan")))))),
        ),
    )


def loaded(text: str) -> types.ModuleType:
    """The module with this source."""
    made = types.ModuleType("models_under_test")
    sys.modules[made.__name__] = made
    exec(compile(text, made.__name__, "exec"), made.__dict__)
    return made


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_has_a_class_for_every_named_type(kind: ModelKind) -> None:
    text = host_models(forecast(), kind)
    classes = [node.name for node in ast.parse(text).body if isinstance(node, ast.ClassDef)]
    assert classes == ["GetForecastInput", "GetForecastOutput"]
    assert "City or postcode" in text
    assert text.startswith("# Types of the server weather, made by toolbridge from its listing.\n")
    assert text == host_models(forecast(), kind)


@pytest.mark.parametrize("kind", KINDS)
def test_a_result_without_a_schema_has_no_model(kind: ModelKind) -> None:
    model, _ = build(ToolDefinition("fine", {"type": "object", "properties": {"a": {"type": "string"}}}))
    text = host_models(model, kind)
    assert "FineInput" in text
    assert "FineOutput" not in text


def test_pydantic_models_validate() -> None:
    made = loaded(host_models(forecast(), "pydantic"))
    value = made.GetForecastOutput.model_validate({"celsius": [1, 2.5], "text": "fine", "added": "later"})
    assert (value.celsius, value.text) == ([1.0, 2.5], "fine")
    assert made.GetForecastInput(location="Oslo").days is None


def test_unset_fields_of_a_pydantic_model_are_not_sent() -> None:
    """As the document says. By itself, `model_dump` has null for it, which the tool's own schema refuses."""
    made = loaded(host_models(forecast(), "pydantic"))
    value = made.GetForecastInput(location="Oslo")
    assert value.model_dump(exclude_unset=True, by_alias=True) == {"location": "Oslo"}
    assert value.model_dump() == {"location": "Oslo", "days": None}


def test_dataclasses_take_keywords() -> None:
    made = loaded(host_models(forecast(), "dataclass"))
    assert made.GetForecastInput(days=3, location="Oslo").location == "Oslo"


@pytest.mark.parametrize("kind", KINDS)
def test_hostile_text_and_names_stay_in_strings(kind: ModelKind) -> None:
    text = host_models(hostile(), kind)
    tree = ast.parse(text)
    allowed = (ast.ImportFrom, ast.ClassDef, ast.AnnAssign, ast.Assign, ast.Expr)
    assert all(isinstance(node, allowed) for node in tree.body)
    imported = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert imported <= {"__future__", "typing", "typing_extensions", "builtins", "dataclasses", "pydantic", "msgspec"}
    called = {ast.unparse(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    assert called <= {"Field_aliased", "Field", "dataclass", "TypedDict", "Meta", "field"}
    assert all(character == "\n" or character.isprintable() for character in text)
    if kind != "msgspec":
        assert loaded(text).FInput


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_type_can_be_a_model(kind: ModelKind) -> None:
    text = host_models(everything(), kind)
    if kind != "msgspec":
        assert loaded(text).AllOutput


def test_a_server_without_types_has_an_empty_module() -> None:
    assert host_models(module(), "pydantic").count("\n") == 1


def test_the_schema_matches_the_model() -> None:
    schema = model_to_schema(everything())
    jsonschema.Draft202012Validator.check_schema(schema)
    assert schema["$defs"]["Tree"] == {
        "type": "object",
        "properties": {
            "kids": {"type": "array", "items": {"$ref": "#/$defs/Tree"}},
            "list": {"type": "string"},
        },
        "required": ["kids"],
    }
    root = {**schema, "$ref": "#/$defs/AllInput"}
    jsonschema.validate({"tuple": ["a", True, 3], "json": [None, {"a": ["b"]}], "open": {"a": "", "z": 3}}, root)
    wrongs: list[Any] = [{"tuple": []}, {"pair": ["a"]}, {"text": 3}, {"never": 1}, {"literals": "b"}, {"tree": {}}]
    for wrong in wrongs:
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(wrong, root)


def test_the_generator_is_not_needed_until_models_are_made() -> None:
    program = (
        "import sys; sys.modules['datamodel_code_generator'] = None\n"
        "from codegen.hand_models import forecast\n"
        "from toolbridge_codegen.host_models import ModelsError, host_models\n"
        "try: host_models(forecast(), 'pydantic')\n"
        "except ModelsError as error: print(error)\n"
    )
    environment = {"PYTHONPATH": ":".join(path for path in sys.path if path)}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment, check=True)
    assert done.stdout == "Models need datamodel-code-generator: pip install 'toolbridge[models]'.\n"


def test_a_failing_generator_is_a_typed_error(monkeypatch: pytest.MonkeyPatch) -> None:
    import datamodel_code_generator

    def broken(*_: Any, **__: Any) -> str:
        return "class 1:"

    monkeypatch.setattr(datamodel_code_generator, "generate", broken)
    with pytest.raises(ModelsError, match=r"Models of the server weather can't be made: SyntaxError\."):
        host_models(forecast(), "typeddict")


# ---- their TypedDicts and ours

Fields = dict[str, tuple[bool, str]]


def fields_of(text: str) -> dict[str, Fields | str]:
    """Of each named type in a Python source: its fields with whether they are required, or what it stands for."""
    found: dict[str, Fields | str] = {}
    for node in ast.parse(text).body:
        match node:
            case ast.ClassDef(name=name, keywords=keywords, body=body):
                pairs = [
                    (part.target.id, part.annotation)
                    for part in body
                    if isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name)
                ]
                found[name] = _fields(pairs, keywords)
            case ast.Assign(
                targets=[ast.Name(id=name)], value=ast.Call(args=[_, ast.Dict(keys=keys, values=values)]) as call
            ):
                pairs = [(ast.literal_eval(key), value) for key, value in zip(keys, values, strict=True) if key]
                found[name] = _fields(pairs, call.keywords)
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                found[name] = _plain(value)
            case _:
                pass
    return found


def _fields(pairs: list[tuple[str, ast.expr]], keywords: list[ast.keyword]) -> Fields:
    total = not any(keyword.arg == "total" for keyword in keywords)
    fields: Fields = {}
    for name, annotation in pairs:
        match annotation:
            case ast.Subscript(value=ast.Name(id="NotRequired" | "Required" as mark), slice=inner):
                fields[name] = (mark == "Required", _plain(inner))
            case _:
                fields[name] = (total, _plain(annotation))
    return fields


def _plain(node: ast.expr) -> str:
    """An annotation with its alternatives in order, each once, a mapping being a dictionary, a sequence a list."""
    match node:
        case ast.BinOp(left=left, right=right):
            return " | ".join(sorted({*_plain(left).split(" | "), *_plain(right).split(" | ")}))
        case ast.Subscript(value=ast.Name(id="Literal"), slice=inner):
            values = inner.elts if isinstance(inner, ast.Tuple) else [inner]
            return " | ".join(sorted(ast.unparse(value) for value in values))
        case ast.Subscript(value=ast.Name(id=name), slice=ast.Tuple(elts=[_, value])):
            return f"{name.replace('Mapping', 'dict')}[str, ({_plain(value)})]"
        case ast.Subscript(value=ast.Name(id=name), slice=inner):
            return f"{name.replace('Sequence', 'list')}[({_plain(inner)})]"
        case ast.Constant(value=str(text)):
            return text
        case _:
            return ast.unparse(node)


def compared(model: ModuleModel) -> int:
    """Compares our stub's types with theirs, name by name where both have the name; gives how many those were."""
    ours, theirs = fields_of(emit_pyi(model)), fields_of(host_models(model, "typeddict"))
    open_or_empty = {
        each.name
        for each in model.declarations
        if isinstance(each.type, ObjectType) and (each.type.extra or not each.type.properties)
    }
    # A type that is used in one place has a shorter name with us.
    renamed = {each.name for each in model.declarations if each.inline}
    count = 0
    for name in (ours.keys() & theirs.keys()) - open_or_empty:
        left, right = ours[name], theirs[name]
        if isinstance(left, str) or isinstance(right, str):
            assert isinstance(left, str) == isinstance(right, str), name
            continue
        assert {key: required for key, (required, _) in left.items()} == {
            key: required for key, (required, _) in right.items()
        }, name
        for key, (_, text) in left.items():
            if not any(each in right[key][1] for each in renamed):
                assert text == right[key][1], (name, key)
                count += 1
    return count


def test_their_typed_dictionaries_and_ours_agree() -> None:
    assert compared(forecast()) == 4


@pytest.mark.slow
def test_their_typed_dictionaries_and_ours_agree_on_real_servers() -> None:
    count = 0
    for real in corpus.real_listings():
        model, _ = build_module(build_catalog([real.listing]).modules[0])
        count += compared(model)
    assert count > 700


def test_an_unknown_type_is_any_for_both() -> None:
    model = module(function("f", "FInput"), declarations=(Declaration("FInput", closed(known("a", ANYTHING))),))
    assert compared(model) == 1
