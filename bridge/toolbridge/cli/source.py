"""Reading the program that a command is to run."""

from __future__ import annotations

import os
import sys

import click

from toolbridge import Limits

_LANGUAGES_TO_COME = {".ts": "TypeScript", ".mts": "TypeScript", ".tsx": "TypeScript", ".py": "Python"}


def read_source(path: str, limits: Limits) -> str:
    """The text of a program: a file's, or standard input's for `-`.

    Raises:
        click.ClickException: there is no program; the message says why and what to do.
    """
    name = "Standard input" if path == "-" else path
    language = _LANGUAGES_TO_COME.get(os.path.splitext(path)[1].lower())
    if language is not None:
        raise click.ClickException(f"{name}: {language} programs can't be run by this version. Give a JavaScript file.")
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
