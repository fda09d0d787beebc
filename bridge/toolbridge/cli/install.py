"""`toolbridge install`: add `toolbridge serve` to a client's configuration; `completion`, `config-schema`."""

from __future__ import annotations

import json
import os
import shutil
import sys
import tomllib
from typing import Any

import click

from toolbridge.cli import FAILED, OK
from toolbridge.cli.client_files import BY_NAME, CLIENTS, KnownClient, user_path
from toolbridge.cli.terminal import write

# `toolbridge completion`: commands and options completed by the shell.


_VARIABLE = "_TOOLBRIDGE_COMPLETE"


@click.command("completion", epilog="Exit codes: 0 printed; 2 wrong usage.")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> int:
    """Print a script for SHELL that completes commands, options and the names of servers.

    \b
    Examples:  toolbridge completion bash >> ~/.bashrc
               toolbridge completion zsh >> ~/.zshrc
               toolbridge completion fish > ~/.config/fish/completions/toolbridge.fish
    """
    from click.shell_completion import get_completion_class

    from toolbridge.cli.commands import toolbridge

    kind = get_completion_class(shell)
    assert kind is not None  # it is one of the choices
    completer = kind(toolbridge, {}, "toolbridge", _VARIABLE)
    # Not `source()`: for bash, it runs the shell to check its version, and the shell may be missing.
    write(sys.stdout, completer.source_template % completer.source_vars() + "\n")
    return OK


@click.command("config-schema", epilog="Exit codes: 0 printed; 2 wrong usage.")
def config_schema() -> int:
    """Print the JSON Schema of a configuration file, for editors.

    \b
    Example:  toolbridge config-schema > config.schema.json
    """
    from toolbridge.config.json_schema import json_schema

    write(sys.stdout, json.dumps(json_schema(), indent=2) + "\n")
    return OK


@click.command(
    "install",
    epilog="Exit codes: 0 installed or printed; 2 wrong usage; 4 the file can't be edited safely.",
)
@click.argument("client", type=click.Choice([client.name for client in CLIENTS]), required=False)
@click.option("--config", "config_file", metavar="FILE", help="Serve the servers of this file.")
@click.option("--print", "only_print", is_flag=True, help="Print the entry and the file's path; change nothing.")
@click.option("--project", is_flag=True, help="Edit the project's file in this directory, not the user's own.")
@click.option("--name", default="toolbridge", show_default=True, help="Name of the entry.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object, and change nothing.")
def install(
    client: str | None, config_file: str | None, *, only_print: bool, project: bool, name: str, as_json: bool
) -> int:
    """Add `toolbridge serve` to the configuration of CLIENT, or list the known clients.

    All else in the file stays, comments included, and a backup is made beside it. A file that can't be edited safely is
    left alone, and the entry is printed.

    \b
    Examples:  toolbridge install
               toolbridge install claude-code
               toolbridge install vscode --print
    """
    if client is None and as_json:
        each_client = [{"client": each.name, "file": user_path(each, os.environ)} for each in CLIENTS]
        write(sys.stdout, json.dumps({"clients": each_client}, indent=2) + "\n")
        return OK
    if client is None:
        lines = [f"  {each.name.ljust(16)}{user_path(each, os.environ) or '-'}" for each in CLIENTS]
        write(sys.stdout, "Known clients, and their files:\n" + "\n".join(lines) + "\n")
        return OK
    if config_file is not None and not os.path.isfile(config_file):
        raise click.ClickException(f"There is no file {config_file}.")
    known = BY_NAME[client]
    path = _path(known, project=project)
    entry = serve_entry(known, config_file, project=project)
    if as_json:
        facts = {"client": client, "file": path, "key": known.key, "name": name, "entry": entry}
        write(sys.stdout, json.dumps(facts, indent=2, ensure_ascii=False) + "\n")
        return OK
    if only_print:
        write(sys.stdout, f"{known.title}: {path}\n\n{snippet(known, name, entry)}\n")
        return OK
    return _install(known, path, name, entry)


def _install(known: KnownClient, path: str, name: str, entry: dict[str, Any]) -> int:
    """Add the entry to a client's file, with a backup; the exit code. Unchanged if it has the same entry.

    A file that can't be edited safely is left alone, and the text to write is printed.
    """
    from toolbridge.cli.client_files import SpliceError, read_text, write_text

    try:
        before = read_text(path)
        if _present(known, before or "").get(name) == entry:
            write(sys.stdout, f"{known.title} has it already: {path}\n")
            return OK
        after = _changed(known, before or "", name, entry)
        copy = write_text(path, after, before=before)
    except (OSError, UnicodeError, SpliceError, ValueError) as error:
        write(sys.stderr, f"{path} was left as it is: {error}. Write this into it:\n\n{snippet(known, name, entry)}\n")
        return FAILED
    kept = f" What it was is in {copy}." if copy else ""
    write(sys.stdout, f"Wrote {path}.{kept} {known.restart}".rstrip() + "\n")
    return OK


def serve_entry(known: KnownClient, config_file: str | None, *, project: bool = False) -> dict[str, Any]:
    """Build the entry that starts `toolbridge serve`; nothing is written.

    In a user's file paths are absolute: a client starts its servers from anywhere. A `project`'s file is shared, and
    its servers start in the project: paths within the repository are relative, if possible.
    """
    found = shutil.which("toolbridge")
    program = os.path.abspath(found or os.path.join(os.path.dirname(sys.executable), "toolbridge"))
    args = ["serve"]
    chosen = config_file or _project_config()
    if chosen is not None:
        args += ["--config", _portable(os.path.abspath(chosen)) if project else os.path.abspath(chosen)]
    if project:
        program = _portable(program) if _is_inside(program) or not found else "toolbridge"
    entry: dict[str, Any] = {"command": program, "args": args}
    return {"type": "stdio", **entry} if known.names_transport else entry


def _is_inside(path: str, directory: str = os.curdir) -> bool:
    return not os.path.relpath(path, directory).startswith(os.pardir)


def _portable(path: str) -> str:
    """A path in this directory's repository relative to the directory; any other as it is."""
    return os.path.relpath(path) if _is_inside(path, _repository()) else path


def _repository() -> str:
    """The root of the repository that contains the current directory; without one, the directory itself."""
    place = here = os.getcwd()
    while not os.path.exists(os.path.join(place, ".git")):
        place, below = os.path.dirname(place), place
        if place == below:
            return here
    return place


def snippet(known: KnownClient, name: str, entry: dict[str, Any]) -> str:
    """The text to add to a client's file by hand, in its format."""
    if known.form == "toml":
        return _toml(known, name, entry).strip()
    return json.dumps({known.key: {name: entry}}, indent=2, ensure_ascii=False)


def _project_config() -> str | None:
    """The path of the project's configuration file, if this directory has one."""
    from toolbridge.config.read_file import locate

    for candidate in locate(None, directory=os.getcwd(), environ=os.environ):
        if candidate.used and candidate.origin == "project":
            return candidate.path
    return None


def _path(known: KnownClient, *, project: bool) -> str:
    """The path of the file to edit, existing or not; UsageError if the client has none."""
    if project:
        if known.project_file is None:
            raise click.UsageError(f"{known.title} has no file for a project.")
        return os.path.join(os.getcwd(), *known.project_file.split("/"))
    path = user_path(known, os.environ)
    if path is None:
        raise click.UsageError(f"There is no place for a file of {known.title} here.")
    return path


def _present(known: KnownClient, text: str) -> dict[str, Any]:
    """The servers in a client's file by name; ValueError or SpliceError if it is malformed."""
    from toolbridge.cli.client_files import read_json

    document = tomllib.loads(text) if known.form == "toml" else read_json(text)
    servers: Any = document.get(known.key)
    return servers if isinstance(servers, dict) else {}  # pyright: ignore[reportUnknownVariableType]


def _changed(known: KnownClient, text: str, name: str, entry: dict[str, Any]) -> str:
    """Insert the entry into the text of a client's file; all else stays.

    Raises:
        ValueError, SpliceError: the name is taken, or the text can't be edited safely.
    """
    from toolbridge.cli.client_files import with_member

    if known.form != "toml":
        return with_member(text, known.key, name, entry)
    before = tomllib.loads(text)
    if name in before.get(known.key, {}):
        raise ValueError(f"it has {name!r} already")
    changed = (text if not text or text.endswith("\n") else text + "\n") + _toml(known, name, entry)
    if tomllib.loads(changed) != {**before, known.key: {**before.get(known.key, {}), name: entry}}:
        raise ValueError("it can't be changed safely")
    return changed


def _toml(known: KnownClient, name: str, entry: dict[str, Any]) -> str:
    """A TOML table for the entry; JSON's strings and arrays of strings are valid TOML."""
    lines = [f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in entry.items()]
    return "\n".join(["", f"[{known.key}.{json.dumps(name)}]", *lines, ""])
