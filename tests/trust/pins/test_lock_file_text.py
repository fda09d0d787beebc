"""The text of a lock: one for the same pins, reviewable, and refused when it is anything else."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codegen import corpus
from toolbridge.trust.pins import lock_file as lock_text_module
from toolbridge.trust.pins.definition import pin_of
from toolbridge.trust.pins.lock_file import Lock, LockError, lock_text, parse_lock, pinned_server
from toolbridge_codegen.catalog import ToolDefinition
from trust.pins.definition_changes import rewritten_tool

PATH = "/project/toolbridge.lock"
TOOL = ToolDefinition(
    "get_forecast",
    {"type": "object", "properties": {"city": {"type": "string", "default": "Köln\u202e"}}, "required": ["city"]},
    title="Forecast",
    description="Forecast for a city.\nAsk\u200b nicely.",
    output_schema={"type": "object"},
    annotations={"readOnlyHint": True},
)
PLAIN = ToolDefinition("ping", {"type": "object"})
LOCK = Lock({"weather": pinned_server([TOOL, PLAIN], "Be kind"), "empty": pinned_server([], "")})

TEXT = r"""{
  "lockVersion": 1,
  "servers": {
    "empty": {
      "tools": {}
    },
    "weather": {
      "instructions": "Be kind",
      "tools": {
        "get_forecast": {
          "annotations": {
            "readOnlyHint": true
          },
          "description": "Forecast for a city.\nAsk\u200b nicely.",
          "digest": "DIGEST",
          "inputSchema": {
            "properties": {
              "city": {
                "default": "K\u00f6ln\u202e",
                "type": "string"
              }
            },
            "required": [
              "city"
            ],
            "type": "object"
          },
          "outputSchema": {
            "type": "object"
          },
          "title": "Forecast"
        },
        "ping": {
          "digest": "PLAIN",
          "inputSchema": {
            "type": "object"
          }
        }
      }
    }
  }
}
""".replace("DIGEST", pin_of(TOOL).digest).replace("PLAIN", pin_of(PLAIN).digest)


def test_a_lock_is_sorted_ascii_with_one_member_a_line() -> None:
    assert lock_text(LOCK, PATH) == TEXT


def test_what_was_written_is_read() -> None:
    assert parse_lock(TEXT.encode(), PATH) == LOCK


def test_real_listings_give_one_text_in_any_order_and_it_is_read_again() -> None:
    chance = random.Random(3)
    listings = [real.listing for real in corpus.real_listings()]
    lock = Lock({each.server: pinned_server(each.tools, each.instructions) for each in listings})
    shuffled: list[tuple[str, Any]] = []
    for each in listings:
        tools = [rewritten_tool(tool, chance) for tool in each.tools]
        chance.shuffle(tools)
        shuffled.append((each.server, pinned_server(tools, each.instructions)))
    chance.shuffle(shuffled)
    text = lock_text(lock, PATH)
    assert text.encode() == lock_text(Lock(dict(shuffled)), PATH).encode()
    assert text.isascii()
    assert parse_lock(text.encode(), PATH) == lock
    assert lock_text(parse_lock(text.encode(), PATH), PATH) == text


def test_hostile_listings_are_read_again_too() -> None:
    lock = Lock({each.server: pinned_server(each.tools, each.instructions) for each in corpus.corpus_listings()})
    text = lock_text(lock, PATH)
    assert text.isascii()
    assert parse_lock(text.encode(), PATH) == lock


@given(st.text(st.characters(), max_size=20), st.text(st.characters(), max_size=20))
def test_any_text_survives(name: str, description: str) -> None:
    lock = Lock({"s": pinned_server([ToolDefinition(name or "x", {}, description=description)], description)})
    assert parse_lock(lock_text(lock, PATH).encode(), PATH) == lock


def test_line_ends_and_a_mark_that_an_editor_or_git_adds_mean_nothing() -> None:
    assert parse_lock(b"\xef\xbb\xbf" + TEXT.replace("\n", "\r\n").encode(), PATH) == LOCK


def changed(**changes: Any) -> str:
    """The lock with something else in the entry of `ping`; a change to ... takes the member away."""
    document = json.loads(TEXT)
    entry: dict[str, Any] = document["servers"]["weather"]["tools"]["ping"]
    entry.update(changes)
    for key in [key for key, value in changes.items() if value is ...]:
        del entry[key]
    return json.dumps(document)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "is empty"),
        ("  \n", "is empty"),
        ("{", "is not JSON: .* at line 1"),
        (TEXT[: len(TEXT) // 2], "is not JSON"),
        (TEXT + "}", "is not JSON"),
        ("[]", "expected an object, found a list"),
        ("null", "expected an object, found null"),
        ("{}", "'lockVersion' is missing"),
        ('{"lockVersion": 1}', "'servers' is missing"),
        ('{"lockVersion": 2, "servers": {}}', "is of version 2; this toolbridge reads version 1"),
        ('{"lockVersion": true, "servers": {}}', "is of version true"),
        ('{"lockVersion": 1.0, "servers": {}}', "is of version a number"),
        ('{"lockVersion": "1", "servers": {}}', "is of version text"),
        ('{"lockVersion": 1, "servers": {}, "more": 1}', "'more', which this toolbridge does not know"),
        ('{"lockVersion": 1, "servers": []}', "field 'servers': expected an object"),
        ('{"lockVersion": 1, "servers": {"a": 1}}', "server 'a': expected an object, found a number"),
        ('{"lockVersion": 1, "servers": {"a": {}}}', "server 'a': 'tools' is missing"),
        ('{"lockVersion": 1, "servers": {"a": {"tools": {}}, "a": {"tools": {}}}}', "has 'a' twice"),
        ('{"lockVersion": 1, "servers": {"a": {"tools": {}, "instructions": 5}}}', "expected text, found a number"),
        ('{"lockVersion": 1, "servers": {"a": {"tools": {"t": NaN}}}}', "not JSON, or too long"),
        ('{"lockVersion": ' + "1" * 5000 + "}", "not JSON, or too long"),
        ('{"lockVersion": 1, "servers": ' + "[" * 100_000, "nested too deeply"),
        (changed(description="Pings a host"), "digest is not that of its definition"),
        (changed(digest="sha256:" + "0" * 64), "digest is not that of its definition"),
        (changed(digest=...), "'digest' is missing"),
        (changed(digest=None), "digest is not that of its definition"),
        (changed(inputSchema=...), "'inputSchema' is missing"),
        (changed(inputSchema=[]), "'inputSchema' is a list; expected an object"),
        (changed(outputSchema=None), "'outputSchema' is null; expected an object"),
        (changed(title=7), "'title' is a number; expected text"),
        (changed(icons=[]), "'icons', which this toolbridge does not know"),
    ],
)
def test_what_is_not_exactly_a_lock_is_refused(text: str, says: str) -> None:
    with pytest.raises(LockError, match=says) as caught:
        parse_lock(text.encode(), PATH)
    assert str(caught.value).startswith(PATH)
    assert caught.value.__context__ is None or "servers" not in str(caught.value.__context__)


@pytest.mark.parametrize("marker", ["<<<<<<< HEAD", "=======", ">>>>>>> theirs", "||||||| base"])
def test_a_merge_conflict_is_called_one(marker: str) -> None:
    lines = TEXT.split("\n")
    for end in ("\n", "\r\n"):
        text = end.join([*lines[:7], marker, *lines[7:]])
        with pytest.raises(LockError, match=r"has a merge conflict at line 8\. Take either side"):
            parse_lock(text.encode(), PATH)


def test_a_text_that_looks_like_a_marker_is_no_conflict() -> None:
    lock = Lock({"s": pinned_server([ToolDefinition("t", {}, description="<<<<<<< HEAD\n=======\n")], "")})
    assert parse_lock(lock_text(lock, PATH).encode(), PATH) == lock


def test_bytes_that_are_no_text_are_refused() -> None:
    with pytest.raises(LockError, match="is not UTF-8"):
        parse_lock(b'{"lockVersion": "\xff"}', PATH)


def test_a_server_can_not_use_up_the_room_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lock_text_module, "MOST_SERVER_BYTES", 10_000)
    tools = [ToolDefinition(f"t{number}", {}, description="x" * 1000) for number in range(20)]
    with pytest.raises(LockError, match=r"server 'big': its tools take [\d,]+ bytes; at most 10,000 are pinned"):
        lock_text(Lock({"big": pinned_server(tools, "")}), PATH)
    monkeypatch.setattr(lock_text_module, "MOST_BYTES", 20_000)
    servers = {f"s{number}": pinned_server(tools[:5], "") for number in range(5)}
    with pytest.raises(LockError, match=r"would have [\d,]+ bytes; at most 20,000"):
        lock_text(Lock(servers), PATH)


def test_a_tool_that_can_not_be_pinned_is_left_out() -> None:
    odd = ToolDefinition("odd", {"default": float("nan")})
    assert set(pinned_server([odd, PLAIN], "").tools) == {"ping"}
