"""Opens runtimes: `open_runtime`, `run_sync` and their options."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal, TypedDict, Unpack

import anyio

from toolbridge.config.config import ConfigSource, config_reader
from toolbridge.config.policy import Errors, check_errors
from toolbridge.config.profiles import profile_names, with_profiles
from toolbridge.errors import MisuseError, ToolbridgeError, reports_misuse, unknown_argument
from toolbridge.limits import Limits
from toolbridge.runtime import Language, Runtime
from toolbridge.sandbox.outcome import RunResult
from toolbridge.sandbox.scheduler import is_in_event_loop

if TYPE_CHECKING:
    from toolbridge.events import Observer
    from toolbridge.sandbox.engine import CompileNotice
    from toolbridge.servers.auth.sign_in import SignInLike
    from toolbridge.servers.requests import ElicitorLike, RootsLike, SamplerLike
    from toolbridge.sources.sections import RenderedPrompt
    from toolbridge.trust.approval.approver import ApproverLike
    from toolbridge.trust.gate import CanUseTool
    from toolbridge.trust.pins.pins import Pins


class RuntimeOptions(TypedDict, total=False):
    """The keyword arguments of `open_runtime` and `run_sync`. A callback is an object with its method, or a function.

    Plain functions run on a thread (observers: at once, on the event loop's thread), async ones on the event loop.
    """

    approver: ApproverLike | None
    """Approves servers before they are started or reached; without one, none is."""
    elicitor: ElicitorLike | None
    """Answers a server's questions to a person (elicitation)."""
    sampler: SamplerLike | None
    """Answers a server's requests to a model (sampling)."""
    roots: RootsLike | None
    """Lists the directories that servers are told of."""
    sign_in: SignInLike | None
    """Has a person sign in to a remote server (OAuth)."""
    can_use_tool: CanUseTool | None
    """Authorizes calls that the permissions leave open."""
    limits: Limits | None
    """Limits of each run."""
    observers: Iterable[Observer]
    """Plain or async functions that are called with each event."""
    errors: Errors | None
    """Whether guest code gets tool errors raised or returned; None: as configured."""
    strict_results: bool | None
    """Whether a result that doesn't match its output schema is an error; None: as configured."""
    pins: Pins | Literal["lock", "none"]
    """Pins of tool definitions; by default those of `toolbridge.lock`."""
    profiles: Iterable[str]
    """Profiles of the configuration whose servers are wanted."""
    prompt: RenderedPrompt | None
    """A rendered prompt, which brings the servers of its sections."""
    directory: str | os.PathLike[str] | None
    """Where listings and stubs are kept between runs; by default the user's cache directory."""
    on_compile: CompileNotice | None
    """Called with a language whose engine has to be compiled first, which takes seconds."""


_OPTION_TYPES: Mapping[str, tuple[Any, str]] = {
    "limits": (Limits, "Limits(…)"),
    "strict_results": (bool, "a bool"),
    "directory": ((str, os.PathLike), "a path"),
    "on_compile": (Callable, "a plain or async function that takes a language"),
}


def _check_options(options: RuntimeOptions) -> None:
    """Checks the options that nothing else checks; callbacks are checked by their users.

    Raises:
        ConfigError: `errors` is no such word.
        MisuseError: an option is unknown, or of the wrong type.
    """
    for name, value in options.items():
        if name not in RuntimeOptions.__annotations__:
            raise unknown_argument("open_runtime", name, sorted(RuntimeOptions.__annotations__))
        kinds, expected = _OPTION_TYPES.get(name, (object, ""))
        if value is not None and not isinstance(value, kinds):
            raise MisuseError(name, value, expected)
    if options.get("errors") is not None:
        check_errors(options.get("errors"))
    pins = options.get("pins", "lock")
    if pins not in ("lock", "none") and not hasattr(pins, "admit"):
        raise MisuseError("pins", pins, '"lock", "none", or an object such as LockPins(…)')


@reports_misuse
def open_runtime(config: ConfigSource = None, **options: Unpack[RuntimeOptions]) -> Runtime:
    """Makes a runtime for a configuration: a Config, a file, or the one that is found (None). Use it with `async with`.

    Blocks while files are read; starts and connects nothing. `RuntimeOptions` documents the options.

    Raises:
        ConfigError: the configuration can't be used as it is, or there is no such profile.
        MisuseError: an argument is of the wrong type, or there is no such option.
    """
    _check_options(options)
    read_config = config_reader(config)
    profiles = profile_names(options.get("profiles", ()))
    resolved = read_config()
    used = with_profiles(resolved, profiles) if profiles else resolved
    return Runtime(used, options, read_config=read_config, prompt=options.get("prompt"))


@reports_misuse
def run_sync(
    config: ConfigSource, code: str, *, language: Language = "javascript", **options: Unpack[RuntimeOptions]
) -> RunResult:
    """Opens a runtime, runs one program, and closes it again; blocks until then: for scripts.

    The result has any failure of the program.

    Raises:
        ToolbridgeError: the configuration or installation can't be used, or an event loop is running here: await
            `Runtime.run` instead.
    """

    async def main() -> RunResult:
        async with open_runtime(config, **options) as runtime:
            return await runtime.run(code, language=language)

    if is_in_event_loop():
        raise ToolbridgeError("run_sync was called inside an event loop: use `async with open_runtime(...)` there.")
    return anyio.run(main)
