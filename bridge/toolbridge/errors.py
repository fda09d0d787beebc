"""Errors that toolbridge raises to its host: a `ToolbridgeError` for misuse or a broken installation.

A `ServerError` is about one server; the others are unaffected. Failures of guest code are never raised: they are
returned as `RunResult.failure`. Texts shared by errors are here, too: advised commands, and the nearest name.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Sequence
from contextvars import ContextVar
from functools import wraps
from itertools import islice

TYPE_CHECKING = False  # typing's own costs a command a tenth of its start-up to import
if TYPE_CHECKING:
    from typing import Any, TypeVar

    _Called = TypeVar("_Called", bound=Callable[..., object])

# Commands advised by errors and notes, with the `--config` and `--profile` of this process.


_options: ContextVar[str] = ContextVar("options", default="")


def advised(words: str) -> str:
    """Formats a `toolbridge` command in backticks, with the options of `advise_with`."""
    return f"`toolbridge {words}{_options.get()}`"


def found_by(config_file: str | None, profiles: Sequence[str] = ()) -> str:
    """Formats the options `--config` and `--profile` for these values, quoted for a shell; empty for none."""
    file = f" --config {shlex.quote(config_file)}" if config_file else ""
    return file + "".join(f" --profile {shlex.quote(each)}" for each in profiles)


def advise_with(config_file: str | None, profiles: Sequence[str] = ()) -> None:
    """Sets the options of commands that `advised` formats in the current context."""
    _options.set(found_by(config_file, profiles))


_LONGEST_NAME = 64
_MOST_NAMES = 1000


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Returns the known name most similar to a misspelt one, for "did you mean"; None if none is near.

    Ignores case, `-` and `_`; a prefix of three letters or more matches, too. Bounded against hostile names: compares
    the first 64 characters with the first 1000 names.
    """
    from difflib import get_close_matches

    wanted = _folded(name)
    candidates = {_folded(each): each for each in islice(known, _MOST_NAMES)}
    found = get_close_matches(wanted, candidates, n=1, cutoff=0.7)
    if not found and len(wanted) >= 3:
        found = [each for each in candidates if each.startswith(wanted)]
    return candidates[found[0]] if found else None


def _folded(name: str) -> str:
    return name[:_LONGEST_NAME].lower().replace("_", "").replace("-", "")


class ToolbridgeError(Exception):
    """The base of all errors that toolbridge raises."""


class GuestImageError(ToolbridgeError):
    """A guest image is missing or damaged."""

    def __init__(self, language: str, problem: str) -> None:
        self.language = language
        super().__init__(
            f"The {language} guest image {problem}. In a checkout, run `make guest`; "
            "otherwise reinstall the toolbridge package."
        )


class EngineError(ToolbridgeError):
    """Wasmtime failed: a broken installation, or the machine is out of resources."""

    def __init__(self, doing: str, message: str) -> None:
        super().__init__(f"Wasmtime failed to {doing}: {message}")


class HostModuleError(ToolbridgeError, ValueError):
    """A module in `modules=` can't be offered to guest code."""

    def __init__(self, specifier: object, problem: str) -> None:
        self.specifier = specifier
        super().__init__(f"Module {specifier!r}: {problem}")


class ToolDefinitionError(ToolbridgeError, TypeError):
    """A host function can't be a tool: its signature or annotations don't allow it."""

    def __init__(self, tool: object, problem: str) -> None:
        self.tool = tool
        super().__init__(f"Tool {tool!r}: {problem}.")


class MisuseError(ToolbridgeError, TypeError):
    """An argument is of the wrong type, missing, or unknown."""

    def __init__(self, name: str, value: object, expected: str) -> None:
        super().__init__(f"{name} is of type {type(value).__name__}: expected {expected}")

    @classmethod
    def of_call(cls, called: str, problem: str, fix: str) -> MisuseError:
        """Makes the error of a call whose arguments don't match the signature."""
        return cls.__new__(cls, f"{called}: {problem}. {fix}")


def reports_misuse(called: _Called) -> _Called:
    """Decorates a public class or function: a call that doesn't match the signature raises a MisuseError.

    A class is changed in place; a TypeError of the body is passed on.
    """
    decorated: Any = called
    if not isinstance(called, type):
        return _reporting(decorated, called.__qualname__)
    decorated.__init__ = _reporting(decorated.__init__, called.__name__)
    return decorated


def _reporting(function: Any, name: str) -> Any:
    """Wraps a function, shown as `name`, so that a call that doesn't match its signature raises a MisuseError."""

    @wraps(function)
    def call(*arguments: object, **named: object) -> object:
        try:
            return function(*arguments, **named)
        except TypeError as error:
            if error.__traceback__ is None or error.__traceback__.tb_next is not None:  # raised by the function's body
                raise
            problem = _mismatch(function, name, arguments, named)
        raise problem

    return call


def _mismatch(function: Any, name: str, arguments: tuple[object, ...], named: dict[str, object]) -> MisuseError:
    """Makes the error for arguments that don't match a function's signature: names the unknown or missing one."""
    import inspect

    signature = inspect.signature(function)
    variadic = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    parameters = [each for each in signature.parameters.values() if each.name != "self" and each.kind not in variadic]
    known = [each.name for each in parameters]
    takes_more = any(each.kind is each.VAR_KEYWORD for each in signature.parameters.values())
    for unknown in () if takes_more else named.keys() - known:
        return unknown_argument(name, unknown, known)
    required = [each.name for each in parameters if each.default is each.empty]
    try:
        signature.bind(*arguments, **named)
    except TypeError as error:
        problem = str(error)
    else:
        raise AssertionError(name)
    more = ["…"] if len(required) < len(known) else []
    return MisuseError.of_call(name, problem, f"Write {name}({', '.join([*required, *more])}).")


def unknown_argument(called: str, name: str, known: Sequence[str]) -> MisuseError:
    """Makes the error of a call with an argument that its function does not have; suggests the nearest name."""
    near = nearest(name, known)
    fix = f"Did you mean {near!r}?" if near else f"It takes: {', '.join(known)}."
    return MisuseError.of_call(called, f"unknown argument {name!r}", fix)


class LimitsError(ToolbridgeError, ValueError):
    """A limit is out of range."""

    def __init__(self, name: str, value: object, expected: str) -> None:
        self.name = name
        super().__init__(f"Limits.{name} is {value!r}: expected {expected}")


class SeedError(ToolbridgeError, ValueError):
    """A run's seed is not 32 bytes."""

    def __init__(self, length: int) -> None:
        super().__init__(f"A seed has 32 bytes: this one has {length}. `hashlib.sha256(text).digest()` makes one.")


class SandboxClosedError(ToolbridgeError):
    """A sandbox or session was used after it was closed."""

    def __init__(self, what: str) -> None:
        super().__init__(f"This {what} is closed.")


class SessionBusyError(ToolbridgeError):
    """A session was asked to run a second program at the same time."""

    def __init__(self) -> None:
        super().__init__(
            "This session is running a program: await it before running another, or open a second session."
        )


class ConfigError(ToolbridgeError, ValueError):
    """A configuration is invalid: names file, server and field, what was found, and what to write.

    Never shows the value of a variable or header. The error of a file with several mistakes has all in `problems`.
    """

    def __init__(
        self,
        problem: str,
        *,
        file: str | None = None,
        server: str | None = None,
        field: str | None = None,
        fix: str = "",
        problems: tuple[ConfigError, ...] = (),
    ) -> None:
        self.file, self.server, self.field, self.problem, self.fix = file, server, field, problem, fix
        self._problems = problems
        # Names of directories are untrusted: control characters are escaped.
        shown_file = file if file is None or file.isprintable() else repr(file)
        where = [part for part in (shown_file, server and f"server {server!r}", field and f"field {field!r}") if part]
        super().__init__(": ".join([*where, problem]) + (f" {fix}" if fix else ""))

    @property
    def problems(self) -> tuple[ConfigError, ...]:
        """Returns one error for each problem: itself if there is only one."""
        return self._problems or (self,)


class SectionError(ToolbridgeError, ValueError):
    """A section of a prompt is missing or can't be rendered."""

    def __init__(self, section: str, problem: str) -> None:
        self.section = section
        super().__init__(f"Section {section!r}: {problem.removesuffix('.')}.")


class UnknownServerError(ToolbridgeError, KeyError):
    """No server of this name is configured."""

    def __init__(self, server: str, known: tuple[str, ...]) -> None:
        self.server = server
        self.message = f"No server {server!r} is configured. Known servers: {', '.join(known) or 'none'}."
        super().__init__(self.message)

    def __str__(self) -> str:  # KeyError would show the repr
        return self.message


class LanguageError(ToolbridgeError, ValueError):
    """The language is not supported for programs, or for stubs."""

    def __init__(self, language: object, known: tuple[str, ...], *, of_stubs: bool = False) -> None:
        expected = f"expected {' or '.join(known)}."
        if of_stubs:
            hint = (
                " Programs in JavaScript are written against those in TypeScript." if language == "javascript" else ""
            )
            super().__init__(f"There are no stubs in {language!r}: {expected}{hint}")
        else:
            super().__init__(f"Programs in {language!r} can't be run by this version: {expected}")


class UnknownModuleError(ToolbridgeError, KeyError):
    """No module has this name, or its server was never connected, so its tools are unknown."""

    def __init__(self, specifier: str, known: tuple[str, ...]) -> None:
        self.specifier = specifier
        near = nearest(str(specifier), known)
        if specifier in known:
            hint = "Its server was never connected: connect it first."
        else:
            hint = f"Did you mean {near!r}?" if near else f"Known modules: {', '.join(known[:20]) or 'none'}."
        self.message = f"The module {specifier!r} is not known. {hint}"
        super().__init__(self.message)

    def __str__(self) -> str:  # KeyError would show the repr
        return self.message


class ServerError(ToolbridgeError):
    """One server failed; others are unaffected. Text from the server in the message is sanitised."""

    def __init__(self, server: str, message: str) -> None:
        self.server = server
        super().__init__(f"Server {server!r} {message}")


class ServerNotApprovedError(ServerError):
    """A server is not approved: it may not be started or reached."""


class ServerEnvironmentError(ServerError):
    """A variable that a server's configuration refers to is not set."""


class ServerConnectError(ServerError):
    """A server could not be started, reached or understood."""


class ServerTimeoutError(ServerError):
    """A server did not answer in time."""


class ServerDisconnectedError(ServerError):
    """A server ended before it answered; a call that was under way may have taken effect."""


class ServerProtocolError(ServerError):
    """A server's answer is not MCP, or exceeds a cap."""


class ServerRespawnError(ServerError):
    """A server ended too often and is not respawned."""


class ConnectionLimitError(ServerError):
    """The connection pool is full: as many servers are connected as the limit allows."""


class ServerClosedError(ServerError):
    """A server's connection was closed by the host: revoked, disabled, removed, or all closed."""


class ToolNotFoundError(ServerError):
    """A server has no tool of this name, or does not expose it."""


class ToolBlockedError(ServerError):
    """A tool is not pinned, or its definition differs from its pin.

    The message holds no text from the server (a model may read it); `diff` does, for people.
    """

    def __init__(self, server: str, tool: str, problem: str, what_to_do: str, *, diff: str = "") -> None:
        self.tool, self.diff = tool, diff
        super().__init__(server, f"has its tool {tool!r} blocked: it {problem}. A person can {what_to_do}")


class ToolRefusedError(ServerError):
    """A server answered a call with a protocol error."""

    def __init__(self, server: str, tool: str, code: int, message: str) -> None:
        self.tool, self.code = tool, code
        super().__init__(server, f"refused the call of {tool!r}: {message} (code {code})")
