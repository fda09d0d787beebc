"""Stubs of every schema of our own, hostile or odd, pass the strictest type checkers."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from codegen import checkers, corpus
from codegen.stub_syntax import undeclared_names
from toolbridge_codegen.catalog import ServerListing, build_catalog
from toolbridge_codegen.stubs import StubSet, generate


@cache
def stub_sets() -> tuple[StubSet, StubSet]:
    catalog = build_catalog(corpus.corpus_listings())
    return generate(catalog, language="typescript"), generate(catalog, language="python")


def all_files() -> Mapping[str, str]:
    typescript, python = stub_sets()
    return {**files_that_return_errors(), **typescript.files, **python.files}


def files_that_return_errors() -> Mapping[str, str]:
    """The schemas that are most like real ones once more, with results that may be failures."""
    usual = next(listing for listing in corpus.corpus_listings() if listing.server == "spellings")
    catalog = build_catalog([replace(usual, server="returned")])
    return {
        name: text
        for language in ("typescript", "python")
        for name, text in generate(catalog, language=language, errors="return").files.items()
    }


@pytest.fixture(scope="module")
def verdicts(tmp_path_factory: pytest.TempPathFactory) -> checkers.Verdicts:
    return checkers.check(tmp_path_factory.mktemp("corpus"), all_files())


def test_the_corpus_is_as_large_as_promised() -> None:
    schemas = sum(len(corpus.schema_cases(file)) for file in corpus.SCHEMA_FILES)
    assert schemas >= 300
    assert len(corpus.text_cases("texts")) + len(corpus.text_cases("names")) >= 300


@pytest.mark.parametrize("checker", ["tsc", "pyright", "mypy"])
def test_every_stub_of_the_corpus_is_accepted(verdicts: checkers.Verdicts, checker: str) -> None:
    problems = getattr(verdicts, checker)
    assert not problems, f"{len(problems)} problems:\n" + "\n".join(map(str, problems[:20]))


def test_every_python_stub_parses() -> None:
    for name, text in stub_sets()[1].files.items():
        ast.parse(text, name)


def test_every_name_in_a_python_stub_is_declared_there() -> None:
    for name, text in all_files().items():
        if name.endswith(".pyi"):
            assert not undeclared_names(text), name


def test_no_tool_is_dropped_and_none_is_added() -> None:
    catalog = build_catalog(corpus.corpus_listings())
    for stubs in stub_sets():
        for module in catalog.modules:
            exports = {tool.identifier: (tool.server, tool.name) for tool in module.tools}
            said = stubs.manifest[module.specifier]
            assert {name: (export.server, export.tool) for name, export in said.items()} == exports


@pytest.mark.parametrize("listing", corpus.corpus_listings(), ids=lambda listing: listing.server)
def test_each_tool_has_a_stub_without_its_neighbours_too(listing: ServerListing) -> None:
    """One that raises alone would be hidden in a crowd that shares its types."""
    for tool in listing.tools:
        catalog = build_catalog([ServerListing(server=listing.server, tools=(tool,))])
        for language in ("typescript", "python"):
            files = generate(catalog, language=language).files
            assert any(catalog.tools[0].identifier in text for text in files.values())
            assert not [name for name, text in files.items() if name.endswith(".pyi") and undeclared_names(text)]


@pytest.mark.parametrize("case", ["remote_https", "remote_file", "remote_relative", "missing_definition", "alias_loop"])
def test_unknown_types_are_reported_with_tool_and_path(case: str) -> None:
    for stubs in stub_sets():
        found = [item for item in stubs.diagnostics if (item.server, item.tool) == ("references", case)]
        paths = {item.path for item in found}
        assert "/inputSchema/properties/a" in {path.removesuffix("/$ref") for path in paths}, found
        assert all(item.message for item in found)


def test_compact_stubs_have_one_line_for_each_tool() -> None:
    catalog = build_catalog(corpus.corpus_listings())
    for language in ("typescript", "python"):
        files = generate(catalog, language=language, detail="compact").files
        lines = [line for text in files.values() for line in text.splitlines()]
        for tool in catalog.tools:
            assert sum(f"{tool.identifier}(" in line for line in lines) >= 1, tool.identifier
        assert len(lines) <= len(catalog.tools) + 10 * len(catalog.modules)


def test_stubs_are_written_below_their_directory_only() -> None:
    for name in all_files():
        path = Path(name)
        assert not path.is_absolute()
        assert ".." not in path.parts
