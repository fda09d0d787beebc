"""SECURITY: the one place where references become values, just before a server is started or reached.

A value goes from here into the child's environment or a request header. Nothing here puts one into a message.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from toolbridge.config.base_environment import base_environment, is_base_name
from toolbridge.config.editor_variables import editor_variable_in, is_editors_file
from toolbridge.config.references import UnknownReferenceError, expand, uses_input
from toolbridge.config.remote_values import header_fault
from toolbridge.config.secret_arguments import secrets_of_arguments
from toolbridge.config.secret_values import (
    looks_secret,
    maskable,
    parts_of,
    passwords_in,
    secrets_in,
    secrets_of_header,
    secrets_of_url,
)
from toolbridge.config.server_config import ServerConfig
from toolbridge.config.wording import listed
from toolbridge.errors import ServerEnvironmentError

MOST_CHARACTERS = 1_000_000
"""What all references of a server may give together; no system starts a process with more."""
MOST_SHOWN = 20


@dataclass(frozen=True, slots=True, repr=False)
class ResolvedEnvironment:
    """What a server gets: the complete environment of its process, or the headers of every request to it."""

    env: Mapping[str, str]
    headers: Mapping[str, str]
    secrets: frozenset[str]
    """Values that are masked wherever they turn up."""
    warnings: tuple[str, ...] = ()
    client_secret: str | None = None
    """OAuth's, with its reference resolved."""

    def __repr__(self) -> str:
        """Names only."""
        return (
            f"ResolvedEnvironment(env={sorted(self.env)!r}, headers={sorted(self.headers)!r}, "
            f"{len(self.secrets)} secrets, warnings={list(self.warnings)!r})"
        )


def resolve_environment(server: ServerConfig, environ: Mapping[str, str]) -> ResolvedEnvironment:
    """Resolve a server's references and make its environment.

    Raises:
        ServerEnvironmentError: a variable that it needs is not set, or a value can't be used. Names it, never shows it.
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
    """The references of one server: what they gave, and which led nowhere."""

    server: ServerConfig
    environ: Mapping[str, str]
    values: set[str] = field(default_factory=set[str])
    size: int = 0
    unset: dict[str, str] = field(default_factory=dict[str, str])
    """Variables that are not set and may be empty, and where each is first used."""
    missing: dict[str, str] = field(default_factory=dict[str, str])
    """Variables that are not set and have to be."""

    def resolve(self, text: str, place: str) -> str:
        try:
            return expand(text, lambda name: self._look_up(name, place))
        except UnknownReferenceError as error:
            shown = error.name
        why = "only VS Code can ask for" if shown.startswith("${input:") else "is no reference"
        fix = "Write ${VAR} for the variable VAR, or $${ for the characters themselves."
        raise ServerEnvironmentError(self.server.name, f"has {shown!r} in {place!r}, which {why}. {fix}")

    def require(self, name: str) -> str:
        if name not in self.environ:
            self.missing.setdefault(name, "envRequired")
            return ""
        return self._found(name)

    def refuse_missing(self) -> None:
        if self.missing:
            names = listed(list(self.missing)[:MOST_SHOWN], "and")
            are = f"variable {names} is" if len(self.missing) == 1 else f"variables {names} are"
            places = ", ".join(list(dict.fromkeys(self.missing.values()))[:MOST_SHOWN])
            message = f"can't be started: the {are} not set (used in {places}). Set what is missing"
            if any(place != "envRequired" for place in self.missing.values()):
                message += ', or write "unsetEnv": "empty" to let it be empty'
            raise ServerEnvironmentError(self.server.name, f"{message}.")

    def warnings(self) -> tuple[str, ...]:
        return tuple(
            f"Server {self.server.name!r}: the variable {name!r} is not set; {place!r} is left empty there."
            for name, place in list(self.unset.items())[:MOST_SHOWN]
        )

    def _look_up(self, name: str, place: str) -> str:
        if name in self.environ:
            return self._found(name)
        unset = self.unset if self.server.unset_env == "empty" else self.missing
        unset.setdefault(name, place)
        return ""

    def _found(self, name: str) -> str:
        value = self.environ[name]
        self.size += len(value)
        # This comes before approval: a short file must not become gigabytes by naming a long variable many times.
        if self.size > MOST_CHARACTERS:
            problem = f"can't be started: its references give more than {MOST_CHARACTERS:,} characters."
            raise ServerEnvironmentError(self.server.name, problem)
        # What every child gets is no secret: masking the user's name or home would only garble messages.
        self.values.update(passwords_in(value) if is_base_name(name) else parts_of(value))
        return value


def _probable_secrets(values: list[tuple[str, str]]) -> Iterator[str]:
    for name, value in values:
        yield from parts_of(value) if looks_secret(name) else secrets_in(value)


def _refuse_inputs(server: ServerConfig) -> None:
    """Elsewhere than in `env` and `headers` a reference is plain text, but this one would be a hole in the command."""
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
    for name, value in env.items():
        if "\0" in value:
            raise ServerEnvironmentError(server.name, f"can't be started: {f'env.{name}'!r} has a NUL character.")
    for name, value in headers.items():
        fault = header_fault(value)
        if fault:
            raise ServerEnvironmentError(server.name, f"can't be reached: {f'headers.{name}'!r} {fault}")
