"""Stubs: the files that guest code is written and checked against, for a whole catalog."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Literal, TypeAlias, get_args

from toolbridge_codegen.bounds import TOO_SLOW, Bounds
from toolbridge_codegen.cache import ModuleStubs, StubCache
from toolbridge_codegen.catalog import Catalog, ModuleSpec, plain_schema
from toolbridge_codegen.json_values import plain_json
from toolbridge_codegen.manifest import Export, InputStyle, Manifest
from toolbridge_codegen.model import Diagnostic, ModuleModel
from toolbridge_codegen.output_schemas import unused_output_schemas

Language: TypeAlias = Literal["typescript", "python"]
Detail: TypeAlias = Literal["full", "compact"]
Errors: TypeAlias = Literal["raise", "return"]

DEFAULT_BOUNDS = Bounds()


@dataclass(frozen=True, slots=True)
class StubSet:
    """Everything that was written for a catalog."""

    files: Mapping[str, str]
    """File name → text."""
    manifest: Manifest
    diagnostics: tuple[Diagnostic, ...]


def generate(
    catalog: Catalog,
    *,
    language: Language,
    detail: Detail = "full",
    errors: Errors = "raise",
    bounds: Bounds = DEFAULT_BOUNDS,
    cache: StubCache | None = None,
) -> StubSet:
    """Write the stubs of a catalog for one language.

    Whatever the schemas are, every tool gets its function; what its types can't say is among the diagnostics.

    Raises:
        ValueError: there is no such language, detail or way of errors.
    """
    for value, known in ((language, get_args(Language)), (detail, get_args(Detail)), (errors, get_args(Errors))):
        if value not in known:
            raise ValueError(f"{value!r} is none of {', '.join(known)}")
    options = _Options(language, detail, errors, bounds)
    files: dict[str, str] = {}
    manifest: dict[str, Mapping[str, Export]] = {}
    diagnostics: list[Diagnostic] = []
    for module in catalog.modules:
        stubs = _module_stubs(module, options, cache)
        files.update(stubs.files)
        diagnostics += stubs.diagnostics
        manifest[module.specifier] = MappingProxyType(
            {tool.identifier: Export(tool.server, tool.name, stubs.styles[tool.identifier]) for tool in module.tools}
        )
    if detail == "full":
        files.update(_shared_files(language, catalog))
    ordered = {name: files[name] for name in sorted(files)}
    return StubSet(MappingProxyType(ordered), MappingProxyType(manifest), tuple(diagnostics))


@dataclass(frozen=True, slots=True)
class _Options:
    """Everything besides a module itself that decides what is written for it."""

    language: Language
    detail: Detail
    errors: Errors
    bounds: Bounds


def _module_stubs(module: ModuleSpec, options: _Options, cache: StubCache | None) -> ModuleStubs:
    """The stubs of one server, from the cache if nothing has changed."""
    key = None if cache is None else _cache_key(module, options)
    if cache is None or key is None:
        return _write_module(module, options)
    known = cache.find(key)
    if known is not None and set(known.styles) == {tool.identifier for tool in module.tools}:
        return known
    stubs = _write_module(module, options)
    # What was left out because the machine was busy is not worth keeping.
    if not any(item.message.startswith(TOO_SLOW) for item in stubs.diagnostics):
        cache.store(key, stubs)
    return stubs


def _cache_key(module: ModuleSpec, options: _Options) -> str | None:
    """A hash of everything that the stubs of a module are made from, this program included.

    None for schemas that no server can have sent: they are nested too deeply to have been JSON.
    """
    tools: list[Any] = []
    for tool in module.tools:
        definition = tool.definition
        texts = [tool.identifier, tool.name, definition.title, definition.description]
        tools.append([*texts, *map(plain_schema, (definition.input_schema, tool.output_schema))])
    unused = [[item.tool, item.message] for item in unused_output_schemas(module)]
    facts = [module.server, module.specifier, module.python_module, module.instructions, module.reading, unused, tools]
    choice = [options.language, options.detail, options.errors, repr(options.bounds), generator_version()]
    text = plain_json([*choice, *facts])
    return None if text is None else hashlib.sha256(text.encode("ascii")).hexdigest()


@lru_cache(maxsize=1)
def generator_version() -> str:
    """A hash of the generator's own source: what another version of it has written is not used."""
    digest = hashlib.sha256()
    directory = os.path.dirname(__file__)
    try:
        for name in sorted(os.listdir(directory)):
            if name.endswith(".py"):
                with open(os.path.join(directory, name), "rb") as file:
                    digest.update(file.read())
    except OSError:  # imported from an archive: the cache is for this process only
        return os.urandom(16).hex()
    return digest.hexdigest()


def _write_module(module: ModuleSpec, options: _Options) -> ModuleStubs:
    from toolbridge_codegen.build import build_module
    from toolbridge_codegen.emit_pyi import input_style

    model, diagnostics = build_module(module, bounds=options.bounds)
    by_name = model.by_name
    styles: dict[str, InputStyle] = {
        function.tool.identifier: input_style(by_name, function) for function in model.functions
    }
    return ModuleStubs(_write_files(model, options), styles, diagnostics)


def _write_files(model: ModuleModel, options: _Options) -> dict[str, str]:
    stem = f"mcp-{model.spec.server}"
    if options.detail == "compact":
        from toolbridge_codegen.emit_compact import emit_compact

        return {f"{stem}.txt": emit_compact(model, options.language, errors=options.errors)}
    if options.language == "typescript":
        from toolbridge_codegen.emit_dts import emit_dts

        return {f"{stem}.d.ts": emit_dts(model, errors=options.errors)}
    from toolbridge_codegen.emit_pyi import emit_aio_pyi, emit_pyi

    package = model.spec.python_module.replace(".", "/")
    return {
        f"{package}/__init__.pyi": emit_pyi(model, errors=options.errors),
        f"{package}/aio.pyi": emit_aio_pyi(model),
    }


def _shared_files(language: Language, catalog: Catalog) -> dict[str, str]:
    """What every program has besides its servers' modules."""
    from toolbridge_codegen.bridge_stubs import bridge_dts, bridge_pyi

    if language == "typescript":
        return {"bridge.d.ts": bridge_dts(module.specifier for module in catalog.modules)}
    return {"host/__init__.pyi": "", "host/bridge.pyi": bridge_pyi()}
