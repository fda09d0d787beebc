"""`toolbridge stubs`: the types that guest code is written against."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import click

from toolbridge.cli.exit_codes import FAILED, OK
from toolbridge.cli.server_options import (
    config_option,
    configured_server,
    connect_option,
    read_config,
    tell_problems,
    with_servers,
)
from toolbridge.cli.terminal import write
from toolbridge.trust.sanitise import for_error

if TYPE_CHECKING:
    from toolbridge import ServerManager, ServerStatus
    from toolbridge_codegen.catalog import Catalog
    from toolbridge_codegen.host_models import ModelKind
    from toolbridge_codegen.stubs import Language

_COMMENT = {"typescript": "//", "python": "#"}


@dataclass(frozen=True, slots=True)
class _Made:
    """What there is to print or write."""

    files: Mapping[str, str]
    facts: dict[str, Any]
    """For --json, besides the files."""
    problems: Sequence[str]
    """For people, one line each."""
    failed: bool = False


@click.command(
    "stubs",
    epilog="Exit codes: 0 written; 2 wrong usage; 4 the tools of a server are not known.",
)
@click.option("--language", type=click.Choice(["typescript", "python"]), help="Default: typescript.")
@click.option("--out", "directory", metavar="DIR", help="Write files into this directory instead of printing them.")
@click.option("--force", is_flag=True, help="With --out: write over files that toolbridge didn't write.")
@click.option(
    "--server", "servers", multiple=True, metavar="NAME", help="Only this server; with --from, what to call it."
)
@click.option("--compact", is_flag=True, help="One line per tool, for a prompt.")
@click.option(
    "--models",
    type=click.Choice(["pydantic", "dataclass", "typeddict", "msgspec"]),
    help="Classes for Python programs on the host instead of stubs for guest code.",
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
    file: str | None,
    config_file: str | None,
    connect: bool,
    as_json: bool,
) -> int:
    """Print or write the types of the tools: what guest code imports, as .d.ts or .pyi files.

    \b
    Example:  toolbridge stubs --from weather.json --language python --out stubs
    """
    if models is not None and (compact or language == "typescript"):
        raise click.UsageError("--models makes Python classes: it goes with neither --compact nor typescript.")
    catalog = _catalog_from_file(file, servers) if file else _catalog_from_configuration(config_file, servers, connect)
    language = "python" if models else language or "typescript"
    made = _models(catalog, models) if models else _stubs(catalog, language, compact=compact)
    written = _write(directory, made.files, force=force)
    if as_json:
        write(sys.stdout, json.dumps({**made.facts, "files": written}) + "\n")
    else:
        write(sys.stderr, "".join(f"{problem}\n" for problem in made.problems))
        write(sys.stdout, _joined(made.files, _COMMENT[language]) if directory is None else "\n".join([*written, ""]))
    return FAILED if made.failed else OK


def _catalog_from_configuration(config_file: str | None, servers: tuple[str, ...], connect: bool) -> Catalog:
    """The tools of the configured servers: as they were the last time, or as they are now for the approved."""
    from toolbridge_codegen.catalog import build_catalog

    config = read_config(config_file)
    for name in servers:
        configured_server(config, name)
    if not config.servers:
        raise click.ClickException(
            "No servers are configured. Configure one, or give a saved listing with --from FILE."
        )

    def look(manager: ServerManager, statuses: Sequence[ServerStatus]) -> Catalog:
        wanted = [status for status in statuses if status.name in (servers or config.servers)]
        for status in wanted:
            if status.tools is None:
                hint = f"connect once: `toolbridge approve {status.name}`, or with --connect once it is approved."
                write(sys.stderr, f"The tools of {status.name} are not known; {status.last_error or hint}\n")
        if connect:
            tell_problems(wanted)
        listings = [manager.exposed(status.name) for status in wanted]
        return build_catalog(listing for listing in listings if listing is not None)

    return with_servers(config, look, connect=(servers or None) if connect else (), config_file=config_file)


def _catalog_from_file(path: str, servers: tuple[str, ...]) -> Catalog:
    from toolbridge.cli.listing_file import read_listing
    from toolbridge_codegen.catalog import build_catalog

    if len(servers) > 1:
        raise click.UsageError("A file has the tools of one server: give --server once.")
    return build_catalog([read_listing(path, servers[0] if servers else None)])


def _stubs(catalog: Catalog, language: Language, *, compact: bool) -> _Made:
    from toolbridge_codegen.stubs import generate

    stubs = generate(catalog, language=language, detail="compact" if compact else "full")
    manifest = {
        specifier: {identifier: asdict(export) for identifier, export in exports.items()}
        for specifier, exports in stubs.manifest.items()
    }
    return _Made(
        files=stubs.files,
        facts={"manifest": manifest, "diagnostics": [asdict(each) for each in stubs.diagnostics]},
        problems=[
            f"{each.server}: {for_error(each.tool)} {for_error(each.path)}: {for_error(each.message)}"
            for each in stubs.diagnostics
        ],
    )


def _models(catalog: Catalog, kind: ModelKind) -> _Made:
    """A module of classes for each server; one that has none costs no other."""
    from toolbridge_codegen.build import build_module
    from toolbridge_codegen.host_models import ModelsError, host_models

    files: dict[str, str] = {}
    problems: list[str] = []
    for module in catalog.modules:
        model, _ = build_module(module)
        try:
            files[f"{module.python_module.rpartition('.')[2]}.py"] = host_models(model, kind)
        except ModelsError as error:
            problems.append(f"Error: {error}")
    return _Made(files, {"problems": problems}, problems, failed=bool(problems))


def _write(directory: str | None, files: Mapping[str, str], *, force: bool) -> Mapping[str, str] | list[str]:
    """The files themselves, or where they were written to."""
    if directory is None:
        return dict(files)
    from toolbridge.cli.stub_files import write_files

    return write_files(directory, files, force=force)


def _joined(files: Mapping[str, str], comment: str) -> str:
    """All files in one text, each below its name; the servers' own come first."""
    shown = [(name, text) for name, text in files.items() if text]
    if len(shown) == 1:
        return shown[0][1]
    return "".join(
        f"{comment} ---- {name}\n{text}" for name, text in sorted(shown, key=lambda each: "mcp" not in each[0])
    )
