"""Writing stubs into a directory: nothing outside it, and nothing over a file that somebody else wrote."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import cast

import click

RECORD = ".toolbridge-stubs.json"
"""In the directory: which files were written here, and a hash of each as it was written."""


def write_files(directory: str, files: Mapping[str, str], *, force: bool) -> list[str]:
    """Write files below a directory, which is made if need be, and give their paths.

    Everything is checked before anything is written.

    Raises:
        click.ClickException: a file is in the way, or can't be written.
    """
    root = Path(directory)
    try:
        root.mkdir(parents=True, exist_ok=True)
        record = _read_record(root)
        for name, text in files.items():
            _check(root, name, text, record, force=force)
        for name, text in files.items():
            _replace(root / name, text)
        _replace(root / RECORD, json.dumps({**record, **{name: _hash(text) for name, text in files.items()}}, indent=1))
    except OSError as error:
        raise click.ClickException(f"{directory} can't be written: {error.strerror or error}.") from error
    return [str(root / name) for name in files]


def _check(root: Path, name: str, text: str, record: Mapping[str, str], *, force: bool) -> None:
    path = root / name
    if not path.parent.resolve().is_relative_to(root.resolve()):
        raise click.ClickException(f"{path} is not below {root}: a link leads out of it.")
    if path.is_dir():
        raise click.ClickException(f"{path} is a directory.")
    if force or not os.path.lexists(path):
        return
    found = None if path.is_symlink() else path.read_bytes()
    if found is None or hashlib.sha256(found).hexdigest() not in (record.get(name), _hash(text)):
        raise click.ClickException(f"{path} was not written by toolbridge, or was changed. --force writes over it.")


def _read_record(root: Path) -> dict[str, str]:
    """What was written here before. A record that can't be read makes every file somebody else's."""
    try:
        record = json.loads((root / RECORD).read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    if not isinstance(record, dict):
        return {}
    return {name: text for name, text in cast("dict[str, object]", record).items() if isinstance(text, str)}


def _replace(path: Path, text: str) -> None:
    """Put a whole file in place; a link there is replaced, not followed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=".toolbridge-")
    try:
        with open(descriptor, "wb") as file:
            file.write(text.encode())
        os.chmod(temporary, 0o644)  # stubs are for editors and checkers to read
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
