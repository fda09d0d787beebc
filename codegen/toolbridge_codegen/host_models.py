"""Classes for a server's types in host code (Pydantic, dataclasses …), made by datamodel-code-generator.

Its input is a schema made from our type model, never the server's own: bounded, without references to other documents,
and sanitised. An optional dependency (`toolbridge[models]`), imported when used.
"""

from __future__ import annotations

import ast
import warnings
from typing import Any, Literal, TypeAlias

from toolbridge_codegen.derive.unions import UNKNOWN
from toolbridge_codegen.emit.layout import arrange, comment_text
from toolbridge_codegen.escaping import py_integer, visible_python
from toolbridge_codegen.model import (
    ArrayType,
    Docs,
    JsonScalar,
    LiteralType,
    MapType,
    ModuleModel,
    NamedType,
    NeverType,
    ObjectType,
    ScalarType,
    TupleType,
    TypeNode,
    UnionType,
)

ModelKind: TypeAlias = Literal["pydantic", "dataclass", "typeddict", "msgspec"]

_OUTPUT_TYPES = {
    "pydantic": "pydantic_v2.BaseModel",
    "dataclass": "dataclasses.dataclass",
    "typeddict": "typing.TypedDict",
    "msgspec": "msgspec.Struct",
}
# Quotes and backslashes could end a docstring or start an escape, depending on the generator's own escaping.
_HARMLESS = str.maketrans({'"': "'", "\\": "∖"})


class ModelsError(Exception):
    """Models can't be generated; the message says why, and what to do."""


def host_models(model: ModuleModel, kind: ModelKind) -> str:
    """Generates the source of a Python module with a class for every named type of a server.

    A module without types is a mere comment.

    Raises:
        ModelsError: the generator is not installed, or failed.
    """
    try:
        import datamodel_code_generator as generator
        from datamodel_code_generator.enums import DataModelType
        from datamodel_code_generator.format import Formatter
    except ImportError as error:
        raise ModelsError("Models need datamodel-code-generator: pip install 'toolbridge[models]'.") from error
    schema = model_to_schema(model)
    header = f"# Types of the server {model.spec.server}, made by toolbridge from its listing."
    if not schema["$defs"]:
        return f"{header}\n"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # advice to users of the generator
            text = generator.generate(
                schema,
                input_file_type=generator.InputFileType.JsonSchema,
                output_model_type=DataModelType(_OUTPUT_TYPES[kind]),
                target_python_version=generator.PythonVersion.PY_311,
                enum_field_as_literal=generator.LiteralType.All,
                skip_root_model=True,
                use_schema_description=True,
                use_field_description=True,
                keyword_only=kind in {"dataclass", "msgspec"},
                allow_remote_refs=False,
                formatters=[Formatter.BUILTIN],
                custom_file_header=header,
            )
        source = visible_python(str(text).rstrip()) + "\n"
        ast.parse(source)
    except Exception as error:
        # Any exception, whatever the schemas: this server has no models, and others are unaffected.
        raise ModelsError(f"Models of the server {model.spec.server} can't be made: {type(error).__name__}.") from error
    return source


def model_to_schema(model: ModuleModel) -> dict[str, Any]:
    """Returns a JSON Schema whose definitions are the module's named types.

    Unknown properties are neither described nor forbidden: validation must accept properties that a server adds.
    Results of unknown type are left out: their model would be a mere wrapper.
    """
    layout = arrange(model)
    results = [function.output for function in model.functions]
    anything = {
        node.name for node in results if isinstance(node, NamedType) and layout.by_name[node.name].type == UNKNOWN
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$defs": {
            declaration.name: {**_schema(declaration.type), **_description_keywords(declaration.docs)}
            for _, declarations in layout.functions
            for declaration in declarations
            if declaration.name not in anything
        },
    }


def _schema(node: TypeNode) -> dict[str, Any]:  # noqa: PLR0911  # one for each kind of type
    """Returns a type as a JSON Schema; named types are references into `$defs`."""
    match node:
        case ScalarType(kind):
            return {"type": kind}
        case LiteralType(values):
            return _constants(values)
        case NamedType(name):
            return {"$ref": f"#/$defs/{name}"}
        case ArrayType(items):
            return {"type": "array", "items": _schema(items)}
        case TupleType(items, required, rest):
            return {
                "type": "array",
                **({"prefixItems": [_schema(item) for item in items]} if items else {}),
                "minItems": required,
                "items": False if rest is None else _schema(rest),
            }
        case MapType(values):
            return {"type": "object", "additionalProperties": _schema(values)}
        case UnionType(members):
            return {"anyOf": [_schema(member) for member in members]}
        case ObjectType(properties, extra):
            return {
                "type": "object",
                "properties": {
                    known.name: {**_schema(known.type), **_description_keywords(known.docs)}
                    for known in properties
                    if _is_unicode(known.name)
                },
                "required": [known.name for known in properties if known.required and _is_unicode(known.name)],
                **({} if extra is None else {"additionalProperties": True}),
            }
        case NeverType():
            return {"not": {}}
        case _:
            return {}


def _constants(values: tuple[JsonScalar, ...]) -> dict[str, Any]:
    """Returns constants as an `enum`; of those that Python source can't hold exactly, only the type is kept."""
    exact = [value for value in values if _is_exact(value)]
    inexact = {"string" if isinstance(value, str) else "number" for value in values if not _is_exact(value)}
    choices = [*([{"enum": exact}] if exact else []), *({"type": kind} for kind in sorted(inexact))]
    return choices[0] if len(choices) == 1 else {"anyOf": choices}


def _is_exact(value: JsonScalar) -> bool:
    """Returns whether Python source can hold a constant exactly: no floats, huge integers or lone surrogates."""
    if isinstance(value, str):
        return _is_unicode(value)
    return isinstance(value, bool | None) or (isinstance(value, int) and py_integer(value) is not None)


def _is_unicode(text: str) -> bool:
    """Whether a text has no lone surrogates, which can't be written to a file."""
    return not any("\ud800" <= character <= "\udfff" for character in text)


def _description_keywords(docs: Docs) -> dict[str, Any]:
    """Returns `description` and `deprecated` for a schema, as far as there are any."""
    text = comment_text(docs)
    described: dict[str, Any] = {"description": text.translate(_HARMLESS)} if text else {}
    return {**described, "deprecated": True} if docs.deprecated else described
