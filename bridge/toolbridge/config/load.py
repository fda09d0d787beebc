"""`load_config`: from the files of a project and of a user to one frozen configuration."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import partial
from types import NoneType
from typing import TypeAlias

from toolbridge.config.config import Config
from toolbridge.config.locate import Candidate, home_directory, locate
from toolbridge.config.merge import merge_files
from toolbridge.config.parse import ParsedFile, parse_file
from toolbridge.config.read_file import read_object
from toolbridge.errors import ConfigError, MisuseError

ConfigSource: TypeAlias = Config | str | os.PathLike[str] | None
"""A configuration made in code, the path of its file, or None to look for one."""


def load_config(
    file: str | os.PathLike[str] | None = None,
    *,
    directory: str | os.PathLike[str] | None = None,
    environ: Mapping[str, str] | None = None,
) -> Config:
    """Read the configuration: of `file` alone, or of the project in `directory` and of the user.

    Nothing is started, reached or looked up: references stay references. Without any file, there are no servers.
    If any of the files has `"gateway": false`, that is all that is read of them.

    Raises:
        ConfigError: a file can't be read or used; names the file, the server and the field.
    """
    environ = os.environ if environ is None else environ
    home = home_directory(environ)
    found = locate(file, directory=_current() if directory is None else directory, environ=environ)
    used = [candidate for candidate in found if candidate.used]
    documents = _documents(used)
    for candidate, document in documents:
        if isinstance(document, dict) and document.get("gateway") is False:
            return Config(gateway=False, files=(candidate.path,))
    parsed: list[ParsedFile] = []
    for candidate, document in documents:
        if isinstance(document, ConfigError):
            raise document
        parsed.append(parse_file(document, candidate, home))
    return merge_files(parsed)


def config_reader(source: ConfigSource) -> Callable[[], Config]:
    """Gives the same configuration at every call, as it is then: of a file, what it says then.

    The current directory may change in between. A Config is taken as it is.

    Raises:
        ConfigError: the current directory is gone.
        MisuseError: it is something else.
    """
    if isinstance(source, Config):
        return lambda: source
    if not isinstance(source, (str, os.PathLike, NoneType)):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise MisuseError("config", source, "a Config, the path of a file, or None to look for one")
    return partial(load_config, source, directory=_current())


def _documents(used: list[Candidate]) -> list[tuple[Candidate, dict[str, object] | ConfigError]]:
    """Every file as JSON, or what is wrong with it: one that is broken must not keep another's switch from working."""
    documents: list[tuple[Candidate, dict[str, object] | ConfigError]] = []
    for candidate in used:
        try:
            documents.append((candidate, read_object(candidate.path)))
        except ConfigError as problem:
            documents.append((candidate, problem))
    return documents


def _current() -> str:
    try:
        return os.getcwd()
    except OSError:
        raise ConfigError("the current directory is gone.", fix="Change to one that exists.") from None
