"""The table of sizes in docs/serve-to-clients.md is what is measured, and within what was promised."""

from __future__ import annotations

import re

import pytest

from serve import sizes
from toolbridge.serve.http import HttpLimits
from toolbridge.serve.run_code import SessionLimits
from toolbridge.serve.service import ServeOptions

NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")


def test_a_client_is_shown_at_most_a_twentieth() -> None:
    for each in sizes.measured():
        assert each.tools >= 60
        assert each.share <= 0.05, each.row()


def test_the_table_is_what_is_measured_now() -> None:
    said, made = sizes.written(), sizes.table()
    advice = f"renew it with: {sizes._HOW}"
    assert NUMBER.sub("#", said) == NUMBER.sub("#", made), advice
    for old, new in zip(NUMBER.findall(said), NUMBER.findall(made), strict=True):
        assert float(old.replace(",", "")) == pytest.approx(float(new.replace(",", "")), rel=0.03, abs=0.11), advice


def test_the_document_has_the_limits_as_they_are() -> None:
    limits, sessions, options = HttpLimits(), SessionLimits(), ServeOptions()
    document = " ".join((sizes.DOCS / "serve-to-clients.md").read_text(encoding="utf-8").split())
    assert (
        f"{limits.body_bytes // 2**20} MiB and {limits.body_seconds:g} seconds for a body, "
        f"{limits.header_seconds:g} seconds for headers, "
        f"{limits.send_seconds:g} seconds for a client that does not read its response, "
        f"{limits.requests} requests at a time, "
        f"{options.runs_at_once} programs at a time (others wait), {limits.clients:,} clients"
    ) in document
    assert (
        f"{sessions.of_client} of one client and {sessions.total} in all (`--sessions`), "
        f"of {sessions.memory_bytes // 2**20} MiB each; one idle for {sessions.idle_seconds / 60:g} minutes"
    ) in document
