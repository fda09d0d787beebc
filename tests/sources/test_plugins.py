"""Plugins: what they offer is registered under their own name; what they do wrong costs nobody else anything."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Sequence

import anyio
import anyio.to_thread
import pytest

from growth import patience
from sources.installed import Installed
from toolbridge import Config
from toolbridge.approval import Origin
from toolbridge.composition import CurrentServers
from toolbridge.errors import ConfigError
from toolbridge.plugins import PluginPolicy, load_plugins
from toolbridge.sources.merge import Task
from toolbridge.sources.plugins import Plugin, plugins_of

NOTES = '[{"name": "notes", "package": "@acme/notes", "keywords": ["shared notes"], "capabilities": ["files"]}]'


def loaded(installed: Installed, policy: PluginPolicy | None = None, *, seconds: float = 20.0) -> dict[str, Plugin]:
    plugins = load_plugins(policy, seconds=seconds, entry_points=installed.entry_points)
    return {plugin.name: plugin for plugin in plugins}


def problems_of(plugin: Plugin) -> str:
    return "; ".join(f"{name}: {problem}" for name, problem in plugin.problems)


def test_a_plugins_server_has_its_name_its_origin_and_the_documented_defaults(installed: Installed) -> None:
    installed.offering("acme", NOTES)
    (server,) = loaded(installed)["acme"].servers
    assert server.config.name == "acme__notes"
    assert server.config.origin == Origin("plugin", "acme")
    assert (server.config.transport, server.config.command, server.config.args) == (
        "stdio",
        "npx",
        ("-y", "@acme/notes"),
    )
    assert (server.name, server.keywords, server.capabilities) == ("notes", ("shared notes",), ("files",))


def test_every_field_can_be_given(installed: Installed) -> None:
    installed.offering(
        "acme",
        '[{"name": "db", "package": "x", "command": "uvx", "args": ["mcp-db", "--ro"], "env_required": ["DB_URL"]}]',
    )
    (server,) = loaded(installed)["acme"].servers
    assert (server.config.command, server.config.args) == ("uvx", ("mcp-db", "--ro"))
    assert server.config.env_required == ("DB_URL",)


def test_a_plugin_may_be_a_module_an_object_or_a_class(installed: Installed) -> None:
    installed.add("module", f"@hookimpl\ndef provide_mcp_servers():\n    return {NOTES}\n", target="")
    installed.add(
        "object",
        f"class P:\n    @hookimpl\n    def provide_mcp_servers(self):\n        return {NOTES}\nplugin = P()\n",
        target="plugin",
    )
    found = loaded(installed)
    assert [each.config.name for plugin in found.values() for each in plugin.servers] == [
        "module__notes",
        "object__notes",
    ]


def test_two_plugins_may_both_offer_db(installed: Installed) -> None:
    installed.offering("acme", '[{"name": "db", "package": "a"}]')
    installed.offering("beta", '[{"name": "db", "package": "b"}]')
    found = loaded(installed)
    assert [found[name].servers[0].config.name for name in ("acme", "beta")] == ["acme__db", "beta__db"]


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("raise ValueError('broken \\x1b[31m')", "it raised ValueError: broken"),
        ("import sys; sys.exit(3)", "it raised SystemExit"),
        ("raise KeyboardInterrupt", "it raised KeyboardInterrupt"),
        ("import a_module_that_is_not_there", "it raised ModuleNotFoundError"),
        ("class Plugin:\n    @hookimpl\n    def provide_mcp_servers(self): raise SystemExit", "it raised SystemExit"),
        ("class Plugin:\n    def __init__(self): raise RuntimeError('no')", "it raised RuntimeError: no"),
        (
            "class Plugin:\n    def provide_mcp_servers(self): return []",
            "broken: it has no hook provide_mcp_servers: mark",
        ),
        ("class Plugin:\n    @hookimpl\n    def provide_mcp_servers(self, more): return []", "it raised"),
        ("Other = 3", "it raised AttributeError"),
    ],
)
def test_a_plugin_that_fails_is_skipped_and_the_rest_works(
    installed: Installed, caplog: pytest.LogCaptureFixture, source: str, words: str
) -> None:
    installed.add("broken", source)
    installed.offering("good", NOTES)
    with caplog.at_level(logging.WARNING, "toolbridge"):
        found = loaded(installed)
    assert found["broken"].servers == ()
    assert words in problems_of(found["broken"])
    assert "\x1b" not in problems_of(found["broken"])
    assert "Plugin 'broken'" in caplog.text
    assert len(found["good"].servers) == 1


@pytest.mark.parametrize(
    "source",
    [
        "import time; time.sleep(60)",
        "import time\nclass Plugin:\n    @hookimpl\n    def provide_mcp_servers(self): time.sleep(60)",
    ],
)
def test_a_plugin_that_hangs_is_left_behind(installed: Installed, source: str) -> None:
    installed.add("stuck", source)
    installed.add("stuck-too", "import time; time.sleep(60)")
    began = time.monotonic()
    found = loaded(installed, seconds=0.5)
    assert time.monotonic() - began < patience(5)  # both at the same time, and neither to its end
    assert "within 0.5 s" in problems_of(found["stuck"])


def test_who_waits_is_told_for_which_plugins_and_not_for_those_that_were_late_before(
    installed: Installed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("toolbridge.sources.plugins.NOTICE_SECONDS", 0.3)
    installed.add("stuck", "import time; time.sleep(60)")
    installed.offering("good", NOTES)
    told: list[Sequence[str]] = []
    for _ in range(2):
        load_plugins(seconds=0.6, entry_points=installed.entry_points, on_wait=told.append)
    assert told == [("stuck",)]


def threads_of(plugin: str) -> int:
    return sum(thread.name == f"toolbridge-plugin-{plugin}" for thread in threading.enumerate())


def test_a_plugin_that_hangs_is_waited_for_once_and_heard_when_it_is_through(
    installed: Installed, monkeypatch: pytest.MonkeyPatch
) -> None:
    release = threading.Event()
    monkeypatch.setattr(threading, "released_for_test", release.wait, raising=False)
    hook = f"class Plugin:\n    @hookimpl\n    def provide_mcp_servers(self): return {NOTES}"
    installed.add("late", f"import threading; threading.released_for_test(60)\n{hook}")
    installed.offering("good", NOTES)
    try:
        assert "within 0.5 s" in problems_of(loaded(installed, seconds=0.5)["late"])
        began = time.monotonic()
        for _ in range(3):
            found = loaded(installed, seconds=60)
            assert "it did not answer" in problems_of(found["late"])
            assert len(found["good"].servers) == 1
        assert time.monotonic() - began < patience(5)
        assert threads_of("late") == 1
    finally:
        release.set()
    next(thread for thread in threading.enumerate() if thread.name == "toolbridge-plugin-late").join()
    assert len(loaded(installed)["late"].servers) == 1


def test_a_plugin_that_answers_is_asked_anew_each_time(installed: Installed) -> None:
    installed.add(
        "acme",
        """
        from itertools import count
        numbers = count()
        class Plugin:
            @hookimpl
            def provide_mcp_servers(self):
                return [{"name": f"s{next(numbers)}", "package": "x"}]
        """,
    )
    assert [loaded(installed)["acme"].servers[0].name for _ in range(2)] == ["s0", "s1"]


def test_only_the_plugins_of_servers_that_are_named_are_asked(installed: Installed) -> None:
    asked, other = installed.offering("my-acme", NOTES), installed.offering("other", NOTES)
    only = plugins_of(["my-acme__notes", "weather", "nowhere__x"])
    (plugin,) = load_plugins(only=only, seconds=20, entry_points=installed.entry_points)
    assert plugin.servers[0].config.name == "my-acme__notes"
    assert (installed.was_imported(asked), installed.was_imported(other)) == (True, False)


@pytest.mark.parametrize(
    ("returned", "words"),
    [
        ("3", "it returned a number, not a list"),
        ("'npx'", "it returned text, not a list"),
        ("{'name': 'db'}", "it returned an object, not a list"),
        ("(x for x in [])", "it returned a value of type generator"),
        ("[3]", "expected a dict, found a number"),
        ("[None]", "expected a dict, found null"),
        ("[{}]", "a server needs a name"),
        ("[{'name': 'a__b', 'package': 'x'}]", "contains '__'"),
        ("[{'name': 'Bad Name', 'package': 'x'}]", "can't be the name of a plugin's server"),
        ("[{'name': 'x' * 70, 'package': 'x'}]", "can't be the name of a plugin's server"),
        ("[{'name': 'db'}]", "has neither 'package' nor 'command'"),
        ("[{'name': 'db', 'package': '--registry=evil'}]", "expected the name of a package"),
        ("[{'name': 'db', 'package': 'x', 'args': 'all'}]", "args"),
        ("[{'name': 'db', 'package': 'x', 'args': [1]}]", "args[0]"),
        ("[{'name': 'db', 'command': ''}]", "command"),
        ("[{'name': 'db', 'package': 'x', 'keywords': ['', 'a']}]", "keywords"),
        ("[{'name': 'db', 'package': 'x', 'keywords': 'db'}]", "keywords"),
        ("[{'name': 'db', 'package': 'x', 'keywords': ['k'] * 101}]", "at most 100"),
        ("[{'name': 'db', 'package': 'x', 'capabilities': ['c' * 201]}]", "capabilities"),
        ("[{'name': 'db', 'package': 'x', 'env_required': ['A=B']}]", "env_required"),
        ("[{'name': 'db', 'package': 'x', 'autoApprove': True}]", "unknown key"),
        ("[{'name': 'db', 'package': 'x', 'env': {'A': 'secret'}}]", "unknown key"),
        ("[{1: 2, 'name': 'db', 'package': 'x'}]", "unknown key"),
    ],
)
def test_a_server_that_is_none_costs_itself_only(installed: Installed, returned: str, words: str) -> None:
    installed.add(
        "acme",
        f"""
        class Plugin:
            @hookimpl
            def provide_mcp_servers(self):
                found = {returned}
                return found + [{{"name": "good", "package": "g"}}] if isinstance(found, list) else found
        """,
    )
    plugin = loaded(installed)["acme"]
    assert words in problems_of(plugin)
    assert [each.name for each in plugin.servers] == (["good"] if returned.startswith("[") else [])


def test_nothing_may_be_offered(installed: Installed) -> None:
    installed.offering("acme", "None")
    assert loaded(installed)["acme"] == Plugin("acme")


def test_of_a_thousand_servers_fifty_are_taken_and_the_message_says_so(installed: Installed) -> None:
    installed.offering("acme", "[{'name': f's{n}', 'package': 'x'} for n in range(1000)]")
    plugin = loaded(installed)["acme"]
    assert len(plugin.servers) == 50
    assert problems_of(plugin) == (
        "s50: its plugin provides 1,000 servers, and 50 may be: this and what follows, 950 in all, are left out"
    )


def test_a_name_twice_in_one_plugin_is_told(installed: Installed) -> None:
    installed.offering("acme", "[{'name': 'db', 'package': 'x'}, {'name': 'db', 'package': 'y'}]")
    plugin = loaded(installed)["acme"]
    assert [each.config.args for each in plugin.servers] == [("-y", "x")]
    assert "another server 'db'" in problems_of(plugin)


def test_names_in_one_plugin_that_could_be_mistaken_for_each_other_are_told(installed: Installed) -> None:
    installed.offering("acme", "[{'name': 'my-db', 'package': 'x'}, {'name': 'my_db', 'package': 'y'}]")
    plugin = loaded(installed)["acme"]
    assert [each.name for each in plugin.servers] == ["my-db"]
    assert problems_of(plugin) == "my_db: the plugin has another server 'my-db', which differs only by '-' and '_'."


@pytest.mark.parametrize(("first", "second"), [("a-b", "a_b"), ("Acme", "acme"), ("same", "same")])
def test_two_plugins_of_one_name_are_told_apart_by_leaving_one_out(
    installed: Installed, first: str, second: str
) -> None:
    installed.offering(first, NOTES)
    installed.offering(second, NOTES)
    plugins = load_plugins(seconds=20, entry_points=installed.entry_points)
    assert [len(plugin.servers) for plugin in plugins] == [1, 0]
    assert "another plugin has the same name" in problems_of(plugins[1])


@pytest.mark.parametrize("name", ["mcp", "host:x", "a__b", ""])
def test_a_plugin_whose_name_can_be_none_is_not_imported(installed: Installed, name: str) -> None:
    module = installed.offering(name, NOTES)
    (plugin,) = load_plugins(seconds=20, entry_points=installed.entry_points)
    assert (plugin.servers, len(plugin.problems)) == ((), 1)
    assert not installed.was_imported(module)


# ---- the policy


@pytest.mark.parametrize(
    ("policy", "allowed"),
    [
        (PluginPolicy(), ["acme", "beta"]),
        (PluginPolicy(deny=("acme",)), ["beta"]),
        (PluginPolicy(deny=("ACME",)), ["beta"]),
        (PluginPolicy(deny=("*",)), []),
        (PluginPolicy(allow=("acme",)), ["acme"]),
        (PluginPolicy(allow=("acme",), deny=("acme",)), []),
        (PluginPolicy(allow=("*",)), ["acme", "beta"]),
        (PluginPolicy(allow=()), []),
    ],
)
def test_a_plugin_that_is_not_allowed_is_not_even_imported(
    installed: Installed, policy: PluginPolicy, allowed: list[str]
) -> None:
    modules = {name: installed.offering(name, NOTES) for name in ("acme", "beta")}
    found = loaded(installed, policy)
    assert [name for name, plugin in found.items() if plugin.servers] == allowed
    assert [name for name, module in modules.items() if installed.was_imported(module)] == allowed
    assert all(found[name].refusal for name in modules if name not in allowed)


def test_a_policy_of_something_else_is_an_error() -> None:
    with pytest.raises(ConfigError, match=r"plugins\.deny"):
        PluginPolicy(deny="acme")  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("written", ["acme_tools", "Acme-Tools", "ACME.tools", "acme-tools"])
def test_a_denied_plugin_is_denied_however_its_name_is_spelt(written: str) -> None:
    assert PluginPolicy(deny=(written,)).refusal("acme-tools")
    assert PluginPolicy(allow=(written,)).refusal("acme-tools") == ""


@pytest.mark.parametrize("written", ["Acme Tools!", "acme_tools"])
def test_a_rule_may_have_a_plugins_name_as_installed_or_as_it_is_used(installed: Installed, written: str) -> None:
    installed.offering("Acme Tools!", NOTES)
    assert loaded(installed, PluginPolicy(allow=(written,)))["acme_tools"].refusal == ""
    assert loaded(installed, PluginPolicy(deny=(written,)))["acme_tools"].refusal != ""


def test_a_name_that_is_no_plugins_is_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    load_plugins(PluginPolicy(deny=("acme-tols", "*")), entry_points=[])
    assert "'acme-tols', which is not installed" in caplog.text
    assert "'*'" not in caplog.text


@pytest.mark.anyio
async def test_who_asks_for_plugins_can_be_cancelled_while_one_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    """What hangs is left behind in its thread: the host goes on at once."""
    began, release = threading.Event(), threading.Event()

    def hang(_policy: object) -> tuple[Plugin, ...]:
        began.set()
        release.wait(30)
        return ()

    monkeypatch.setattr("toolbridge.composition.load_plugins", hang)
    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(CurrentServers(Config.of(), None, (), task=Task("x")).begin)
            await anyio.to_thread.run_sync(began.wait)
            tasks.cancel_scope.cancel()
        assert not release.is_set()
    finally:
        release.set()
