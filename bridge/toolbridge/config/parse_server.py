"""One server's entry in a file, in whichever spelling its author's tool taught them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Literal, TypeVar, cast

from toolbridge.config.editor_variables import all_filled_in, filled_in
from toolbridge.config.fields import ADVICE, ATTRIBUTE_OF_KEY, FIELDS, TRANSPORT_OF_SPELLING, WITHOUT_EFFECT
from toolbridge.config.names import name_for
from toolbridge.config.output_schemas import from_file
from toolbridge.config.references import looks_expandable
from toolbridge.config.remote_values import SENT_ANYWAY
from toolbridge.config.server_config import Origin, ServerConfig, Transport, checked_server
from toolbridge.config.validate import check_fields
from toolbridge.config.values import absolute_directory, flag, pairs
from toolbridge.config.wording import kind_of, listed, quoted, unknown_keys
from toolbridge.errors import ConfigError

_T = TypeVar("_T")
_KEY = {each.attribute: each.key for each in FIELDS} | {"transport": "transport"}


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What an entry's meaning depends on besides itself."""

    origin: Origin
    base: str
    """Where a relative `cwd` starts from."""
    default_cwd: str | None
    home: str | None
    unset_env: Literal["error", "empty"]
    editor_values: Mapping[str, str]
    """What VS Code's own variables stand for; empty for every other file."""


def parse_server(
    written: str, entry: object, around: Surroundings, problems: list[ConfigError], warnings: list[str]
) -> ServerConfig | None:
    """The server, or None if something is wrong with it; that is added to `problems`."""
    if not isinstance(entry, Mapping):
        problem = f"expected an object, found {kind_of(entry)}."
        problems.append(ConfigError(problem, fix='Write {"command": …} or {"url": …}.'))
        return None
    name = _collect(problems, name_for, written)
    keys: dict[str, str] = {}
    given = _by_attribute(pairs(cast("object", entry), ""), keys, problems)

    def label(attribute: str) -> str:
        return keys.get(attribute, _KEY[attribute])

    if "enabled" in given and label("enabled") == "disabled":
        disabled = _collect(problems, flag, given.pop("enabled"), "disabled")
        given["enabled"] = not disabled
    if around.editor_values:
        given |= {key: all_filled_in(given[key], around.editor_values) for key in ("env", "headers") if key in given}
        if "cwd" in given:
            given["cwd"] = filled_in(given["cwd"], around.editor_values, has_references=False)
    cwd = given.get("cwd")
    if isinstance(cwd, str) and cwd.strip():
        given["cwd"] = absolute_directory(cwd, around.base, around.home)
    if "output_schemas" in given:
        read = partial(absolute_directory, base=around.base, home=around.home)
        given["output_schemas"] = _collect(problems, from_file, given["output_schemas"], label("output_schemas"), read)
        if problems:
            return None
    dropped = _drop_our_own_headers(given)
    transport = _transport(given, label, problems)
    kept = {} if transport is None else check_fields(given, transport, label, problems)
    if problems or transport is None or name is None:
        return None
    if transport == "stdio" and around.default_cwd is not None:
        kept.setdefault("cwd", around.default_cwd)
    kept.setdefault("unset_env", around.unset_env)
    display_name = written if written != name else ""
    known = {"name": name, "transport": transport, "origin": around.origin, "display_name": display_name}
    server = checked_server(**known, **kept)
    ignored = sorted(key for key in cast("Mapping[str, object]", entry) if key in WITHOUT_EFFECT)
    warnings += [f"server {quoted(written)}: {each}" for each in (*dropped, *_warnings(server, ignored))]
    return server


def _by_attribute(entry: Mapping[str, object], keys: dict[str, str], problems: list[ConfigError]) -> dict[str, object]:
    """The entry's values by attribute; `keys` gets the spelling that was used for each."""
    given: dict[str, object] = {}
    others = (key for key in entry if key not in WITHOUT_EFFECT)
    problems += unknown_keys(others, ATTRIBUTE_OF_KEY, advice=ADVICE)
    for key, value in entry.items():
        attribute = ATTRIBUTE_OF_KEY.get(key)
        if attribute is None:
            continue
        if attribute in given:
            problem = f"means the same as {keys[attribute]!r}."
            problems.append(ConfigError(problem, field=key, fix="Write just one of them."))
        else:
            given[attribute], keys[attribute] = value, key
    return given


def _transport(given: dict[str, object], label: Callable[[str], str], problems: list[ConfigError]) -> Transport | None:
    """How the server is reached: as it says, or as its fields show."""
    if "transport" not in given:
        if "command" in given:
            return "stdio"
        if "url" in given:
            return "http"
        problems.append(ConfigError("has neither 'command' nor 'url'.", fix='Write {"command": …} or {"url": …}.'))
        return None
    value = given.pop("transport")
    if isinstance(value, str) and value in TRANSPORT_OF_SPELLING:
        return TRANSPORT_OF_SPELLING[value]
    known = listed(["stdio", "http", "sse"])
    found = quoted(value) if isinstance(value, str) else kind_of(value)
    in_process = value in ("in_process", "in-process", "inProcess")
    fix = "A server in this program is made in code: ServerConfig.in_process()." if in_process else ""
    problems.append(ConfigError(f"expected {known}, found {found}.", field=label("transport"), fix=fix))
    return None


def _drop_our_own_headers(given: dict[str, object]) -> list[str]:
    """Other clients have people write what the transport sends anyway; leaving it out changes nothing."""
    found = given.get("headers")
    if not isinstance(found, Mapping):
        return []
    written = cast("Mapping[object, object]", found)
    dropped = [name for name in written if isinstance(name, str) and name.lower() in SENT_ANYWAY]
    given["headers"] = {name: value for name, value in written.items() if name not in dropped}
    return [f"'headers' is read without {listed(sorted(dropped), 'and')}: the transport sets that."] if dropped else []


def _collect(problems: list[ConfigError], check: Callable[..., _T], *values: object) -> _T | None:
    try:
        return check(*values)
    except ConfigError as problem:
        problems.append(problem)
        return None


def _warnings(server: ServerConfig, ignored: Iterable[str]) -> Iterator[str]:
    if ignored:
        yield f"without effect: {listed(ignored, 'and')}."
    if server.command and " " in server.command.strip() and not any(mark in server.command for mark in "/\\"):
        yield "'command' has a space in it; arguments belong into 'args'."
    places = [("command", server.command), ("url", server.url), ("cwd", server.cwd)]
    places += [(f"args[{index}]", text) for index, text in enumerate(server.args)]
    # Some servers fill in variables of their own environment in their arguments: those are meant.
    literal = [place for place, text in places if text and looks_expandable(text, besides=server.env)]
    if literal:
        where = listed(literal[:3], "and") + (" and others" if len(literal) > 3 else "")
        yield f"a '${{' in {where} is left as it is: references work in 'env' and 'headers' only."
