"""The stubs of `host:bridge`: what guest code has besides its servers' tools."""

from __future__ import annotations

from collections.abc import Iterable

from toolbridge_codegen.quoting import ts_string

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

# The namespace is Node's own: where its types are loaded too, the declarations merge.
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
    """The `.d.ts` of `host:bridge`, and of `require` for these modules."""
    known = ["host:bridge", *(each for specifier in specifiers for each in (specifier, f"{specifier}/async"))]
    overloads = [f"  (id: {ts_string(each)}): typeof import({ts_string(each)});" for each in known]
    return _DTS + _REQUIRE.format(overloads="\n".join(overloads))


def bridge_pyi() -> str:
    """The stub of `host.bridge`."""
    return _PYI
