"""Writing to a file that is somebody else's: whole or not at all, with a copy of what it was."""

from __future__ import annotations

import os
import shutil
import tempfile

BACKUP = ".before-toolbridge"


def read_text(path: str) -> str | None:
    """The text of a file, exactly; None if there is none.

    Raises:
        OSError, UnicodeError: it can't be read.
    """
    try:
        with open(path, encoding="utf-8", newline="") as file:
            return file.read()
    except FileNotFoundError:
        return None


def write_text(path: str, text: str, *, before: str | None, mode: int = 0o600) -> str | None:
    """Replace a file's text if it is still what it was; gives the path of the copy that was made of it.

    A link stays a link: what it points to is replaced. Permissions stay; a new file is only its owner's.

    Raises:
        OSError: it can't be written, or somebody else changed it meanwhile.
    """
    real = os.path.realpath(path)
    os.makedirs(os.path.dirname(real), exist_ok=True)
    if read_text(real) != before:
        raise OSError(f"{path} was changed by somebody else meanwhile")
    copy = None
    if before is not None:
        mode = os.stat(real).st_mode & 0o7777
        copy = _free_name(real + BACKUP)
        shutil.copy2(real, copy)
    descriptor, temporary = tempfile.mkstemp(dir=os.path.dirname(real), prefix=".toolbridge-")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8", newline="") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, mode)
        os.replace(temporary, real)
    except BaseException:
        os.unlink(temporary)
        raise
    return copy


def _free_name(path: str) -> str:
    number = 1
    candidate = path
    while os.path.lexists(candidate):
        number += 1
        candidate = f"{path}-{number}"
    return candidate
