"""Reading the program that a command is to run."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import click

from toolbridge import Limits

if TYPE_CHECKING:
    from toolbridge.sandbox.dialect import SandboxLanguage

_LANGUAGES: dict[str, SandboxLanguage] = {
    ".js": "javascript",
    ".mjs": "javascript",
    ".cjs": "javascript",
    ".ts": "typescript",
    ".mts": "typescript",
    ".cts": "typescript",
    ".py": "python",
}


def language_of(path: str) -> SandboxLanguage | None:
    """The language that a file's name tells, if it tells one.

    Raises:
        click.ClickException: it is one that can't be run.
    """
    extension = os.path.splitext(path)[1].lower()
    if extension in (".tsx", ".jsx"):
        raise click.ClickException(f"{path}: JSX can't be run. Give a JavaScript, TypeScript or Python file.")
    return _LANGUAGES.get(extension)


def read_source(path: str, limits: Limits) -> str:
    """The text of a program: a file's, or standard input's for `-`.

    Raises:
        click.ClickException: there is no program; the message says why and what to do.
    """
    name = "Standard input" if path == "-" else path
    data = _read_bytes(path, name, limits.frame_bytes)
    if len(data) > limits.frame_bytes:
        most = limits.frame_bytes // 2**20
        raise click.ClickException(f"{name} is larger than {most} MiB, the most that a program may be.")
    try:
        source = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise click.ClickException(
            f"{name} is not UTF-8 text: byte 0x{data[error.start]:02x} in line {line}. Save it as UTF-8."
        ) from error
    if not source.strip():
        raise click.ClickException(f"{name} is empty: there is no program to run.")
    return source


def _read_bytes(path: str, name: str, most: int) -> bytes:
    """At most one byte more than allowed, so that a huge file costs nothing."""
    try:
        if path == "-":
            if sys.stdin is None:  # pyright: ignore[reportUnnecessaryComparison]
                raise click.ClickException("Standard input is closed: there is no program to run.")
            return sys.stdin.buffer.read(most + 1)
        with open(path, "rb") as file:
            return file.read(most + 1)
    except FileNotFoundError as error:
        raise click.ClickException(f"There is no file {name}.") from error
    except IsADirectoryError as error:
        raise click.ClickException(f"{name} is a directory: give a program's file.") from error
    except OSError as error:
        raise click.ClickException(f"{name} can't be read: {error.strerror or error}.") from error
