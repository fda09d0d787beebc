"""What the documents say is so: README's blocks run, tables and command help match the code."""

from __future__ import annotations

import contextlib
import dataclasses
import io
import re
from pathlib import Path

import anyio
import pytest

from toolbridge import Limits, Sandbox

ROOT = Path(__file__).parents[1]


def blocks(path: str, language: str) -> list[str]:
    text = (ROOT / path).read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def test_the_readme_example_gives_what_it_says() -> None:
    offer, use, _embedding = blocks("README.md", "python")
    (program,) = blocks("README.md", "javascript")
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(offer + use, {"program": program})
    promised = [line[2:] for line in use.splitlines() if line.startswith("# ")]
    assert printed.getvalue().splitlines() == promised


def test_the_readme_embedding_example_runs() -> None:
    names: dict[str, object] = {}
    exec(blocks("README.md", "python")[2], names)
    anyio.run(names["main"])  # pyright: ignore[reportArgumentType]


def test_the_failure_in_the_javascript_guide_is_the_one_a_model_gets() -> None:
    guide = (ROOT / "docs/JAVASCRIPT.md").read_text(encoding="utf-8")
    program = 'import * as demo from "host:demo";\nconst city = "Oslo";\ndemo.temprature(city)'
    failure = Sandbox({"host:demo": {"temperature": len}}).run_sync(program).failure
    shown = "\n".join(f"    {line}" for line in str(failure).splitlines())
    assert shown in guide


@pytest.mark.parametrize("field", dataclasses.fields(Limits), ids=lambda field: field.name)
def test_the_javascript_guide_has_every_limit_with_its_default(field: dataclasses.Field[object]) -> None:
    guide = (ROOT / "docs/JAVASCRIPT.md").read_text(encoding="utf-8")
    row = re.search(rf"^\| `{field.name}`[^|]*\| ([^|]*) \|", guide, re.MULTILINE)
    assert row is not None
    default = field.default
    assert isinstance(default, int | float)
    expected = f"{default // 2**20} MiB" if field.name.endswith("_bytes") else f"{default:,g}"
    assert row[1] == expected


@pytest.mark.parametrize("path", ["README.md", "docs/JAVASCRIPT.md", ".github/CONTRIBUTING.md", ".github/SECURITY.md"])
def test_links_and_paths_in_a_document_exist(path: str) -> None:
    text = (ROOT / path).read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#]+)", text):
        if not target.startswith("http"):
            assert ((ROOT / path).parent / target).exists(), target
    for target in re.findall(r"`((?:bridge|guest|docs|tests|fixtures|bench)/[\w./-]*)`", text):
        assert (ROOT / target).exists(), target


def test_every_dependency_has_its_line() -> None:
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    required = [*project["project"]["dependencies"], *project["dependency-groups"]["dev"]]
    table = (ROOT / "docs/DEPENDENCIES.md").read_text(encoding="utf-8")
    for requirement in required:
        name = re.split(r"[=<>!~\[ ]", requirement)[0]
        assert re.search(rf"^\|[^|]*\b{re.escape(name)}\b", table, re.MULTILINE), name
