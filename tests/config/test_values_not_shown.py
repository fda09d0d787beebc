"""No value of a variable or header is ever shown: not by an error, a warning or a repr, whatever is wrong."""

from __future__ import annotations

import copy
import json
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from toolbridge.config.config import load_config
from toolbridge.config.references import resolve_environment
from toolbridge.errors import ToolbridgeError

SECRET = "Zq7planted9Xw"
HEADER_SECRET = "Vk3header5Bn"
GOOD: dict[str, Any] = {
    "mcpServers": {
        "local": {"command": "x", "env": {"API_TOKEN": SECRET, "PLAIN": f"a {SECRET} b", "R": "${HOST_SECRET}"}},
        "remote": {
            "url": f"https://example.com/mcp?key={SECRET}",
            "headers": {"Authorization": f"Bearer {HEADER_SECRET}", "X-R": "${HOST_SECRET}"},
            "oauth": {"clientId": "me", "clientSecret": SECRET},
        },
    }
}
ENVIRON = {"PATH": "/bin", "HOME": "/home/me", "HOST_SECRET": f"{SECRET}-host"}


def everything_shown(path: Path) -> str:
    """Whatever a person or a log could get to see of loading a file and resolving its servers."""
    shown: list[str] = []
    try:
        config = load_config(path, environ=ENVIRON)
    except ToolbridgeError as error:
        return _shown(error)
    shown += [repr(config), str(config), *config.warnings]
    for server in config.servers.values():
        shown += [repr(server), str(server), repr(server.oauth), str(server.origin)]
        for environ in (ENVIRON, {}, {**ENVIRON, "HOST_SECRET": f"{SECRET}\r\nX: {SECRET}\0"}):
            try:
                resolved = resolve_environment(server, environ)
                shown += [repr(resolved), str(resolved), *resolved.warnings]
            except ToolbridgeError as error:
                shown.append(_shown(error))
    return "\n".join(shown)


def _shown(error: BaseException) -> str:
    """An error, what led to it, and all that they carry."""
    text = ["".join(traceback.format_exception(error))]
    at: BaseException | None = error
    while at is not None:
        text += [repr(at), repr(at.args), repr(vars(at)), repr(getattr(at, "doc", "")), repr(getattr(at, "object", ""))]
        at = at.__cause__ or at.__context__
    return "\n".join(text)


def check(path: Path, document: object) -> None:
    path.write_text(json.dumps(document), encoding="utf-8")
    shown = everything_shown(path)
    assert [secret for secret in (SECRET, HEADER_SECRET) if secret in shown] == [], shown


def test_a_good_file_shows_names_only(tmp_path: Path) -> None:
    check(tmp_path / "a.json", GOOD)
    assert "API_TOKEN" in everything_shown(tmp_path / "a.json")


Change = Callable[[dict[str, Any]], object]

CHANGES: dict[str, Change] = {
    "env is a list of the value": lambda servers: servers["local"].update(env=[SECRET]),
    "env is the value": lambda servers: servers["local"].update(env=SECRET),
    "a value is a list": lambda servers: servers["local"]["env"].update(API_TOKEN=[SECRET]),
    "a value has a NUL": lambda servers: servers["local"]["env"].update(API_TOKEN=f"{SECRET}\0"),
    "a value has half a character": lambda servers: servers["local"]["env"].update(API_TOKEN=f"{SECRET}\ud800"),
    "a value is an open reference": lambda servers: servers["local"]["env"].update(API_TOKEN="${" + SECRET),
    "a value is no reference": lambda servers: servers["local"]["env"].update(API_TOKEN="${x y " + SECRET + "}"),
    "a default value": lambda servers: servers["local"]["env"].update(API_TOKEN="${VAR:-" + SECRET + "}"),
    "an unset variable": lambda servers: servers["local"]["env"].update(API_TOKEN="${UNSET}" + SECRET),
    "headers on a process": lambda servers: servers["local"].update(headers={"Authorization": HEADER_SECRET}),
    "env on a remote server": lambda servers: servers["remote"].update(env={"A": SECRET}),
    "a header with a line break": lambda servers: servers["remote"]["headers"].update(A=f"{HEADER_SECRET}\r\nB: c"),
    "a header with an accent": lambda servers: servers["remote"]["headers"].update(A=f"{HEADER_SECRET}é"),
    "a header that is an object": lambda servers: servers["remote"]["headers"].update(A={"value": HEADER_SECRET}),
    "a header twice": lambda servers: servers["remote"]["headers"].update(authorization=HEADER_SECRET),
    "a header of the transport": lambda servers: servers["remote"]["headers"].update(Host=HEADER_SECRET),
    "a password in the url": lambda servers: servers["remote"].update(url=f"https://me:{SECRET}@example.com"),
    "a broken url": lambda servers: servers["remote"].update(url=f"https://[{SECRET}"),
    "a url with a space": lambda servers: servers["remote"].update(url=f"https://example.com/ {SECRET}"),
    "a secret of oauth in a list": lambda servers: servers["remote"]["oauth"].update(clientSecret=[SECRET]),
    "oauth is the secret": lambda servers: servers["remote"].update(oauth=SECRET),
    "an unknown key": lambda servers: servers["local"].update(token=SECRET),
    "a server is the value": lambda servers: servers.update(three=SECRET),
    "command is a list": lambda servers: servers["local"].update(command=["x", SECRET]),
    "an input": lambda servers: servers["local"]["env"].update(API_TOKEN="${input:id}" + SECRET),
    "both transports": lambda servers: servers["local"].update(url=f"https://example.com/{SECRET}"),
}


@pytest.mark.parametrize("what", CHANGES)
def test_a_mistake_shows_no_value(tmp_path: Path, what: str) -> None:
    document = copy.deepcopy(GOOD)
    CHANGES[what](document["mcpServers"])
    check(tmp_path / "a.json", document)


ODD = st.sampled_from(
    [None, True, 3, 2.5, [], {}, [SECRET], {"A": SECRET}, SECRET, f"${{{SECRET}", f"{SECRET}\n", f"{SECRET}\0"]
)
# Not `unsetEnv` and `transport`: what was written there is quoted, for it can only be a misspelt word; and not
# `envRequired`, which holds names of variables: one that is not set is named.
SERVER_KEYS = st.sampled_from(["env", "headers", "oauth", "inheritEnv", "description", "callTimeout", "allowTools"])


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sampled_from(["local", "remote"]), st.dictionaries(SERVER_KEYS, ODD, min_size=1, max_size=3))
def test_no_odd_value_in_any_field_is_shown(tmp_path: Path, name: str, changes: dict[str, Any]) -> None:
    document = copy.deepcopy(GOOD)
    document["mcpServers"][name].update(changes)
    check(tmp_path / "a.json", document)
