"""References to environment variables, `${VAR}` and `${env:VAR}`, and their resolution; `$${` escapes `${`.

Expansion is not recursive: references in a variable's value are not expanded. Other clients' forms (`${input:token}`,
`${VAR:-default}`) are refused, or a server would get them literally in place of the secret.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Container, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import cast

from toolbridge.config.fields import header_fault
from toolbridge.config.secret_values import (
    looks_secret,
    maskable,
    parts_of,
    passwords_in,
    secrets_in,
    secrets_of_arguments,
    secrets_of_header,
    secrets_of_url,
)
from toolbridge.config.server_config import ServerConfig
from toolbridge.config.values import listed
from toolbridge.errors import ServerEnvironmentError

# The base environment that every child process inherits: enough to run, no secrets.


_BASE_NAMES = frozenset(
    {"HOME", "LANG", "LANGUAGE", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TZ", "USER", "XDG_CACHE_HOME"}
    | {"XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR", "XDG_STATE_HOME"}
)


def is_base_name(name: str) -> bool:
    """Whether every child process inherits this variable."""
    return name in _BASE_NAMES or name.startswith("LC_")


def base_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """The variables that every child process inherits, without exported shell functions."""
    return {name: value for name, value in environ.items() if is_base_name(name) and not value.startswith("()")}


# VS Code's own variables, in its own file: the project's directory, and the user's home.
#
# They are expanded when the file is read, in `env`, `headers` and `cwd` only: a command is never expanded.


_VARIABLE = re.compile(r"(?<!\$)\$\{(workspaceFolder|workspaceFolderBasename|userHome|pathSeparator|/)\}")


def is_editors_file(path: str) -> bool:
    """Whether VS Code reads this file, too."""
    return os.path.basename(os.path.dirname(path)) == ".vscode"


def editor_values(base: str, home: str | None) -> Mapping[str, str]:
    """The values of VS Code's variables in a project's file by name; `userHome` only if there is a home."""
    values = {"workspaceFolder": base, "workspaceFolderBasename": os.path.basename(base), "pathSeparator": os.sep}
    return {**values, "/": os.sep, **({"userHome": home} if home is not None else {})}


def expand_editor_variables(text: object, values: Mapping[str, str], *, has_references: bool) -> object:
    """Expand VS Code's variables in a text; anything else, and a variable without value, is returned as it is.

    `has_references` escapes `${` in the expanded values.
    """
    if not isinstance(text, str):
        return text

    def replacement(match: re.Match[str]) -> str:
        """The value of the matched variable; its text if it has none."""
        value = values.get(match[1])
        if value is None:
            return match[0]
        return value.replace("${", "$${") if has_references else value

    return _VARIABLE.sub(replacement, text)


def expand_in_values(pairs: object, values: Mapping[str, str]) -> object:
    """Copy `env` or `headers` with VS Code's variables expanded in the values; anything else is returned as it is."""
    if not isinstance(pairs, Mapping):
        return pairs
    given = cast("Mapping[object, object]", pairs)
    return {name: expand_editor_variables(text, values, has_references=True) for name, text in given.items()}


def editor_variable_in(text: str) -> str:
    """The first of VS Code's variables in a text; empty if there is none."""
    found = _VARIABLE.search(text)
    return found[0] if found else ""


_MARK = re.compile(r"\$\$\{|\$\{(?:env:)?([A-Za-z_][A-Za-z0-9_]*)\}|\$\{")
# Only text that can't be part of a secret: a password may contain `${`.
_SAFE_TO_SHOW = re.compile(r"\$\{input:[A-Za-z0-9_.-]{1,60}\}|\$\{[A-Z_][A-Z0-9_]{0,60}(?=:-)")
_INPUT = re.compile(r"(?<!\$)\$\{input:")


class UnknownReferenceError(Exception):
    """A `${` that begins no reference. Never raised to the host."""

    def __init__(self, name: str) -> None:
        self.name = name
        """The reference, or its beginning, without a possible default value."""
        super().__init__(name)


def expand(text: str, lookup: Callable[[str], str]) -> str:
    """Replace every reference in a text by the result of `lookup` for its variable, and `$${` by `${`.

    Not recursive. Errors of `lookup` are passed on.

    Raises:
        UnknownReferenceError: it has a `${` that begins no reference.
    """

    def replacement(match: re.Match[str]) -> str:
        """The value of the matched reference; `${` for its escape."""
        if match[1] is not None:
            return lookup(match[1])
        if match[0] == "$${":
            return "${"
        shown = _SAFE_TO_SHOW.match(text, match.start())
        raise UnknownReferenceError((shown[0] if shown[0].endswith("}") else f"{shown[0]}…") if shown else "${…")

    return _MARK.sub(replacement, text)


def without_literals(text: str, mask: str) -> str:
    """Keep the references in a text; `mask` replaces each run of other text."""
    parts: list[str] = []
    end = 0
    for match in _MARK.finditer(text):
        if match[1] is not None:
            parts += [mask, match[0]] if match.start() > end else [match[0]]
            end = match.end()
    return "".join([*parts, mask] if end < len(text) else parts)


def uses_input(text: str) -> bool:
    """Whether the text has an `${input:…}`, which only VS Code can ask a person for."""
    return _INPUT.search(text) is not None


def looks_expandable(text: str, *, besides: Container[str] = ()) -> bool:
    """Whether the text has what looks like a reference, other than to the variables in `besides`."""
    return any(match[0] != "$${" and match[1] not in besides for match in _MARK.finditer(text))


# SECURITY: resolution of references, just before a server is started or reached, and nowhere else.
#
# Values go into the child's environment or request headers, and never into a message.


MOST_CHARACTERS = 1_000_000
"""Total length of the values of a server; no system starts a process with more."""
MOST_SHOWN = 20


@dataclass(frozen=True, slots=True, repr=False)
class ResolvedEnvironment:
    """The resolved environment of a server's process, or headers of its requests, and the secrets in them."""

    env: Mapping[str, str]
    headers: Mapping[str, str]
    secrets: frozenset[str]
    """Values to redact everywhere."""
    warnings: tuple[str, ...] = ()
    client_secret: str | None = None
    """OAuth's client secret, resolved."""

    def __repr__(self) -> str:
        """Names and counts only: values may be secrets."""
        return (
            f"ResolvedEnvironment(env={sorted(self.env)!r}, headers={sorted(self.headers)!r}, "
            f"{len(self.secrets)} secrets, warnings={list(self.warnings)!r})"
        )


def resolve_environment(server: ServerConfig, environ: Mapping[str, str]) -> ResolvedEnvironment:
    """Resolve a server's references, and build its environment or headers; starts nothing.

    Only a stdio server has an `env`: the base variables, or all with `inherit_env`, and its own.

    Raises:
        ServerEnvironmentError: a variable is not set, or a value is unusable; names it, never shows it.
    """
    _refuse_inputs(server)
    resolution = _Resolution(server, environ)
    declared = {name: resolution.resolve(text, f"env.{name}") for name, text in server.env.items()}
    headers = {name: resolution.resolve(text, f"headers.{name}") for name, text in server.headers.items()}
    client_secret = server.oauth.client_secret if server.oauth else None
    if client_secret is not None:
        client_secret = resolution.resolve(client_secret, "oauth.clientSecret")
    forwarded = {name: resolution.require(name) for name in server.env_required}
    resolution.refuse_missing()

    headers = {name: value.strip(" \t") for name, value in headers.items()}  # not part of a header's value
    _refuse_unusable(server, declared | forwarded, headers)
    env: dict[str, str] = {}
    if server.transport == "stdio":
        env = dict(environ) if server.inherit_env else base_environment(environ)
        env.update(forwarded)
        env.update(declared)
    own = [*declared.items(), *(environ.items() if server.inherit_env else ())]
    secrets = [*resolution.values, *_probable_secrets(own), *secrets_of_url(server.url or "")]
    secrets += [secret for name, value in headers.items() for secret in secrets_of_header(name, value)]
    secrets += secrets_of_arguments(server.args)
    secrets += list(parts_of(client_secret)) if client_secret is not None else []
    return ResolvedEnvironment(
        MappingProxyType(env),
        MappingProxyType(headers),
        maskable(iter(secrets)),
        resolution.warnings(),
        client_secret,
    )


@dataclass(slots=True)
class _Resolution:
    """The resolution of one server's references: their values, and the unset variables."""

    server: ServerConfig
    environ: Mapping[str, str]
    values: set[str] = field(default_factory=set[str])
    size: int = 0
    unset: dict[str, str] = field(default_factory=dict[str, str])
    """Unset variables that may be empty, and where each is first used."""
    missing: dict[str, str] = field(default_factory=dict[str, str])
    """Unset variables that are required."""

    def resolve(self, text: str, place: str) -> str:
        """Expand a text; collects values, and unset variables in `unset` or `missing`, which count as empty.

        Raises:
            ServerEnvironmentError: it has something that is no reference, or all values are too long together.
        """
        try:
            return expand(text, lambda name: self._look_up(name, place))
        except UnknownReferenceError as error:
            shown = error.name
        why = "only VS Code can ask for" if shown.startswith("${input:") else "is no reference"
        fix = "Write ${VAR} for the variable VAR, or $${ for the characters themselves."
        raise ServerEnvironmentError(self.server.name, f"has {shown!r} in {place!r}, which {why}. {fix}")

    def require(self, name: str) -> str:
        """The value of a variable of `envRequired`; empty, and noted in `missing`, if it is not set."""
        if name not in self.environ:
            self.missing.setdefault(name, "envRequired")
            return ""
        return self._found(name)

    def refuse_missing(self) -> None:
        """Raise ServerEnvironmentError that names all required variables that are not set; return if there are none."""
        if self.missing:
            names = listed(list(self.missing)[:MOST_SHOWN], "and")
            are = f"variable {names} is" if len(self.missing) == 1 else f"variables {names} are"
            places = ", ".join(list(dict.fromkeys(self.missing.values()))[:MOST_SHOWN])
            message = f"can't be started: the {are} not set (used in {places}). Set what is missing"
            if any(place != "envRequired" for place in self.missing.values()):
                message += ', or write "unsetEnv": "empty" to let it be empty'
            raise ServerEnvironmentError(self.server.name, f"{message}.")

    def warnings(self) -> tuple[str, ...]:
        """One warning for each unset variable that is left empty, at most 20."""
        return tuple(
            f"Server {self.server.name!r}: the variable {name!r} is not set; {place!r} is left empty there."
            for name, place in list(self.unset.items())[:MOST_SHOWN]
        )

    def _look_up(self, name: str, place: str) -> str:
        """The value of a variable; if it is not set, empty, and noted in `missing` or, with `unsetEnv`, in `unset`."""
        if name in self.environ:
            return self._found(name)
        unset = self.unset if self.server.unset_env == "empty" else self.missing
        unset.setdefault(name, place)
        return ""

    def _found(self, name: str) -> str:
        """The value of a set variable; collects its secrets. ServerEnvironmentError above `MOST_CHARACTERS` in all."""
        value = self.environ[name]
        self.size += len(value)
        # This comes before approval: a short file must not expand to gigabytes.
        if self.size > MOST_CHARACTERS:
            problem = f"can't be started: its references give more than {MOST_CHARACTERS:,} characters."
            raise ServerEnvironmentError(self.server.name, problem)
        # The base environment is no secret: redacting the user's name or home would only garble messages.
        self.values.update(passwords_in(value) if is_base_name(name) else parts_of(value))
        return value


def _probable_secrets(values: list[tuple[str, str]]) -> Iterator[str]:
    """Yield the secrets in variables: all of a value whose name suggests one, else passwords and known tokens in it."""
    for name, value in values:
        yield from parts_of(value) if looks_secret(name) else secrets_in(value)


def _refuse_inputs(server: ServerConfig) -> None:
    """Raise ServerEnvironmentError for `${input:…}` and VS Code's variables in command, arguments or URL.

    Nothing is expanded there.
    """
    for place, text in (("command", server.command), ("url", server.url), *(("args", arg) for arg in server.args)):
        if text is not None and uses_input(text):
            problem = f"has an '${{input:…}}' in {place!r}, which only VS Code can ask for. Write the value itself."
            raise ServerEnvironmentError(server.name, problem)
        variable = editor_variable_in(text or "") if is_editors_file(server.origin.detail) else ""
        if variable:
            problem = f"has {variable!r} in {place!r}, where nothing is filled in."
            fix = "Write the path itself, or one that is relative to its 'cwd'."
            raise ServerEnvironmentError(server.name, f"{problem} {fix}")


def _refuse_unusable(server: ServerConfig, env: Mapping[str, str], headers: Mapping[str, str]) -> None:
    """Raise ServerEnvironmentError for a NUL character in a variable, or a header's value that can't be sent."""
    for name, value in env.items():
        if "\0" in value:
            raise ServerEnvironmentError(server.name, f"can't be started: {f'env.{name}'!r} has a NUL character.")
    for name, value in headers.items():
        fault = header_fault(value)
        if fault:
            raise ServerEnvironmentError(server.name, f"can't be reached: {f'headers.{name}'!r} {fault}")
