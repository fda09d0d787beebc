"""T35, secrets on disk: what toolbridge writes holds references and names, never values, and is for this user alone."""

from __future__ import annotations

import json
import os
import stat
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest

from threats.planted_secrets import FIXTURES, found_in, found_under, json_lines, plain_secret, secret
from toolbridge import AuditLog, Config, ServerConfig, load_config, open_runtime
from toolbridge.servers.auth.tokens import Credentials, TokenStore
from toolbridge.servers.lifecycle import prepare
from toolbridge.trust.approval.approvers import StoredApprovals
from toolbridge.trust.approval.store import ApprovalStore

NAME = "planted"
SPECIAL, PLAIN = secret(NAME), plain_secret(NAME)
PLANTED = {"special": SPECIAL, "plain": PLAIN}
PYTHON = sys.executable


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user whose every directory is here."""
    for name in ("CONFIG", "STATE", "CACHE"):
        monkeypatch.setenv(f"TOOLBRIDGE_{name}_DIR", str(tmp_path / name.lower()))
    monkeypatch.setenv("PLANTED", SPECIAL)
    monkeypatch.setenv("PLANTED_PLAIN", PLAIN)
    return tmp_path


# ---- approvals

SERVERS: dict[str, ServerConfig] = {
    "a value of env": ServerConfig.stdio("one", PYTHON, env={"TOKEN": SPECIAL}),
    "a value of env with an innocent name": ServerConfig.stdio("one", PYTHON, env={"COLOUR": SPECIAL}),
    "a value with a reference in it": ServerConfig.stdio("one", PYTHON, env={"TOKEN": f"${{PLANTED}}{PLAIN}"}),
    "a reference": ServerConfig.stdio("one", PYTHON, env={"TOKEN": "${PLANTED}"}),
    "a variable that is passed on": ServerConfig.stdio("one", PYTHON, env_required=["PLANTED"]),
    "all variables": ServerConfig.stdio("one", PYTHON, inherit_env=True),
    "an option": ServerConfig.stdio("one", PYTHON, ["--api-key", PLAIN]),
    "an option with an equals sign": ServerConfig.stdio("one", PYTHON, [f"--token={SPECIAL}"]),
    "a short pair": ServerConfig.stdio("one", PYTHON, [f"PASSWORD={SPECIAL}"]),
    "a password in a URL of an argument": ServerConfig.stdio("one", PYTHON, [f"postgres://me:{PLAIN}@db/x"]),
    "a parameter of a URL of an argument": ServerConfig.stdio("one", PYTHON, [f"https://x.example/?key={PLAIN}"]),
    "a header": ServerConfig.http("one", "https://x.example/mcp", headers={"Authorization": f"Bearer {PLAIN}"}),
    "a header with an innocent name": ServerConfig.http("one", "https://x.example/mcp", headers={"X-Colour": PLAIN}),
    "a reference in a header": ServerConfig.http("one", "https://x.example", headers={"X-Key": "${PLANTED_PLAIN}"}),
    "a parameter of the URL": ServerConfig.http("one", f"https://x.example/mcp?api_key={PLAIN}"),
    "a parameter with an innocent name": ServerConfig.http("one", f"https://x.example/mcp?colour={PLAIN}"),
}


@pytest.mark.parametrize("where", SERVERS)
def test_an_approval_keeps_no_value(home: Path, where: str) -> None:
    server = SERVERS[where]
    store = ApprovalStore()
    request, _ = prepare(server, os.environ)
    store.approve(request)
    store.set_enabled(server, True)
    assert store.answer(request).standing == "approved"
    assert found_under(home, PLANTED) == []
    store.revoke("one")
    assert found_under(home, PLANTED) == []
    kept = Path(store.path).read_text("utf-8")
    if where == "a reference":
        assert "${PLANTED}" in kept, "what was approved can be named by its reference"


@pytest.mark.parametrize("where", [name for name in SERVERS if "all variables" not in name])
def test_a_change_of_the_value_is_noticed_although_it_is_not_kept(home: Path, where: str) -> None:
    """Where the value itself is configured; the value of a variable that is referred to may change."""
    server = SERVERS[where]
    is_reference = ("reference" in where and "in it" not in where) or "passed on" in where
    before, _ = prepare(server, os.environ)
    fields: dict[str, Any] = {
        "args": tuple(each.replace(NAME, "another") for each in server.args),
        "env": {name: value.replace(NAME, "another") for name, value in server.env.items()},
        "headers": {name: value.replace(NAME, "another") for name, value in server.headers.items()},
        "url": server.url and server.url.replace(NAME, "another"),
    }
    environ = {name: value.replace(NAME, "another") for name, value in os.environ.items() if "TOOLBRIDGE" not in name}
    after, _ = prepare(server if is_reference else replace(server, **fields), environ)
    assert (before.digest == after.digest) == is_reference


# ---- everything else that is written

LEAKY = {"command": PYTHON, "args": ["-S", "-E", str(FIXTURES / "leaking_secrets.py")]}


def use_everything(home: Path) -> None:
    """A server that repeats its secret is listed, pinned, called and recorded; stubs are made and kept."""
    (home / "toolbridge.json").write_text(
        json.dumps({"mcpServers": {"leaky": {**LEAKY, "env": {"LEAK_TOKEN": "${PLANTED_PLAIN}"}}}}), "utf-8"
    )
    config: Config = load_config(directory=home)
    store = ApprovalStore()
    store.approve(prepare(config.servers["leaky"], os.environ)[0])

    async def main() -> None:
        with AuditLog(home / "audit.jsonl", arguments=True) as log:
            async with open_runtime(config, approver=StoredApprovals(store), observers=[log]) as runtime:
                result = await runtime.run(
                    f'const leaky = require("host:mcp-leaky"); leaky.echo({{ text: {json.dumps(PLAIN)} }}); '
                    'leaky.faulty({ text: "text" })'
                )
                assert result.failure is None
                listing = runtime.servers.listing("leaky")
                assert listing is not None
                await runtime.servers.accept_tools("leaky", listing)
                for language in ("typescript", "python"):
                    assert runtime.stubs(language)

    anyio.run(main)


def test_listings_lock_stubs_and_journal_hold_no_value(home: Path) -> None:
    use_everything(home)
    assert found_under(home, PLANTED) == []
    files = {path.name for path in home.rglob("*") if path.is_file()}
    assert {"toolbridge.lock", "audit.jsonl", "approved-mcp.json", "tool-decisions.json"} <= files
    assert list((home / "cache" / "listings").iterdir())
    assert list((home / "cache" / "stubs").rglob("*"))
    (started,) = (
        line for line in json_lines(home / "audit.jsonl") if line["event"] == "call_started" and line["tool"] == "echo"
    )
    assert "***" in str(started["arguments"])


@pytest.mark.skipif(os.name != "posix", reason="modes are POSIX's")
def test_what_is_written_for_this_user_is_for_this_user_alone(home: Path) -> None:
    before = os.umask(0)
    try:
        use_everything(home)
        anyio.run(keep_a_sign_in)
    finally:
        os.umask(before)
    private = [
        home / "state" / "approvals",
        home / "state" / "tokens",
        home / "cache" / "listings",
        home / "audit.jsonl",
    ]
    for path in private:
        assert path.exists(), path
        for each in (path, *path.rglob("*")):
            mode = stat.S_IMODE(each.stat().st_mode)
            assert mode & 0o077 == 0, f"{each} has mode {mode:o}"


async def keep_a_sign_in() -> None:
    store = TokenStore(use_keyring=False)
    await store.save("web", "https://x.example", Credentials(tokens={"access_token": PLAIN}))


def test_a_sign_in_is_kept_in_its_own_place_and_shown_nowhere(home: Path) -> None:
    """The one value that has to be kept: where there is no keyring, in a file that only this user can read."""
    anyio.run(keep_a_sign_in)
    places = {found.where for found in found_under(home, PLANTED)}
    assert len(places) == 1
    assert next(iter(places)).startswith("state/tokens/")
    credentials = anyio.run(TokenStore(use_keyring=False).load, "web", "https://x.example")
    assert credentials is not None
    assert found_in(repr(credentials) + str(credentials), "repr", PLANTED) == []


def test_the_merged_configuration_in_memory_holds_references(home: Path) -> None:
    """It can be shown, compared and pickled: values are put in only when a server is started."""
    document = {"mcpServers": {"one": {"command": PYTHON, "env": {"TOKEN": "${PLANTED}"}}}}
    (home / "toolbridge.json").write_text(json.dumps(document), "utf-8")
    server = load_config(directory=home).servers["one"]
    assert dict(server.env) == {"TOKEN": "${PLANTED}"}
    request, environment = prepare(server, os.environ)
    assert environment.env["TOKEN"] == SPECIAL
    for shown in (repr(server), repr(request), repr(environment), str(request.server.env)):
        assert found_in(shown, "repr", PLANTED) == []
