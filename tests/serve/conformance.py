"""The scenarios of the official conformance suite for servers: which apply to us, and why the others don't."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

_DOCUMENT = Path(__file__).parents[2] / "docs" / "serve-to-clients.md"

_OWN_TOOL = "calls a tool of the suite's own"
_NO_RESOURCES = "there are no resources"
_NO_PROMPTS = "there are no prompts"
_EXTENSION = "an extension that is not offered"

PASSED: Mapping[str, tuple[str, ...]] = {
    "server-initialize": (),
    "server-session-lifecycle": (),
    "server-stateless": (),
    "logging-set-level": (),
    "ping": (),
    "tools-list": (),
    "server-sse-multiple-streams": (),
    "dns-rebinding-protection": (),
    "http-header-validation": (),
    "caching": (
        # Of lists that are not offered.
        "sep-2549-prompts-list-caching-hints",
        "sep-2549-resources-list-caching-hints",
        "sep-2549-resources-templates-list-caching-hints",
    ),
    "input-required-result-unsupported-methods": (),
}
"""Scenario → its checks that don't apply."""

NOT_APPLICABLE: Mapping[str, str] = {
    "completion-complete": "there is nothing to complete",
    **dict.fromkeys(
        (
            "tools-call-simple-text",
            "tools-call-image",
            "tools-call-audio",
            "tools-call-embedded-resource",
            "tools-call-mixed-content",
            "tools-call-with-logging",
            "tools-call-error",
            "tools-call-with-progress",
            "tools-call-sampling",
            "tools-call-elicitation",
            "json-schema-2020-12",
            "elicitation-sep1034-defaults",
            "server-sse-polling",
            "elicitation-sep1330-enums",
            "http-custom-header-server-validation",
            "input-required-result-basic-elicitation",
            "input-required-result-basic-sampling",
            "input-required-result-basic-list-roots",
            "input-required-result-request-state",
            "input-required-result-multiple-input-requests",
            "input-required-result-multi-round",
            "input-required-result-missing-input-response",
            "input-required-result-result-type",
            "input-required-result-tampered-state",
            "input-required-result-capability-check",
            "input-required-result-ignore-extra-params",
            "input-required-result-validate-input",
        ),
        _OWN_TOOL,
    ),
    **dict.fromkeys(
        (
            "resources-list",
            "resources-read-text",
            "resources-read-binary",
            "resources-templates-read",
            "resources-subscribe",
            "resources-unsubscribe",
            "sep-2164-resource-not-found",
        ),
        _NO_RESOURCES,
    ),
    **dict.fromkeys(
        (
            "prompts-list",
            "prompts-get-simple",
            "prompts-get-with-args",
            "prompts-get-embedded-resource",
            "prompts-get-with-image",
            "input-required-result-non-tool-request",
        ),
        _NO_PROMPTS,
    ),
    **dict.fromkeys(
        (
            "sep-2640-skills-directory",
            "sep-2640-skills-enumeration",
            "sep-2640-skills-manifest",
            "tasks-lifecycle",
            "tasks-capability-negotiation",
            "tasks-wire-fields",
            "tasks-request-state-removal",
            "tasks-mrtr-input",
            "tasks-request-headers",
            "tasks-dispatch-and-envelope",
            "tasks-status-notifications",
            "tasks-required-task-error",
            "tasks-mrtr-composition",
        ),
        _EXTENSION,
    ),
}
"""Scenario → why it does not apply."""


def scenarios_in_the_document() -> dict[str, str]:
    """What docs/serve-to-clients.md says of each."""
    text = _DOCUMENT.read_text(encoding="utf-8").split("## Conformance")[1].split("\n## ")[0]
    rows = re.findall(r"^\| (`[^|]+) \| ([^|]+) \|$", text, re.MULTILINE)
    return {name: result.strip() for names, result in rows for name in re.findall(r"`([^`]+)`", names)}
