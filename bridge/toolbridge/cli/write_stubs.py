"""`toolbridge stubs`: type stubs for guest code, or classes for host programs."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from toolbridge.cli import FAILED, OK
from toolbridge.cli.server_options import (
    config_option,
    configured_server,
    connect_option,
    read_config,
    tell_problems,
    unknown_words,
    with_servers,
)
from toolbridge.cli.terminal import write, write_error_object
from toolbridge.files import cache_directory
from toolbridge.trust.sanitise import for_error

if TYPE_CHECKING:
    from toolbridge import Config, ServerManager, ServerStatus
    from toolbridge_codegen.catalog import Catalog, Reading, ServerListing
    from toolbridge_codegen.host_models import ModelKind
    from toolbridge_codegen.model import Diagnostic
    from toolbridge_codegen.stubs import Errors, Language


# Writing files into a directory: never outside it, and never over foreign files.


RECORD = ".toolbridge-stubs.json"
"""In the directory: the files written there, with the hash of each."""


def write_files(directory: str, files: Mapping[str, str], *, force: bool) -> list[str]:
    """Write files below a directory, which is created if missing, with a record of their hashes; returns their paths.

    Checks everything before it writes; refuses files that it didn't write itself, unless `force`.

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
    """Refuse to write a file outside the directory, over a directory or, without `force`, over foreign content.

    Raises:
        click.ClickException: one of these.
        OSError: the file can't be read.
    """
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
    """Read the hashes of the files written before; empty if unreadable, which makes every file a foreign one."""
    try:
        record = json.loads((root / RECORD).read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    if not isinstance(record, dict):
        return {}
    return {name: text for name, text in cast("dict[str, object]", record).items() if isinstance(text, str)}


def _replace(path: Path, text: str) -> None:
    """Write a file atomically, and create its directories; a link in its place is replaced, not followed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=".toolbridge-")
    try:
        with open(descriptor, "wb") as file:
            file.write(text.encode())
        os.chmod(temporary, 0o644)  # readable for editors and checkers
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


_COMMENT = {"typescript": "//", "python": "#"}


@dataclass(frozen=True, slots=True)
class _Made:
    """Generated files, ready to print or write."""

    files: Mapping[str, str]
    facts: dict[str, Any]
    """Further members of the JSON object."""
    problems: Sequence[str]
    """One line each, to print."""
    failed: bool = False


@click.command(
    "stubs",
    epilog="Exit codes: 0 written; 2 wrong usage; 4 the tools of a server are not known.",
)
@click.option("--language", type=click.Choice(["typescript", "python"]), help="Default: typescript.")
@click.option("--out", "directory", metavar="DIR", help="Write files into this directory; by default, print them.")
@click.option("--force", is_flag=True, help="With --out: overwrite files that toolbridge didn't write.")
@click.option("--server", "servers", multiple=True, metavar="NAME", help="Only this server; with --from, its name.")
@click.option("--compact", is_flag=True, help="One line per tool, for a prompt.")
@click.option(
    "--models",
    type=click.Choice(["pydantic", "dataclass", "typeddict", "msgspec"]),
    help="Classes for Python programs on the host instead of stubs for guest code.",
)
@click.option(
    "--reading",
    type=click.Choice(["intended", "literal"]),
    help="Whether objects have only the properties that they list. Default: as configured, else intended.",
)
@click.option(
    "--errors",
    type=click.Choice(["raise", "return"]),
    help="Whether failed calls raise or return their error. Default: as configured, else raise.",
)
@click.option(
    "--output-schemas",
    "schemas_file",
    metavar="FILE",
    help='With --from: schemas of results, {"TOOL": SCHEMA}, for tools that have none.',
)
@click.option("--from", "file", metavar="FILE", help='A saved answer to tools/list, or "-" for standard input.')
@config_option
@connect_option
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object: files, manifest, diagnostics.")
def command(
    *,
    language: Language | None,
    directory: str | None,
    force: bool,
    servers: tuple[str, ...],
    compact: bool,
    models: ModelKind | None,
    reading: Reading | None,
    errors: Errors | None,
    schemas_file: str | None,
    file: str | None,
    config_file: str | None,
    connect: bool,
    as_json: bool,
) -> int:
    """Print or write type stubs of the tools that guest code imports, as .d.ts or .pyi files.

    \b
    Example:  toolbridge stubs --from weather.json --language python --out stubs
    """
    from toolbridge_codegen.catalog import build_catalog

    if models is not None and (compact or language == "typescript"):
        raise click.UsageError("--models makes Python classes: it goes with neither --compact nor typescript.")
    if models is not None and errors is not None:
        raise click.UsageError("--models makes classes, not functions: --errors changes nothing there.")
    if schemas_file is not None and file is None:
        raise click.UsageError('--output-schemas goes with --from; write "outputSchemas" into the configuration.')
    if file:
        listings = _from_file(file, servers, schemas_file)
    else:
        config = read_config(config_file, named=servers)
        errors = errors or config.errors
        listings, unknown = _from_configuration(config, config_file, servers, connect)
        if not any(listing.tools for listing in listings):
            return _refused([*unknown, "No tool of these servers can be used, so there are no stubs."], as_json=as_json)
        write(sys.stderr, "".join(f"{line}\n" for line in unknown))
    catalog = build_catalog(replace(each, reading=reading or each.reading) for each in listings)
    language = "python" if models else language or "typescript"
    made = _models(catalog, models) if models else _stubs(catalog, language, errors or "raise", compact=compact)
    written = _write(directory, made.files, force=force)
    if as_json:
        write(sys.stdout, json.dumps({**made.facts, "files": written}) + "\n")
    else:
        write(sys.stderr, "".join(f"{problem}\n" for problem in made.problems))
        write(sys.stdout, _joined(made.files, _COMMENT[language]) if directory is None else "\n".join([*written, ""]))
    return FAILED if made.failed else OK


def _refused(lines: Sequence[str], *, as_json: bool) -> int:
    """Print why there are no stubs; returns the exit code."""
    if as_json:
        write_error_object("unknown_tools", " ".join(lines))
    else:
        write(sys.stderr, "".join(f"{line}\n" for line in lines))
    return FAILED


def _from_configuration(
    config: Config, config_file: str | None, servers: tuple[str, ...], connect: bool
) -> tuple[list[ServerListing], list[str]]:
    """The listings of configured servers, last known or, with `connect`, current; and lines on unknown ones.

    Prints problems of the servers.

    Raises:
        click.ClickException: no servers are configured, or there is no such server.
    """
    for name in servers:
        configured_server(config, name)
    if not config.servers:
        raise click.ClickException(
            "No servers are configured. Configure one, or give a saved listing with --from FILE."
        )

    def look(manager: ServerManager, statuses: Sequence[ServerStatus]) -> tuple[list[ServerListing], list[str]]:
        """The listings of wanted servers, and lines on unknown ones; prints problems."""
        wanted = [status for status in statuses if status.name in (servers or config.servers)]
        tell_problems(wanted)
        listings = [manager.exposed(status.name) for status in wanted]
        return [listing for listing in listings if listing is not None], unknown_words(wanted)

    return with_servers(config, look, connect=(servers or None) if connect else (), config_file=config_file)


def _from_file(path: str, servers: tuple[str, ...], schemas_file: str | None) -> list[ServerListing]:
    """Read a saved listing, and schemas of results for it; ClickException or ConfigError if one is unusable."""
    from toolbridge.cli.audit import read_listing
    from toolbridge.config.fields import from_file, output_schemas
    from toolbridge_codegen.catalog import ServerListing

    if len(servers) > 1:
        raise click.UsageError("A file has the tools of one server: give --server once.")
    listing = read_listing(path, servers[0] if servers else None)
    schemas = output_schemas(from_file(schemas_file or {}, "--output-schemas", os.path.abspath), "--output-schemas")
    return [ServerListing(listing.server, listing.tools, instructions=listing.instructions, output_schemas=schemas)]


def _stubs(catalog: Catalog, language: Language, errors: Errors, *, compact: bool) -> _Made:
    """Generate stubs for guest code, cached in the user's cache directory."""
    from toolbridge_codegen.cache import StubCache
    from toolbridge_codegen.stubs import generate

    cache = StubCache(os.path.join(cache_directory(), "stubs"))  # the same as a runtime's
    stubs = generate(catalog, language=language, detail="compact" if compact else "full", errors=errors, cache=cache)
    manifest = {
        specifier: {identifier: asdict(export) for identifier, export in exports.items()}
        for specifier, exports in stubs.manifest.items()
    }
    return _Made(
        files=stubs.files,
        facts={"manifest": manifest, "diagnostics": [asdict(each) for each in stubs.diagnostics]},
        problems=_lines(stubs.diagnostics),
    )


def _models(catalog: Catalog, kind: ModelKind) -> _Made:
    """Generate a module of classes for each server; one that fails becomes a problem, the others stay."""
    from toolbridge_codegen.derive.tools import build_module
    from toolbridge_codegen.host_models import ModelsError, host_models

    files: dict[str, str] = {}
    problems: list[str] = []
    diagnostics: list[Diagnostic] = []
    for module in catalog.modules:
        model, of_module = build_module(module)
        diagnostics += of_module
        try:
            files[f"{module.python_module.rpartition('.')[2]}.py"] = host_models(model, kind)
        except ModelsError as error:
            problems.append(f"Error: {error}")
    facts = {"problems": problems, "diagnostics": [asdict(each) for each in diagnostics]}
    return _Made(files, facts, [*_lines(diagnostics), *problems], failed=bool(problems))


def _lines(diagnostics: Sequence[Diagnostic]) -> list[str]:
    """Diagnostics as text, one line each, foreign parts sanitised."""
    return [
        f"{each.server}: {for_error(each.tool)} {for_error(each.path)}: {for_error(each.message)}"
        for each in diagnostics
    ]


def _write(directory: str | None, files: Mapping[str, str], *, force: bool) -> Mapping[str, str] | list[str]:
    """Write the files if there is a directory, and return their paths; else return the files."""
    if directory is None:
        return dict(files)

    return write_files(directory, files, force=force)


def _joined(files: Mapping[str, str], comment: str) -> str:
    """Join all files, each below a comment with its name, the servers' own first; a single file has no comment."""
    shown = [(name, text) for name, text in files.items() if text]
    if len(shown) == 1:
        return shown[0][1]
    return "".join(
        f"{comment} ---- {name}\n{text}" for name, text in sorted(shown, key=lambda each: "mcp" not in each[0])
    )
