"""What a task wants: by name, by capability, by whole words of its description."""

from __future__ import annotations

from typing import Any

import pytest

from growth import linear
from toolbridge import ServerConfig
from toolbridge.errors import MisuseError
from toolbridge.sources.merge import Task, _apart, has_words, known_names, missing_names, reason_for, unmet
from toolbridge.sources.plugins import ProvidedServer, read_provided


def offered(plugin: str = "acme", name: str = "fs", **more: Any) -> ProvidedServer:
    (server,) = read_provided(plugin, [{"name": name, "package": "x", **more}]).servers
    return server


@pytest.mark.parametrize(
    ("text", "words", "found"),
    [
        ("rename the shared assets", "shared assets", True),
        ("Rename the SHARED  Assets.", "shared assets", True),
        ("rename the shared\nassets", "shared assets", True),
        ("the unshared assets", "shared assets", False),
        ("shared assetsfolder", "shared assets", False),
        ("look into /workspace/shared, please", "/workspace/shared", True),
        ("look into /workspace/shared2", "/workspace/shared", False),
        ("use git", "git", True),
        ("a digital thing", "git", False),
        ("github", "git", False),
        ("git-hub", "git", True),
        ("write c++ code", "C++", True),
        ("STRASSE", "straße", True),
        ("caf\u0065\u0301", "café", True),
        ("ﬁle", "file", True),
        ("a b a b c", "a b c", True),
        ("", "git", False),
        ("git", "  ", False),
        ("...", ".", True),
    ],
)
def test_words_match_whole_words_whatever_their_case_form_and_spacing(text: str, words: str, found: bool) -> None:
    assert has_words(text, words) is found


def match_nearly(length: int) -> None:
    """Searches that nearly match everywhere."""
    _apart.cache_clear()
    texts = ("ab" * length, " a" * length)
    for text, words in zip(texts, ("ab" * (length // 2), "a " * (length // 2) + "b"), strict=True):
        assert not has_words(text, words)


def test_matching_takes_time_as_reading_does() -> None:
    linear(match_nearly, lambda length: length, 40_000)


def test_a_server_belongs_to_a_task_for_a_reason_that_can_be_read() -> None:
    server = offered(keywords=["shared assets", "assets"], capabilities=["Filesystem", "read"])
    assert reason_for(Task("move the shared assets"), server) == "the task mentions 'shared assets'"
    assert reason_for(Task("", capabilities=("filesystem",)), server) == (
        "the task asks for the capability 'Filesystem'"
    )
    assert reason_for(Task("", servers=("acme__fs",)), server) == "the task asks for 'acme__fs'"
    assert reason_for(Task("", servers=("fs",)), server) == "the task asks for 'fs'"
    assert reason_for(Task("something else", servers=("other",), capabilities=("write",)), server) == ""


def test_a_capability_that_nobody_has_is_known() -> None:
    assert unmet(Task("", capabilities=("read", "fly")), [offered(capabilities=["Read"])]) == ("fly",)


def test_names_that_are_nowhere_are_known_beside_what_there_is() -> None:
    assert missing_names(Task("", servers=("db", "acme__fs", "fs")), ["db"], [offered()]) == ()
    assert missing_names(Task("", servers=("x", "db", "x")), ["db"], [offered()]) == ("x",)
    assert known_names(["db"], [offered()]) == ("acme__fs", "db", "fs")


@pytest.mark.parametrize(
    "make",
    [
        lambda: Task(3),  # pyright: ignore[reportArgumentType]
        lambda: Task("", servers="db"),  # pyright: ignore[reportArgumentType]
        lambda: Task("", servers=(3,)),  # pyright: ignore[reportArgumentType]
        lambda: Task("", capabilities="db"),  # pyright: ignore[reportArgumentType]
        lambda: Task("", capabilities=(ServerConfig.npm("a", "b"),)),  # pyright: ignore[reportArgumentType]
    ],
)
def test_a_task_of_something_else_is_misuse(make: Any) -> None:
    with pytest.raises(MisuseError):
        make()
