"""What a person reads: everything that runs, nothing secret, nothing hidden, and the warning always in sight."""

from __future__ import annotations

import re
from dataclasses import fields
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from growth import work_within
from toolbridge.config.server_config import OAuth, Origin, ServerConfig
from toolbridge.trust.approval.approver import ApprovalRequest, approved_facts
from toolbridge.trust.approval.approvers import PROCESS_WARNING, REMOTE_WARNING, approval_prompt
from toolbridge.trust.approval.store import StoredAnswer
from toolbridge.trust.sanitise import columns
from trust.approval.approval_requests import http, request, stdio

NEVER = StoredAnswer("unknown")
SCREEN = 24


def prompt(asked: ApprovalRequest | None = None, answer: StoredAnswer = NEVER, **changes: Any) -> str:
    return approval_prompt(asked or request(**changes), answer)


def row(text: str, label: str) -> str:
    """A row of the prompt, with its lines put together again."""
    found = re.search(rf"^  {label} (.*(?:\n {{14}}.*)*)", text, re.MULTILINE)
    assert found is not None, text
    return re.sub(r"\n {14}", " ", found[1].strip()).replace("\\ ", "")


def test_the_prompt_in_full() -> None:
    asked = request(stdio("weather", "-y", "@acme/weather@1.2.3", "two words", env={"API_KEY": "${KEY}", "MODE": "x"}))
    assert prompt(asked).splitlines() == [
        "",
        "── Approve to start the MCP server weather? ────────────────────────────────────",
        "  Origin      project file /srv/shop/toolbridge.json",
        '  Command     npx -y @acme/weather@1.2.3 "two words"',
        "  Program     /usr/bin/npx",
        "  Directory   /srv/shop",
        "  Variables   API_KEY=*** (from ${KEY}) MODE=***",
        f"  Digest {asked.digest}",
        "",
        "  • It was never approved before.",
        "  • It gets the value of your KEY.",
        "",
        "   ⚠️ This MCP server runs as a full OS process with YOUR permissions. It is NOT sandboxed.",
    ]


def test_a_remote_server_has_words_of_its_own() -> None:
    text = prompt(request(http(headers={"Authorization": "Bearer ${TOKEN}"}, oauth=OAuth("me", scopes=("read",)))))
    assert text.rstrip().endswith(REMOTE_WARNING)
    assert PROCESS_WARNING not in text
    assert row(text, "URL") == "https://example.com/mcp"
    assert row(text, "Headers") == "Authorization=*** (from ${TOKEN})"
    assert row(text, "Sign-in") == "OAuth client me scopes read"


@pytest.mark.parametrize(
    ("origin", "shown"),
    [
        (Origin("user", "/home/me/config.json"), "your own file /home/me/config.json"),
        (Origin("project", "/srv/x y/toolbridge.json"), 'project file "/srv/x y/toolbridge.json"'),
        (Origin("plugin", "acme"), "plugin acme"),
        (Origin("code"), "the program that you run"),
    ],
)
def test_the_origin_is_shown(origin: Origin, shown: str) -> None:
    assert row(prompt(origin=origin), "Origin") == shown


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (NEVER, "It was never approved before."),
        (StoredAnswer("changed", "2026-05-04T03:02:01Z", ("args", "program")), "CHANGED since you approved it on"),
        (StoredAnswer("revoked", "2026-05-04T03:02:01Z"), "You revoked its approval on 2026-05-04."),
        (StoredAnswer("approved", "2026-05-04T03:02:01Z"), "You approved exactly this on 2026-05-04."),
    ],
)
def test_what_was_decided_before_is_said(answer: StoredAnswer, says: str) -> None:
    assert says in prompt(answer=answer)


def test_no_value_of_a_variable_header_or_query_is_shown() -> None:
    secret = "hunter2hunter2"
    assert secret not in prompt(env={"KEY": secret, "B": f"${{X}}{secret}"})
    url = f"https://me:{secret}@example.com/mcp?key={secret}"
    oauth = OAuth("me", client_secret=secret)
    text = prompt(request(http(url=url, headers={"X-Key": secret, "B": f"Bearer {secret}"}, oauth=oauth)))
    assert secret not in text
    assert row(text, "URL") == '"https://***@example.com/mcp?key=***"' or "***" in row(text, "URL")


def test_every_part_of_what_runs_is_shown() -> None:
    """A new field of a server must be shown, or put into the list of those that don't affect what runs."""
    shown = {"name", "transport", "command", "args", "cwd", "env", "env_required", "inherit_env", "url", "headers"}
    shown |= {"oauth", "display_name", "origin"}
    silent = {
        "unset_env",
        "server",
        "allow_tools",
        "deny_tools",
        "output_schemas",
        "reading",
        "labels",
        "connect_timeout",
        "call_timeout",
    }
    silent |= {"description", "enabled"}
    assert shown | silent == {field.name for field in fields(ServerConfig)}
    server = stdio(
        "shown", "ARG", command="COMMAND", cwd="/CWD", env={"ENV": "x"}, env_required=("REQUIRED",), inherit_env=True
    )
    text = prompt(request(server, executable="/PROGRAM"))
    for part in ("shown", "ARG", "COMMAND", "/CWD", "ENV=***", "REQUIRED=***", "inheritEnv", "/PROGRAM"):
        assert part in text


HOSTILE = [
    "\x1b[2J\x1b[H",
    "\x1b]0;title\x07",
    "\x1b]8;;https://evil.example\x1b\\click\x1b]8;;\x1b\\",
    "\x1b]52;c;ZXZpbA==\x07",
    "\rnpx -y harmless",
    "\n  Program     /usr/bin/harmless",
    "\n\n\n⚠️ This server is sandboxed.",
    "a\u202eb",
    "a\u200b\u2060b",
    "\U000e0041\U000e0042",
    "\x9b2J",
    "\x08\x08\x08\x7f",
    "\ud800",
    "z" + "\u0301" * 50,
]


@pytest.mark.parametrize("evil", HOSTILE, ids=ascii)
def test_nothing_in_a_configuration_is_obeyed_by_the_terminal(evil: str) -> None:
    """T20: in every field that is shown."""
    server = stdio(
        f"a{evil}",
        *(f"a{evil}", evil),
        command=f"c{evil}",
        cwd=f"/d{evil}",
        env={f"E{evil}": f"${{V}}{evil}"},
        env_required=(f"R{evil}",),
        display_name=f"n{evil}",
        description=evil,
        origin=Origin("project", f"/o{evil}"),
    )
    remote = http("b", url=f"https://example.com/{evil}", headers={f"H{evil}": evil}, oauth=OAuth(evil, scopes=(evil,)))
    changed = StoredAnswer("changed", "2026-05-04T03:02:01Z", (evil,))
    for text in (prompt(request(server, executable=f"/p{evil}"), changed), prompt(request(remote))):
        lines = text.split("\n")
        assert all(each.isprintable() or each in "⚠️" for line in lines for each in line)
        # Nothing but the labels of ours begins in the third column, and nothing else in the first.
        assert {line[:3] for line in lines if line[:2] != "  "} <= {"", "── "}
        assert sum(line.lstrip().startswith("⚠️") for line in lines) == 1
        assert sum(line.startswith("  Program ") for line in lines) in (0, 1 + ("see above" in text))
        text.encode()  # no lone surrogate


@pytest.mark.parametrize("count", [1, 7, 40, 5_000])
@pytest.mark.parametrize("length", [1, 60, 300])
def test_long_arguments_never_push_the_warning_or_the_command_off_the_screen(count: int, length: int) -> None:
    args = tuple(f"{number:04}".ljust(length, "x") for number in range(count))
    text = prompt(request(stdio("weather", *args)))
    screen = text.split("\n")[-SCREEN:]
    assert any(PROCESS_WARNING in line for line in screen)
    assert any(line.startswith("  Command     npx") for line in screen)
    assert any("0000" in line for line in screen)
    assert any(line.startswith("  Program ") for line in screen)


@pytest.mark.parametrize("count", [1, 7, 40, 5_000])
def test_all_arguments_are_shown_verbatim_however_many(count: int) -> None:
    args = tuple(f"arg-{number:04}-{'x' * (number % 150)}" for number in range(count))
    text = prompt(request(stdio("weather", *args)))
    assert row(text, "Command") == " ".join(["npx", *args])


def test_a_long_single_argument_is_shown_in_full() -> None:
    script = "".join(f"{number:05}" for number in range(2_000))
    text = prompt(request(stdio("weather", script)))
    assert script in row(text, "Command").replace("\\", "")
    assert "lines: see above" in text


def test_many_variables_are_all_shown_and_push_nothing_away() -> None:
    text = prompt(env={f"VARIABLE_{number:04}": "x" for number in range(500)})
    assert all(f"VARIABLE_{number:04}=***" in text for number in range(500))
    assert any(PROCESS_WARNING in line for line in text.split("\n")[-SCREEN:])


@given(
    st.lists(st.text(max_size=100), max_size=8),
    st.dictionaries(st.text(min_size=1, max_size=30), st.text(max_size=30), max_size=5),
    st.sampled_from([40, 80, 100]),
)
def test_lines_fit_the_terminal_whatever_is_in_them(args: list[str], env: dict[str, str], width: int) -> None:
    text = approval_prompt(request(stdio("weather", *args, env=env)), NEVER, width=width)
    for line in text.split("\n"):
        if PROCESS_WARNING not in line and not line.startswith(("── ", "  Digest ")):
            assert columns(line) <= width


@pytest.mark.parametrize("sign", [1, 2])
def test_the_warning_is_one_line_that_a_terminal_wraps_between_words(sign: int) -> None:
    for width in range(40, 101):
        lines = approval_prompt(request(), NEVER, width=width).split("\n")
        (line,) = [line for line in lines if PROCESS_WARNING in line]
        drawn = line.replace("⚠️", "!" * sign)
        for end in range(width, len(drawn), width):
            # a very narrow terminal wraps more than once
            assert " " in drawn[end - 1 : end + 1] or end > width, (width, end)


LARGE = 300_000
SLOW: dict[str, ServerConfig] = {
    "a version without end": stdio("x", "-y", "pkg@1" + ".1" * (LARGE // 2) + "!"),
    "packages without end": stdio("x", *["-p", "a@1.1"] * 50_000),
    "marks": stdio("x", "@" * LARGE),
    "invisible characters": stdio("x", "\u200b" * LARGE),
    "accents": stdio("x", "e" + "\u0301" * LARGE),
    "options": stdio("x", *["-a"] * 200_000, command="sh"),
    "names and values": stdio("x", "token " * (LARGE // 6) + "=x"),
    "addresses": stdio("x", "a://" * (LARGE // 4), "://a:b" * (LARGE // 6)),
    "references": stdio(env={"A": "${A}" * (LARGE // 4)}),
    "half references": stdio(env={"A": "${" * (LARGE // 2)}),
    "variables": stdio(env={f"LD_{number}": "x" for number in range(50_000)}),
    "a url": http(url="https://example.com/?" + "a=b&" * (LARGE // 4)),
    "another alphabet": stdio("x", "a" + "ж" * LARGE),
}


@pytest.mark.parametrize("server", SLOW)
def test_no_configuration_takes_long_to_show(server: str) -> None:
    """What a file holds is foreign, and is looked at before anybody approved it: anything but linear is too slow."""
    with work_within(8):
        asked = request(SLOW[server])
        text = prompt(asked)
        approved_facts(asked)
    assert "⚠️" in text
