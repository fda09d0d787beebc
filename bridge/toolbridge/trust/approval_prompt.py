"""SECURITY: what a person reads before a server is started or reached (T2, T20, T24).

Everything in it that comes from a configuration is written by `visible_text`: on its own lines, inert, unambiguous.
Whatever is long is shown twice: first in full, then shortened, so that the warning and the question are never pushed
off the screen, and nothing is left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from toolbridge.config.secret_arguments import MASK, masked_url
from toolbridge.config.server_config import Origin, ServerConfig
from toolbridge.trust.approval_store import StoredAnswer
from toolbridge.trust.approval_warnings import approval_warnings
from toolbridge.trust.approved_facts import references
from toolbridge.trust.approver import ApprovalRequest
from toolbridge.trust.visible_text import visible, word, wrapped

PROCESS_WARNING = "⚠️ This MCP server runs as a full OS process with YOUR permissions. It is NOT sandboxed."
REMOTE_WARNING = "⚠️ This MCP server runs elsewhere: what is sent to it leaves your control."
OBJECT_WARNING = "⚠️ This MCP server is a part of the program that you run, and is NOT sandboxed."

_LABEL = 12
_MOST_LINES = 8
"""Of one row, in the part that has to fit on a screen."""
_ORIGINS: Mapping[str, str] = {
    "user": "your own file",
    "project": "project file",
    "plugin": "plugin",
    "code": "the program that you run",
}
_QUESTIONS = {
    "process": "Start it with YOUR permissions, NOT sandboxed? [y/N] ",
    "remote": "Connect to it? [y/N] ",
}


@dataclass(frozen=True, slots=True)
class _Row:
    """A label, and its words."""

    label: str
    words: tuple[str, ...]


def warning_line(server: ServerConfig) -> str:
    """The one line that is always shown."""
    if server.transport == "stdio":
        return PROCESS_WARNING
    return OBJECT_WARNING if server.transport == "in_process" else REMOTE_WARNING


def approval_prompt(request: ApprovalRequest, answer: StoredAnswer, *, width: int = 80) -> str:
    """All that a person needs to decide, without the question."""
    width = max(40, width)
    rows = list(_rows(request))
    room = width - 2 - _LABEL
    full = [(row.label, wrapped(row.words, room)) for row in rows]
    lines: list[str] = []
    if any(len(each) > _MOST_LINES for _, each in full):
        lines += ["", _rule(f"All of the configuration of {visible(request.server.name)}", width)]
        lines += [line for label, each in full for line in _labelled(label, each)]
    lines += ["", _rule(_title(request.server), width)]
    lines += [line for label, each in full for line in _labelled(label, _shortened(each))]
    lines += [f"  Digest {request.digest}", ""]  # its 71 characters fit behind no wider label
    for sentence in (_history(answer), *approval_warnings(request)):
        first, *rest = wrapped(sentence.split(" "), width - 4)
        lines += [f"  • {first}", *(f"    {line}" for line in rest)]
    lines += ["", _set_in(warning_line(request.server), width), ""]
    return "\n".join(lines)


def question(server: ServerConfig) -> str:
    """What is asked below the prompt."""
    return _QUESTIONS["process" if server.transport in ("stdio", "in_process") else "remote"]


def _title(server: ServerConfig) -> str:
    verb = "start" if server.transport in ("stdio", "in_process") else "connect to"
    return f"Approve to {verb} the MCP server {visible(server.name)}?"


def _rule(text: str, width: int) -> str:
    return f"── {text} ".ljust(width, "─")


def _rows(request: ApprovalRequest) -> Iterator[_Row]:
    server = request.server
    yield _Row("Origin", _origin(server.origin))
    if server.display_name:
        yield _Row("Called", (word(server.display_name),))
    if server.command is not None:
        yield _Row("Command", tuple(word(each) for each in (server.command, *server.args)))
    if request.executable is not None:
        link = f"a link to {word(request.target)}" if request.target is not None else ""
        yield _Row("Program", _words(word(request.executable), link))
    if request.directory is not None:
        yield _Row("Directory", _words(word(request.directory), "(the current one)" if server.cwd is None else ""))
    if server.url is not None:
        yield _Row("URL", (word(masked_url(server.url)),))
    if server.transport != "stdio":
        yield _Row("Transport", (server.transport,))
    if server.env:
        yield _Row("Variables", tuple(_values(server.env)))
    if server.env_required:
        yield _Row("Passed on", tuple(f"{word(name)}={MASK}" for name in server.env_required))
    if server.inherit_env:
        yield _Row("inheritEnv", _words("true:", "ALL variables of your environment are passed on"))
    if server.headers:
        yield _Row("Headers", tuple(_values(server.headers)))
    if server.oauth is not None:
        scopes = [word(scope) for scope in server.oauth.scopes]
        client = [f"client {word(server.oauth.client_id)}"] if server.oauth.client_id else []
        yield _Row("Sign-in", ("OAuth", *client, *(("scopes", *scopes) if scopes else ())))


def _origin(origin: Origin) -> tuple[str, ...]:
    return (*_ORIGINS[origin.kind].split(), *((word(origin.detail),) if origin.detail else ()))


def _values(values: Mapping[str, str]) -> Iterator[str]:
    """Names with masked values. Which variables of the person's own go into one is no secret, and worth knowing."""
    for name, value in values.items():
        sources = " ".join(f"${{{each}}}" for each in references(value))
        yield f"{word(name)}={MASK}" + (f" (from {sources})" if sources else "")


def _history(answer: StoredAnswer) -> str:
    day = answer.when.partition("T")[0]
    if answer.standing == "changed":
        return f"CHANGED since you approved it on {day}: {', '.join(map(visible, answer.changes))}."
    if answer.standing == "revoked":
        return f"You revoked its approval on {day}."
    return f"You approved exactly this on {day}." if answer.standing == "approved" else "It was never approved before."


def _set_in(line: str, width: int) -> str:
    """The warning, which is one line always: set in so that a terminal that has to wrap it does so between words.

    Some terminals draw its sign one column wide, some two; there is a space for either.
    """
    _, _, words = line.partition("\ufe0f")
    for indent in range(2, 16):  # wider than the longest word
        place = width - indent - 2
        if place >= len(words) or words[place] == " ":
            return " " * indent + line
    return line


def _shortened(lines: list[str]) -> list[str]:
    if len(lines) <= _MOST_LINES:
        return lines
    tail = 2
    head = _MOST_LINES - tail - 1
    left_out = len(lines) - head - tail
    return [*lines[:head], f"[… {left_out:,} lines: see above …]", *lines[-tail:]]


def _labelled(label: str, lines: Iterable[str]) -> list[str]:
    first, *rest = [*lines] or [""]
    return [f"  {label.ljust(_LABEL)}{first}", *(" " * (2 + _LABEL) + line for line in rest)]


def _words(*words: str) -> tuple[str, ...]:
    return tuple(each for each in words if each)
