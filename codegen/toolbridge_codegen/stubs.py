"""Generates stubs for a catalog: the files that guest code is written and type-checked against."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, TypeAlias, get_args

from toolbridge_codegen.cache import ModuleStubs, StubCache
from toolbridge_codegen.catalog import Catalog, Export, InputStyle, Manifest, ModuleSpec, plain_schema
from toolbridge_codegen.escaping import plain_json, ts_string
from toolbridge_codegen.model import Diagnostic, ModuleModel, unused_output_schemas
from toolbridge_codegen.read.kinds import TOO_SLOW, Bounds

# The stubs of `host:bridge`.

_DTS = """\
declare module "host:bridge" {
 /** Thrown by a call that failed. */
 export class ToolError extends Error {
  readonly server: string;
  readonly tool: string;
  readonly kind: "timeout" | "denied" | "disconnected" | "invalid_arguments" | "limit" | "failed";
 }
 export class ToolTimeoutError extends ToolError { readonly kind: "timeout" }
 export class ToolDeniedError extends ToolError { readonly kind: "denied" }
 export class ToolDisconnectedError extends ToolError { readonly kind: "disconnected" }
 export class ToolArgumentsError extends ToolError { readonly kind: "invalid_arguments" }
 export class ToolLimitError extends ToolError { readonly kind: "limit" }
 export class ToolFailedError extends ToolError { readonly kind: "failed" }
 /** A large or binary result, kept on the host. Can be given to a tool in place of its text or bytes. */
 export class Handle {
  private constructor();
  readonly mime: string;
  readonly size: number;
  readonly name?: string;
  text(): string;
  json(): any;
  bytes(): Uint8Array;
  /** The bytes from start up to end. */
  slice(start?: number, end?: number): Handle;
 }
 type Calls<F extends readonly ((input: any) => any)[]> =
  readonly [...{ [K in keyof F]: readonly [F[K], ...Parameters<F[K]>] }];
 type Results<F extends readonly ((input: any) => any)[], E = never> =
  { -readonly [K in keyof F]: Awaited<ReturnType<F[K]>> | E };
 /** Makes all calls at once, or `limit` at a time; their results in the same order:
  * parallel([[get_forecast, { location: "Oslo" }], …]). Throws the first error, or gives each in its place. */
 export function parallel<F extends readonly ((input: any) => any)[] | []>(
  calls: Calls<F>, options: { errors: "collect"; limit?: number }): Results<F, ToolError>;
 export function parallel<F extends readonly ((input: any) => any)[] | []>(
  calls: Calls<F>, options?: { errors?: "throw"; limit?: number }): Results<F>;
}
"""

# The namespace of Node's types: where these are loaded too, the declarations merge.
_REQUIRE = """\
declare namespace NodeJS {{
 interface Require {{
{overloads}
 }}
}}
declare var require: NodeJS.Require;
"""

_PYI = '''\
import builtins
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, TypeVar, overload
R = TypeVar("R")
class ToolError(Exception):
 """Raised by a call that failed."""
 server: str
 tool: str
 kind: Literal["timeout", "denied", "disconnected", "invalid_arguments", "limit", "failed"]
 message: str
class ToolTimeoutError(ToolError): ...
class ToolDeniedError(ToolError): ...
class ToolDisconnectedError(ToolError): ...
class ToolArgumentsError(ToolError): ...
class ToolLimitError(ToolError): ...
class ToolFailedError(ToolError): ...
class Handle:
 """A large or binary result, kept on the host. Can be given to a tool in place of its text or bytes."""
 mime: str
 size: int
 name: str | None
 def text(self) -> str: ...
 def json(self) -> Any: ...
 def bytes(self) -> builtins.bytes: ...
 def slice(self, start: int = ..., end: int | None = ...) -> Handle:
  """The bytes from start up to end."""
@overload
def parallel(
 calls: Iterable[tuple[Callable[..., R], Mapping[str, Any]]], /, *, limit: int = ..., errors: Literal["throw"] = ...
) -> list[R]:
 """Makes all calls at once, or `limit` at a time; their results in the same order:
 parallel([(get_forecast, {"location": "Oslo"}), …]). Raises the first error, or gives each in its place."""
@overload
def parallel(
 calls: Iterable[tuple[Callable[..., R], Mapping[str, Any]]], /, *, limit: int = ..., errors: Literal["collect"]
) -> list[R | ToolError]: ...
@overload
def parallel(calls: Iterable[Sequence[Any]], /, *, limit: int = ..., errors: str = ...) -> list[Any]: ...
'''


def bridge_dts(specifiers: Iterable[str] = ()) -> str:
    """Returns the `.d.ts` of `host:bridge`, in which `require` knows these modules and their async twins."""
    known = ["host:bridge", *(each for specifier in specifiers for each in (specifier, f"{specifier}/async"))]
    overloads = [f"  (id: {ts_string(each)}): typeof import({ts_string(each)});" for each in known]
    return _DTS + _REQUIRE.format(overloads="\n".join(overloads))


def bridge_pyi() -> str:
    """The stub of `host.bridge`."""
    return _PYI


Language: TypeAlias = Literal["typescript", "python"]
Detail: TypeAlias = Literal["full", "compact"]
Errors: TypeAlias = Literal["raise", "return"]

DEFAULT_BOUNDS = Bounds()


@dataclass(frozen=True, slots=True)
class StubSet:
    """The generated files of a catalog."""

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
    """Generates the stubs of a catalog for one language, and the manifest of its modules.

    Every tool gets a function, whatever its schemas are; diagnostics tell what its types can't express.
    Reads and fills `cache`, if given: blocks on its files.

    Raises:
        ValueError: an unknown language, detail or error style.
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
    if detail == "full" and language == "typescript":
        files["bridge.d.ts"] = bridge_dts(module.specifier for module in catalog.modules)
    elif detail == "full":
        files |= {"host/__init__.pyi": "", "host/bridge.pyi": bridge_pyi()}
    ordered = {name: files[name] for name in sorted(files)}
    return StubSet(MappingProxyType(ordered), MappingProxyType(manifest), tuple(diagnostics))


@dataclass(frozen=True, slots=True)
class _Options:
    """The options that decide a module's stubs, and so belong to its cache key."""

    language: Language
    detail: Detail
    errors: Errors
    bounds: Bounds


def _module_stubs(module: ModuleSpec, options: _Options, cache: StubCache | None) -> ModuleStubs:
    """Returns the stubs of one server, from the cache if possible; else generates and caches them.

    Those cut short by time are not cached.
    """
    key = None if cache is None else _cache_key(module, options)
    if cache is None or key is None:
        return _write_module(module, options)
    known = cache.find(key)
    if known is not None and set(known.styles) == {tool.identifier for tool in module.tools}:
        return known
    stubs = _write_module(module, options)
    # Types cut short by time on a busy machine are not cached.
    if not any(item.message.startswith(TOO_SLOW) for item in stubs.diagnostics):
        cache.store(key, stubs)
    return stubs


def _cache_key(module: ModuleSpec, options: _Options) -> str | None:
    """Returns a hash of all inputs and of the generator; None for schemas too deep to have been JSON."""
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
    """Returns a hash of the generator's own source, read once: a new version doesn't use an older one's cache.

    If the source can't be read, as in an archive, it is random: the cache then lasts for this process.
    """
    digest = hashlib.sha256()
    try:
        for file in sorted(Path(__file__).parent.rglob("*.py")):
            digest.update(file.read_bytes())
    except OSError:  # imported from an archive: a key for this process only
        return os.urandom(16).hex()
    return digest.hexdigest()


def _write_module(module: ModuleSpec, options: _Options) -> ModuleStubs:
    """Generates the stubs of one server, without the cache."""
    from toolbridge_codegen.derive.tools import build_module
    from toolbridge_codegen.emit.pyi import input_style

    model, diagnostics = build_module(module, bounds=options.bounds)
    by_name = model.by_name
    styles: dict[str, InputStyle] = {
        function.tool.identifier: input_style(by_name, function) for function in model.functions
    }
    return ModuleStubs(_write_files(model, options), styles, diagnostics)


def _write_files(model: ModuleModel, options: _Options) -> dict[str, str]:
    """Writes a module's files, as text by file name: one, or for full Python stubs two."""
    stem = f"mcp-{model.spec.server}"
    if options.detail == "compact":
        from toolbridge_codegen.emit.compact import emit_compact

        return {f"{stem}.txt": emit_compact(model, options.language, errors=options.errors)}
    if options.language == "typescript":
        from toolbridge_codegen.emit.dts import emit_dts

        return {f"{stem}.d.ts": emit_dts(model, errors=options.errors)}
    from toolbridge_codegen.emit.pyi import emit_aio_pyi, emit_pyi

    package = model.spec.python_module.replace(".", "/")
    return {
        f"{package}/__init__.pyi": emit_pyi(model, errors=options.errors),
        f"{package}/aio.pyi": emit_aio_pyi(model),
    }
