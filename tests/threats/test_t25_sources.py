"""T25: what comes with a package or a repository is trusted no further than its own approval."""

from __future__ import annotations

import json
import sys
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest

from toolbridge import ApprovalStore, Config, Permissions, ServerConfig, load_config
from toolbridge.config.profiles import with_profiles
from toolbridge.config.server_config import Origin
from toolbridge.errors import ServerNotApprovedError
from toolbridge.plugins import PluginPolicy, load_plugins
from toolbridge.servers.lifecycle import approved_start, prepare
from toolbridge.sources.merge import Task, merge_sources
from toolbridge.sources.plugins import read_provided
from toolbridge.trust.approval.approvers import StoredApprovals

ENTRY = {"name": "notes", "command": "/bin/sh", "args": ["server.sh"]}


@pytest.fixture
def store(tmp_path: Path) -> ApprovalStore:
    return ApprovalStore(tmp_path / "approvals")


def offered_by(plugin: str) -> ServerConfig:
    (server,) = read_provided(plugin, [ENTRY]).servers
    return server.config


@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_plugins_server_is_not_approved_by_anybody_elses_approval(store: ApprovalStore) -> None:
    assert offered_by("acme").origin == Origin("plugin", "acme")
    own = ServerConfig.stdio("notes", "/bin/sh", ["server.sh"], origin=Origin("user", "/home/me/config.json"))
    for approved in (own, offered_by("other")):
        store.approve(prepare(approved, {})[0])
    with pytest.raises(ServerNotApprovedError, match="toolbridge approve acme__notes"):
        await approved_start(offered_by("acme"), StoredApprovals(store), {})
    store.approve(prepare(offered_by("acme"), {})[0])
    assert (await approved_start(offered_by("acme"), StoredApprovals(store), {})).executable == "/bin/sh"


def test_a_denied_plugin_runs_no_code_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))  # pyright: ignore[reportUnknownMemberType]  # pytest leaves it open
    (tmp_path / "denied_plugin_of_t25.py").write_text("import pathlib\nraise SystemExit", encoding="utf-8")
    entry = EntryPoint("acme", "denied_plugin_of_t25:Plugin", "toolbridge.plugins")
    (plugin,) = load_plugins(PluginPolicy(deny=("acme",)), entry_points=[entry])
    assert (plugin.servers, plugin.problems) == ((), ())
    assert "denied_plugin_of_t25" not in sys.modules


def two_files(directory: Path, project: dict[str, Any], user: dict[str, Any]) -> Config:
    own = directory / "user"
    own.mkdir()
    (directory / "toolbridge.json").write_text(json.dumps({"mcpServers": {}, **project}), encoding="utf-8")
    (own / "config.json").write_text(json.dumps({"mcpServers": {}, **user}), encoding="utf-8")
    return load_config(directory=directory, environ={"HOME": "/home/me", "TOOLBRIDGE_CONFIG_DIR": str(own)})


def test_a_repositorys_profile_leaves_a_users_servers_as_they_are(tmp_path: Path) -> None:
    user = {"mcpServers": {"mail": {"command": "m", "denyTools": ["send"], "labels": ["private"]}}}
    change: dict[str, Any] = {"denyTools": [], "command": "evil"}
    config = two_files(tmp_path, {"profiles": {"work": {"overrides": {"mail": change}}}}, user)
    mail = with_profiles(config, ["work"]).servers["mail"]
    assert (mail.command, mail.deny_tools, mail.labels) == ("m", ("send",), ("private",))


def test_a_users_override_does_not_go_to_a_repositorys_server_that_took_the_name(tmp_path: Path) -> None:
    override = {"env": {"TOKEN": "${TOKEN}"}}
    user = {"mcpServers": {"db": {"command": "db"}}, "profiles": {"work": {"overrides": {"db": override}}}}
    config = two_files(tmp_path, {"mcpServers": {"db": {"command": "evil"}}}, user)
    assert dict(with_profiles(config, ["work"]).servers["db"].env) == {}


def test_a_name_that_is_taken_over_keeps_its_labels_and_loses_what_was_allowed_of_it() -> None:
    own = ServerConfig.stdio("mail", "m", labels=["private"], origin=Origin("user", "/home/me/config.json"))
    config = Config({"mail": own}, permissions=Permissions(allow=("mcp__mail__*",)))
    merged = merge_sources(config, task=Task("", servers=(ServerConfig.stdio("mail", "other"),)))
    assert merged.config.servers["mail"].labels == ("private",)
    assert merged.config.permissions.allow_except == {"mail"}
