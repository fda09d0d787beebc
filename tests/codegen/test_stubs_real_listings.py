"""Stubs of real servers pass the strictest checkers, and have every tool."""

from __future__ import annotations

import ast
from functools import cache

import pytest

from codegen import checkers, corpus
from toolbridge_codegen.catalog import Catalog, build_catalog
from toolbridge_codegen.stubs import StubSet, generate


@cache
def catalog() -> Catalog:
    return build_catalog(real.listing for real in corpus.real_listings())


@cache
def stub_sets() -> tuple[StubSet, StubSet]:
    return generate(catalog(), language="typescript"), generate(catalog(), language="python")


@pytest.fixture(scope="module")
def verdicts(tmp_path_factory: pytest.TempPathFactory) -> checkers.Verdicts:
    typescript, python = stub_sets()
    return checkers.check(tmp_path_factory.mktemp("real"), {**typescript.files, **python.files})


@pytest.mark.parametrize("checker", ["tsc", "pyright", "mypy"])
def test_every_stub_of_a_real_server_is_accepted(verdicts: checkers.Verdicts, checker: str) -> None:
    problems = getattr(verdicts, checker)
    assert not problems, f"{len(problems)} problems:\n" + "\n".join(map(str, problems[:20]))


def test_every_tool_of_a_real_server_has_a_function_in_both_languages() -> None:
    typescript, python = stub_sets()
    for module in catalog().modules:
        text = typescript.files[f"mcp-{module.server}.d.ts"]
        functions = {
            node.name
            for node in ast.parse(python.files[f"{module.python_module.replace('.', '/')}/__init__.pyi"]).body
            if isinstance(node, ast.FunctionDef)
        }
        for tool in module.tools:
            assert f"export function {tool.identifier}(" in text
            assert tool.identifier in functions


def test_real_servers_give_few_diagnostics() -> None:
    """What real servers write is what the generator must know: unknown types are for the hostile and the odd."""
    tools = len(catalog().tools)
    for stubs in stub_sets():
        affected = {(item.server, item.tool) for item in stubs.diagnostics}
        assert len(affected) <= tools * 0.05, sorted(affected)
