"""Clients that others wrote drive `toolbridge serve`: the TypeScript SDK's, the inspector, the conformance suite."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from cli.projects import COMMAND, Project, weather
from serve.conformance import NOT_APPLICABLE, PASSED, scenarios_in_the_document
from serve.node_packages import client_modules, node

SCRIPT = Path(__file__).parent / "clients" / "typescript_client.mjs"


@pytest.fixture
def project(tmp_path: Path) -> Project:
    project = Project(tmp_path)
    project.configure({"weather": weather()})
    return project


@contextmanager
def served(project: Project) -> Generator[str]:
    """The project over HTTP; gives the URL."""
    process = project.start("serve", "--http", "--port", "0")
    try:
        assert process.stderr is not None
        line = process.stderr.readline()
        found = re.search(r"http://\S+", line)
        assert found, line
        yield found[0]
    finally:
        process.terminate()
        process.communicate(timeout=30)


def run_node(project: Project, *words: str, seconds: float = 90) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [node(), *words],
        cwd=project.directory,
        env=project.environ,
        capture_output=True,
        text=True,
        check=False,
        timeout=seconds,
    )


@pytest.mark.slow
@pytest.mark.parametrize(("era", "version"), [("auto", "2026-07-28"), ("legacy", "2025-11-25")])
def test_the_client_of_the_typescript_sdk_drives_it(project: Project, era: str, version: str) -> None:
    modules = str(client_modules())
    done = run_node(project, str(SCRIPT), modules, era, "stdio", *COMMAND, "serve")
    expected = {"version": version, "tools": 6, "hit": "get_forecast", "value": "Oslo", "asked": 1}
    assert json.loads(done.stdout) == expected, done.stderr
    with served(project) as url:
        done = run_node(project, str(SCRIPT), modules, era, "http", url)
    assert json.loads(done.stdout) == {**expected, "asked": 0}, done.stderr


@pytest.mark.slow
def test_the_inspector_drives_it(project: Project) -> None:
    inspector = str(client_modules() / ".bin" / "mcp-inspector")

    def inspect(*words: str) -> Any:
        done = run_node(project, inspector, "--cli", *COMMAND, "serve", *words)
        return json.JSONDecoder().raw_decode(done.stdout)[0]

    listed = inspect("--method", "tools/list")
    assert [tool["name"] for tool in listed["tools"]][:3] == ["search_tools", "describe", "run_code"]
    result = inspect("--method", "tools/call", "--tool-name", "run_code", "--tool-arg", "code=6 * 7")
    assert result["structuredContent"]["value"] == 42


# ---- the conformance suite


def test_the_document_lists_every_scenario_once() -> None:
    assert scenarios_in_the_document() == {**dict.fromkeys(PASSED, "passes"), **NOT_APPLICABLE}


@pytest.mark.slow
def test_every_scenario_of_the_suite_is_known(project: Project) -> None:
    suite = str(client_modules() / "@modelcontextprotocol" / "conformance" / "dist" / "index.js")
    done = run_node(project, suite, "list", "--server")
    named = set(re.findall(r"^\s+- (\S+)", done.stdout, re.MULTILINE))
    assert named == {*PASSED, *NOT_APPLICABLE}


@pytest.mark.slow
def test_every_applicable_scenario_passes(project: Project, tmp_path: Path) -> None:
    suite = str(client_modules() / "@modelcontextprotocol" / "conformance" / "dist" / "index.js")
    failed: dict[str, list[str]] = {}
    with served(project) as url:
        for scenario, exempt in PASSED.items():
            results = tmp_path / "results" / scenario
            words = ("server", "--url", url, "--scenario", scenario, "--timeout", "30000", "-o", str(results))
            run_node(project, suite, *words)
            (file,) = results.rglob("checks.json")
            checks = json.loads(file.read_text(encoding="utf-8"))
            wrong = [
                each["id"]
                for each in checks
                if each["status"] == "FAILURE"
                and each["id"] not in exempt
                and not each.get("details", {}).get("untestable")  # it calls a tool of the suite's own
            ]
            if wrong or not any(each["status"] == "SUCCESS" for each in checks):
                failed[scenario] = wrong
    assert failed == {}
