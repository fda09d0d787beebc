"""The process to start for a stdio server: an absolute path, arguments, a complete environment, a directory.

The path is resolved once, before approval, and exactly that file is started: no TOCTOU (T23, T24).
"""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import anyio

from toolbridge.config.secret_values import masked_arguments
from toolbridge.config.server_config import ServerConfig
from toolbridge.errors import ServerConnectError
from toolbridge.trust.sanitise import for_terminal

if TYPE_CHECKING:
    from toolbridge.config.server_config import ServerLimits
    from toolbridge.servers.connection import ServerChannel

_INSTALL: Mapping[str, str] = {
    **dict.fromkeys(("node", "npm", "npx"), "Install Node.js (https://nodejs.org), which brings it."),
    **dict.fromkeys(("uv", "uvx"), "Install uv (https://docs.astral.sh/uv), which brings it."),
    **dict.fromkeys(("bun", "bunx"), "Install Bun (https://bun.sh), which brings it."),
    **dict.fromkeys(("docker", "podman"), "Install it, or run the server without a container."),
    "deno": "Install Deno (https://deno.com).",
    "pipx": "Install pipx (https://pipx.pypa.io).",
    "python": "Install Python, or write `python3` where that is its name.",
    "python3": "Install Python 3.",
}


@dataclass(frozen=True, slots=True, repr=False)
class Launch:
    """One process to start. `env` is its complete environment but for the mark of its process tree."""

    executable: str
    """An absolute path."""
    args: tuple[str, ...]
    env: Mapping[str, str]
    cwd: str | None
    secrets: frozenset[str] = frozenset()
    """Secrets among the arguments and variables."""

    def __repr__(self) -> str:
        """Without values of variables, which may be secrets."""
        args = list(masked_arguments(self.args))
        return f"Launch({self.executable!r}, args={args!r}, env={sorted(self.env)!r}, cwd={self.cwd!r})"


@asynccontextmanager
async def open_stdio(server_name: str, launch: Launch, limits: ServerLimits) -> AsyncGenerator[ServerChannel]:
    """Start a server's process; leaving the context ends its whole process tree, and waits for that.

    Only the dispatcher's `run` needs a background task, so an error in the context is raised unwrapped.

    Raises:
        ServerConnectError: the process could not be started.
    """
    from toolbridge.servers.connection import ServerChannel
    from toolbridge.servers.jsonrpc import LineDispatcher
    from toolbridge.servers.stdio.process import start_process

    process = await start_process(server_name, launch)
    dispatcher = LineDispatcher(process, limits.message_bytes)

    def end() -> str:
        return "; ".join(filter(None, (process.how_it_ended(), dispatcher.problems.summary(launch.secrets))))

    try:
        yield ServerChannel(dispatcher, end)
    finally:
        with anyio.CancelScope(shield=True):
            await process.close(limits.close_seconds)


def find_executable(server: ServerConfig, path: str) -> str:
    """Resolve a server's command to an absolute path; `path` is the PATH that the server itself will have.

    A command with a slash is relative to the server's directory. A bare name is searched in the absolute directories
    of `path` only: an entry such as `.` would let the current directory choose the program.

    Raises:
        ServerConnectError: it doesn't exist or isn't executable; says where it was looked for and what to do.
    """
    command = server.command or ""
    if not command or "\0" in command:
        raise _not_startable(server, "its command is empty or has a NUL character in it")
    if os.path.dirname(command):
        return _checked(server, os.path.abspath(os.path.join(server.cwd or os.curdir, command)))
    found = _search(command, path)
    if found is None:
        raise _not_found(server, command, path)
    return found


def link_target(server: ServerConfig, executable: str, directory: str) -> str | None:
    """Return the target of a symbolic link that is the command, in the project or the server's directory; else None.

    Links elsewhere are left out: package managers change them with each upgrade, which must not ask for approval again.
    """
    project = os.path.dirname(server.origin.detail) if server.origin.kind == "project" else directory
    is_relative = bool(os.path.dirname(server.command or "")) and not os.path.isabs(server.command or "")
    base = next((each for each in (directory, project) if executable.startswith(os.path.join(each, ""))), None)
    if base is None and not is_relative:
        return None
    base = base or directory
    # Links above the project are not the project's own.
    unlinked = os.path.normpath(os.path.join(os.path.realpath(base), os.path.relpath(executable, base)))
    target = os.path.realpath(executable)
    return None if target == unlinked else target


def why_not_started(launch: Launch, error: OSError | ValueError) -> str:
    """Explain why the system would not start a process, and what to do."""
    program, cwd = for_terminal(launch.executable), launch.cwd
    if isinstance(error, ValueError):
        return "its command, args, env or cwd has a NUL character, a lone surrogate or a name with `=` in it."
    if cwd is not None and not os.path.isdir(cwd):
        return f"its directory {for_terminal(cwd)} does not exist. Create it, or correct `cwd`."
    missing = f"there is no file {program} any more."
    if os.path.exists(launch.executable):
        missing = f"the interpreter that the first line of {program} names does not exist. Install it."
    denied = f"permission to run {program}{f' in {for_terminal(cwd)}' if cwd else ''} was denied."
    reasons: Mapping[int | None, str] = {
        errno.ENOENT: missing,
        errno.EACCES: denied,
        errno.EPERM: denied,
        errno.ENOEXEC: f"{program} is no program for this system; a script begins with `#!` and its interpreter.",
        errno.E2BIG: "its args and env are longer than the system allows.",
        errno.EMFILE: "too many files are open.",
        errno.ENFILE: "too many files are open.",
        errno.EAGAIN: "the system allows no more processes.",
        errno.ENOMEM: "the system is out of memory.",
    }
    return reasons.get(error.errno, f"{program}: {error.strerror or type(error).__name__}.")


def _search(name: str, path: str) -> str | None:
    directories = [entry for entry in path.split(os.pathsep) if os.path.isabs(entry)]
    return shutil.which(name, path=os.pathsep.join(directories)) if directories else None


def _checked(server: ServerConfig, file: str) -> str:
    """Return a file's path if it is an executable regular file. Raises `ServerConnectError`, with advice, otherwise."""
    shown = for_terminal(file)
    if not os.path.exists(file):
        home = " A `~` is not expanded: write the whole path." if (server.command or "").startswith("~") else ""
        raise _not_startable(server, f"there is no file {shown}.{home}")
    if not os.path.isfile(file):
        raise _not_startable(server, f"{shown} is no regular file")
    if not os.access(file, os.X_OK):
        raise _not_startable(server, f"{shown} is not executable. Run `chmod +x` on it, or name its interpreter")
    return file


def _not_found(server: ServerConfig, command: str, path: str) -> ServerConnectError:
    """Build the error for a command that is not on the PATH, with advice on how to install it."""
    shown = for_terminal(command)
    if " " in command:
        fix = "Put the program into `command` and its arguments into `args`."
    elif command == "python" and _search("python3", path):
        fix = "Write `python3`, which is there."
    else:
        fix = _INSTALL.get(command, "Install it, or write the whole path of the program.")
    return _not_startable(server, f"there is no program {shown!r} on its PATH. {fix}")


def _not_startable(server: ServerConfig, problem: str) -> ServerConnectError:
    return ServerConnectError(server.name, f"can't be started: {problem.rstrip('.')}.")
