"""Random schemas, each with its references replaced by what they refer to, for a generator of instances."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from toolbridge_codegen.json_values import is_list, is_object

Schema = dict[str, Any]

_NAMES = st.sampled_from(
    [
        "a",
        "b",
        "id",
        "a_b",
        "a-b",
        "class",
        "self",
        "input",
        "items",
        "keys",
        "1",
        "x y",
        "é",
        "__proto__",
        "$ref",
        "type",
    ]
)
_CONSTANTS = st.one_of(
    st.sampled_from(["a", "b", "*/", "\u202e", "é", ""]), st.integers(-3, 3), st.booleans(), st.none()
)
_DESCRIBED = st.fixed_dictionaries(
    {}, optional={"description": st.sampled_from(["Words.", "*/", '"""']), "title": st.just("T")}
)


@dataclass(frozen=True, slots=True)
class RandomSchema:
    """A schema, and the same without references."""

    schema: Schema
    inlined: Schema


@st.composite
def random_schemas(draw: st.DrawFn, *, plain: bool = False) -> RandomSchema:
    """A schema of a few levels. A plain one says only what the types of both languages can say exactly."""
    definitions: dict[str, Schema] = {}
    inlined: dict[str, Schema] = {}
    for number in range(draw(st.integers(0, 2))):  # later ones may use earlier ones: no cycles
        name = draw(st.sampled_from(["Thing", "thing", "A b", "Record", "Any"])) + str(number)
        definitions[name] = draw(_schemas(2, tuple(definitions), plain))
        inlined[name] = _inline(definitions[name], inlined)
    schema = draw(_schemas(3, tuple(definitions), plain))
    whole = {**schema, "definitions": definitions} if definitions else schema
    return RandomSchema({"$schema": "http://json-schema.org/draft-07/schema#", **whole}, _inline(schema, inlined))


def _schemas(levels: int, definitions: tuple[str, ...], plain: bool) -> st.SearchStrategy[Schema]:
    """Schemas of at most so many levels."""
    found = [_scalars(plain), _enums(plain)]
    if definitions:
        found.append(
            st.sampled_from(definitions).map(lambda name: {"$ref": f"#/definitions/{name.replace(' ', '%20')}"})
        )
    if levels:
        inner = _schemas(levels - 1, definitions, plain)
        found += [_arrays(inner, plain), _objects(inner, plain), _maps(inner), _nullable(inner, plain)]
        found.append(_objects(inner, plain))  # objects are what tools are made of
        if not plain:
            found += [
                _tuples(inner),
                _unions(inner),
                _conjunctions(inner),
                st.just(Schema()),
                st.just({"type": ["string", "array"]}),
            ]
    return st.one_of(found)


def _with_remarks(schemas: st.SearchStrategy[Schema]) -> st.SearchStrategy[Schema]:
    return st.tuples(schemas, _DESCRIBED).map(lambda pair: {**pair[0], **pair[1]})


def _scalars(plain: bool) -> st.SearchStrategy[Schema]:
    scalars: list[Schema] = [{"type": "string"}, {"type": "number"}, {"type": "boolean"}, {"type": "null"}]
    if not plain:
        scalars += [
            {"type": "integer", "minimum": -5},
            {"type": "string", "minLength": 1, "maxLength": 3},
            {"type": ["string", "null"]},
            {"type": ["integer", "string", "boolean"]},
            {"type": "number", "multipleOf": 2},
            {"minimum": 3},
            {"type": "string", "nullable": True},
            {"type": "string", "not": {"const": "a"}},
        ]
    return _with_remarks(st.sampled_from(scalars))


def _enums(plain: bool) -> st.SearchStrategy[Schema]:
    constants = st.sampled_from(["a", "b", "*/", "\u202e"]) if plain else _CONSTANTS
    listed = st.lists(constants, min_size=1, max_size=4, unique_by=repr).map(lambda values: {"enum": values})
    return listed if plain else st.one_of(listed, constants.map(lambda value: {"const": value}))


def _arrays(inner: st.SearchStrategy[Schema], plain: bool) -> st.SearchStrategy[Schema]:
    remarks = (
        st.just(Schema())
        if plain
        else st.sampled_from([Schema(), {"maxItems": 2}, {"minItems": 1}, {"uniqueItems": True}])
    )
    return st.tuples(inner, remarks).map(lambda pair: {"type": "array", "items": pair[0], **pair[1]})


def _tuples(inner: st.SearchStrategy[Schema]) -> st.SearchStrategy[Schema]:
    def build(items: list[Schema], rest: Schema | bool | None, required: int) -> Schema:
        schema: Schema = {"type": "array", "items": items, "minItems": min(required, len(items))}
        return schema if rest is None else {**schema, "additionalItems": rest}

    return st.builds(
        build, st.lists(inner, min_size=1, max_size=3), st.one_of(st.none(), st.just(False), inner), st.integers(0, 3)
    )


def _objects(inner: st.SearchStrategy[Schema], plain: bool) -> st.SearchStrategy[Schema]:
    def build(properties: dict[str, Schema], required: set[int], others: Any) -> Schema:
        names = [name for number, name in enumerate(properties) if number in required]
        schema: Schema = {"type": "object", "properties": properties}
        schema |= {"required": names} if names else {}
        return schema if others is None else {**schema, "additionalProperties": others}

    others = st.sampled_from([None, False]) if plain else st.one_of(st.sampled_from([None, None, False, True]), inner)
    properties = st.dictionaries(_NAMES, inner, min_size=1, max_size=4)
    return _with_remarks(st.builds(build, properties, st.sets(st.integers(0, 3)), others))


def _maps(inner: st.SearchStrategy[Schema]) -> st.SearchStrategy[Schema]:
    return inner.map(lambda values: {"type": "object", "additionalProperties": values})


def _nullable(inner: st.SearchStrategy[Schema], plain: bool) -> st.SearchStrategy[Schema]:
    words = ["anyOf"] if plain else ["anyOf", "oneOf"]
    return st.tuples(st.sampled_from(words), inner).map(lambda pair: {pair[0]: [pair[1], {"type": "null"}]})


def _unions(inner: st.SearchStrategy[Schema]) -> st.SearchStrategy[Schema]:
    members = st.lists(inner, min_size=1, max_size=3)
    return st.tuples(st.sampled_from(["anyOf", "oneOf"]), members).map(lambda pair: {pair[0]: pair[1]})


def _conjunctions(inner: st.SearchStrategy[Schema]) -> st.SearchStrategy[Schema]:
    parts = st.lists(st.one_of(_objects(inner, plain=False), inner), min_size=1, max_size=2)
    return parts.map(lambda schemas: {"allOf": schemas})


def _inline(schema: Any, definitions: dict[str, Schema]) -> Any:
    """The schema with each reference replaced."""
    if is_list(schema):
        return [_inline(item, definitions) for item in schema]
    if not is_object(schema):
        return schema
    reference: Any = schema.get("$ref")
    if isinstance(reference, str):
        return definitions[reference.removeprefix("#/definitions/").replace("%20", " ")]
    return {key: value if key in {"enum", "const"} else _inline(value, definitions) for key, value in schema.items()}
