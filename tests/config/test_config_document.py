"""The pages on configuration: their examples load, their tables are those of the code."""

from __future__ import annotations

import json
import re
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from toolbridge.config.config import Config, load_config
from toolbridge.config.fields import ATTRIBUTE_OF_KEY, FIELDS
from toolbridge.config.json_schema import json_schema
from toolbridge.config.parse import LIMIT_OF_KEY
from toolbridge.config.read_file import PROJECT_FILES, plain_json
from toolbridge.config.references import is_base_name, resolve_environment
from toolbridge.config.server_config import RANGES, ServerLimits
from toolbridge.config.values import RESERVED_NAMES, name_for

DOCS = Path(__file__).parents[2] / "docs"
PAGES = ("configure-servers.md", "set-permissions.md")
GUIDE = "\n".join((DOCS / page).read_text(encoding="utf-8") for page in PAGES)
ENVIRON = {"PATH": "/bin", "HOME": "/home/me"}


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", GUIDE, re.MULTILINE | re.DOTALL)


def rows(header: str) -> list[list[str]]:
    table = GUIDE.split(f"\n{header}\n", 1)[1].split("\n\n", 1)[0]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()[1:]]


def load(directory: Path, text: str, name: str) -> Config:
    (directory / name).write_text(text, encoding="utf-8")
    return load_config(directory / name, environ=ENVIRON)


@pytest.mark.parametrize("index", range(len(blocks("json"))))
def test_every_json_example_loads_without_a_warning_and_fits_the_schema(tmp_path: Path, index: int) -> None:
    text = blocks("json")[index]
    assert load(tmp_path, text, "toolbridge.json").warnings == ()
    Draft202012Validator(json_schema()).validate(json.loads(text))  # pyright: ignore[reportUnknownMemberType]  # the stubs leave a type open


def test_the_example_with_comments_loads_as_vs_codes(tmp_path: Path) -> None:
    (text,) = blocks("jsonc")
    assert list(load(tmp_path, text, "mcp.jsonc").servers) == ["memory"]
    assert plain_json(text) != text


def test_the_example_of_references_gives_what_it_says(tmp_path: Path) -> None:
    (text,) = (block for block in blocks("json") if "DATABASE_URL" in block)
    server = load(tmp_path, text, "toolbridge.json").servers["database"]
    resolved = resolve_environment(server, {**ENVIRON, "DB_PASSWORD": "${pw}", "HTTPS_PROXY": "http://proxy"})
    assert dict(resolved.env) == {
        **ENVIRON,
        "DATABASE_URL": "postgres://app:${pw}@localhost/app",
        "TEMPLATE": "${left as it is}",
        "HTTPS_PROXY": "http://proxy",
    }


def test_the_python_example_runs() -> None:
    names: dict[str, Any] = {}
    exec(blocks("python")[0], names)
    assert list(names["config"].servers) == ["weather", "memory", "time", "github", "legacy"]


def test_every_key_of_a_server_is_in_the_table_with_its_transports() -> None:
    transports = {each.key: each.transports for each in FIELDS if each.key}
    found: set[str] = set()
    for keys, belongs_to, _meaning in rows("| key | for | meaning |"):
        names = re.findall(r"`(\w+)`", keys)
        found |= set(names)
        expected = transports.get(names[0], transports["enabled"])
        named = {"stdio", "http", "sse", "in_process"} if belongs_to == "all" else set(belongs_to.split(", "))
        assert named == expected, names
    assert found == set(ATTRIBUTE_OF_KEY)


def test_every_limit_is_in_the_table_with_its_default_and_range() -> None:
    defaults = {field.name: field.default for field in fields(ServerLimits)}
    written = {row[0].strip("`"): row[1:3] for row in rows("| key | default | range | meaning |")}
    assert written == {
        key: [f"{defaults[name]:,.0f}", f"{RANGES[name][0]:g} to {RANGES[name][1]:,.0f}"]
        for key, name in LIMIT_OF_KEY.items()
    }


def test_the_files_are_listed_in_their_order() -> None:
    assert ", ".join(f"`{name}`" for name in PROJECT_FILES) in " ".join(GUIDE.split())


def test_every_reserved_name_is_listed() -> None:
    assert [name for name in RESERVED_NAMES if f"`{name}`" not in GUIDE] == []


def test_names_are_mapped_as_it_says() -> None:
    pairs = re.findall(r"`([^`]+)` becomes `([^`]+)`", GUIDE)
    assert len(pairs) == 3
    assert [name_for(written) for written, _ in pairs] == [name for _, name in pairs]


def test_the_base_of_a_childs_environment_is_as_it_says() -> None:
    (sentence,) = re.findall(r"A child gets a small base \((.*?)\)", GUIDE, re.DOTALL)
    names = re.findall(r"`([A-Z_]+\*?)`", sentence)
    assert "LC_*" in names
    assert [
        name for name in names if not is_base_name(name.replace("LC_*", "LC_ALL").replace("XDG_*", "XDG_CACHE_HOME"))
    ] == []
