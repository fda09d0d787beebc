"""The official conformance suite judges toolbridge as a client, by the scenarios that need no sign-in and no person."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from serve.node_packages import client_modules, node

CLIENT = Path(__file__).parent / "conformance_client.py"
SCENARIOS = (
    "initialize",
    "tools_call",
    "sse-retry",
    "request-metadata",
    "http-standard-headers",
    "http-custom-headers",
    "http-invalid-tool-headers",
    "json-schema-ref-no-deref",
)


@pytest.mark.slow
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_every_check_of_a_client_scenario_passes(scenario: str, tmp_path: Path) -> None:
    suite = str(client_modules() / "@modelcontextprotocol" / "conformance" / "dist" / "index.js")
    command = f"{sys.executable} {CLIENT}"
    words = ["client", "--command", command, "--scenario", scenario, "--timeout", "60000", "-o", str(tmp_path)]
    done = subprocess.run([node(), suite, *words], capture_output=True, text=True, check=False, timeout=120)
    checks = [each for file in tmp_path.rglob("checks.json") for each in json.loads(file.read_text(encoding="utf-8"))]
    assert [each["id"] for each in checks if each["status"] == "FAILURE"] == [], done.stdout + done.stderr
    assert any(each["status"] == "SUCCESS" for each in checks), done.stdout + done.stderr
