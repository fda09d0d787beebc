"""The variables that VS Code fills in by itself, in its own file: where the project is, and the user's home.

They are filled in when the file is read, in `env`, `headers` and `cwd`. Elsewhere nothing is ever filled in: what a
command is, is what the file says.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import cast

_VARIABLE = re.compile(r"(?<!\$)\$\{(workspaceFolder|workspaceFolderBasename|userHome|pathSeparator|/)\}")


def is_editors_file(path: str) -> bool:
    """Whether a file is one that VS Code reads itself."""
    return os.path.basename(os.path.dirname(path)) == ".vscode"


def editor_values(base: str, home: str | None) -> Mapping[str, str]:
    """What the variables stand for in the file of a project."""
    values = {"workspaceFolder": base, "workspaceFolderBasename": os.path.basename(base), "pathSeparator": os.sep}
    return {**values, "/": os.sep, **({"userHome": home} if home is not None else {})}


def filled_in(text: object, values: Mapping[str, str], *, has_references: bool) -> object:
    """A text with its variables filled in; where references are read later, none is made of a path. Else as it is."""
    if not isinstance(text, str):
        return text

    def replacement(match: re.Match[str]) -> str:
        value = values.get(match[1])
        if value is None:
            return match[0]
        return value.replace("${", "$${") if has_references else value

    return _VARIABLE.sub(replacement, text)


def all_filled_in(pairs: object, values: Mapping[str, str]) -> object:
    """The same for the values of `env` or `headers`."""
    if not isinstance(pairs, Mapping):
        return pairs
    given = cast("Mapping[object, object]", pairs)
    return {name: filled_in(text, values, has_references=True) for name, text in given.items()}


def editor_variable_in(text: str) -> str:
    """The first such variable in a text, as it is written; empty if there is none."""
    found = _VARIABLE.search(text)
    return found[0] if found else ""
