"""Properties of what an approval is bound to: every change of what runs voids it, another way of writing it never."""

from __future__ import annotations

import json
import random
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from toolbridge.config.config import configuration_digest, load_config
from toolbridge.config.server_config import OAuth, Origin, ServerConfig, checked_server
from trust.approval.approval_requests import unchecked

TEXT = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1, max_size=12)
NAMES = st.from_regex(r"[A-Z][A-Z_]{0,8}", fullmatch=True)
VALUES = st.one_of(TEXT, NAMES.map(lambda name: f"${{{name}}}"))
TEXTS = st.lists(TEXT, max_size=4).map(tuple)
ORIGINS = st.builds(Origin, st.sampled_from(["code", "user", "project", "plugin"]), TEXT)

FIELDS: dict[str, st.SearchStrategy[Any]] = {
    "name": st.from_regex(r"[a-z][a-z0-9]{0,8}", fullmatch=True),
    "transport": st.sampled_from(["stdio", "http", "sse"]),
    "command": TEXT,
    "args": TEXTS,
    "cwd": TEXT,
    "env": st.dictionaries(NAMES, VALUES, max_size=3),
    "env_required": st.lists(NAMES, max_size=3, unique=True).map(sorted).map(tuple),
    "inherit_env": st.booleans(),
    "unset_env": st.sampled_from(["error", "empty"]),
    "url": TEXT,
    "headers": st.dictionaries(NAMES, VALUES, max_size=3),
    "oauth": st.none() | st.builds(OAuth, TEXT, st.none() | VALUES),
    "origin": ORIGINS,
}
SERVERS = st.builds(checked_server, **FIELDS)


@given(st.data(), SERVERS, st.sampled_from(sorted(FIELDS)))
def test_every_change_of_one_field_voids_an_approval(data: st.DataObject, server: ServerConfig, field: str) -> None:
    value = data.draw(FIELDS[field].filter(lambda value: value != getattr(server, field)))
    changed = unchecked(server, **{field: value})
    assert configuration_digest(changed, "/usr/bin/x") != configuration_digest(server, "/usr/bin/x")


@given(SERVERS, TEXT, TEXT)
def test_another_program_or_directory_voids_an_approval(server: ServerConfig, one: str, other: str) -> None:
    if one != other:
        assert configuration_digest(server, one) != configuration_digest(server, other)
        assert configuration_digest(server, "/x", one) != configuration_digest(server, "/x", other)
        floating = unchecked(server, cwd=None)
        assert configuration_digest(floating, "/x", one) != configuration_digest(floating, "/x", other)


@given(SERVERS, st.randoms(use_true_random=False))
def test_a_character_more_or_less_anywhere_in_the_arguments_voids_an_approval(
    server: ServerConfig, chance: random.Random
) -> None:
    args = list(server.args) or ["x"]
    index = chance.randrange(len(args))
    place = chance.randrange(len(args[index]) + 1)
    before = configuration_digest(unchecked(server, args=tuple(args)), None)
    for changed in (args[index][:place] + "\u200b" + args[index][place:], args[index] + " "):
        assert (
            configuration_digest(unchecked(server, args=(*args[:index], changed, *args[index + 1 :])), None) != before
        )


def shuffled(value: Any, chance: random.Random) -> Any:
    """The same JSON value, with the keys of every object in another order."""
    if isinstance(value, dict):
        items = [(key, shuffled(item, chance)) for key, item in value.items()]  # pyright: ignore[reportUnknownVariableType]
        chance.shuffle(items)  # pyright: ignore[reportUnknownArgumentType]
        return dict(items)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
    return value


ENTRIES = st.fixed_dictionaries(
    {"command": st.just("npx"), "args": st.lists(TEXT, max_size=3), "env": st.dictionaries(NAMES, VALUES, max_size=4)},
    optional={"inheritEnv": st.booleans(), "description": TEXT, "cwd": st.just("/srv")},
)


@settings(max_examples=40, deadline=None)
@given(st.dictionaries(st.sampled_from(["one", "two", "three"]), ENTRIES, min_size=1), st.randoms(), st.integers(0, 4))
def test_the_order_and_layout_of_a_file_void_nothing(
    entries: dict[str, dict[str, Any]], chance: random.Random, indent: int
) -> None:
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory, "toolbridge.json")

        def digests(text: str) -> dict[str, str]:
            file.write_text(text, encoding="utf-8")
            servers = load_config(file, directory=directory, environ={}).servers
            return {name: configuration_digest(server, "/usr/bin/npx") for name, server in servers.items()}

        document = {"mcpServers": entries}
        other = shuffled(document, chance)
        assert digests(json.dumps(document)) == digests(json.dumps(other, indent=indent, ensure_ascii=False))
