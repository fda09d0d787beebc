"""From a file's JSON object to servers and limits. Every mistake in a file is found before any is reported."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from functools import partial
from types import MappingProxyType
from typing import Literal, TypeVar, cast

from toolbridge.config.fields import (
    ADVICE,
    ATTRIBUTE_OF_KEY,
    FIELDS,
    SENT_ANYWAY,
    TRANSPORT_OF_SPELLING,
    WITHOUT_EFFECT,
    check_fields,
    check_together,
    from_file,
    starts_toolbridge,
)
from toolbridge.config.policy import POLICY_KEYS, Policy, parse_policy
from toolbridge.config.profiles import Profile, parse_profiles
from toolbridge.config.read_file import Candidate
from toolbridge.config.references import all_filled_in, editor_values, filled_in, is_editors_file, looks_expandable
from toolbridge.config.server_config import Origin, ServerConfig, ServerLimits, Transport, check_limit, checked_server
from toolbridge.config.values import (
    MOST_PROBLEMS_SOUGHT,
    absolute_directory,
    all_of,
    flag,
    kind_of,
    listed,
    name_for,
    pairs,
    quoted,
    shown_path,
    unknown_keys,
    wrong,
)
from toolbridge.errors import ConfigError

# One server's entry in a file, in whichever spelling its author's tool taught them.


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


FORMS = ("mcpServers", "servers")
TOP_LEVEL_KEYS = (*FORMS, "version", "limits", "inputs", "gateway", "profiles", *POLICY_KEYS, "$schema")


def _camel_case(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


LIMIT_OF_KEY: Mapping[str, str] = MappingProxyType({_camel_case(each.name): each.name for each in fields(ServerLimits)})
"""The limits by their keys in a file."""


@dataclass(frozen=True, slots=True)
class ParsedFile:
    """What one file says."""

    path: str
    servers: tuple[ServerConfig, ...]
    limits: Mapping[str, float]
    """Only those that the file sets."""
    policy: Policy
    profiles: tuple[Profile, ...]
    is_project: bool
    """Whether it comes with a repository: then it may make rules stricter, never looser."""
    warnings: tuple[str, ...]


def parse_file(document: Mapping[str, object], candidate: Candidate, home: str | None) -> ParsedFile:
    """Read a file's JSON object.

    Raises:
        ConfigError: names the file, and for every problem the server, the field, what was found and what to write.
    """
    problems: list[ConfigError] = []
    warnings: list[str] = []
    _check_top_level(document, problems, warnings)
    limits = _limits(document["limits"], problems) if "limits" in document else {}
    policy = parse_policy(document, problems)
    servers = _servers(document, candidate, home, problems, warnings)
    origin = Origin(candidate.origin, candidate.path)
    profiles = parse_profiles(
        document.get("profiles", {}),
        servers,
        origin,
        problems,
        warnings,
        absolute=lambda path: absolute_directory(path, candidate.base, home),
    )
    if not problems:
        try:
            check_together(servers)
        except ConfigError as problem:
            problems.append(problem)
    if problems:
        raise all_of(problems, file=candidate.path)
    where = shown_path(candidate.path)
    shown = tuple(f"{where}: {each}" for each in warnings)
    return ParsedFile(candidate.path, servers, limits, policy, profiles, candidate.origin == "project", shown)


def _check_top_level(document: Mapping[str, object], problems: list[ConfigError], warnings: list[str]) -> None:
    problems += unknown_keys(document, TOP_LEVEL_KEYS)
    version = document.get("version", 1)
    if isinstance(version, bool) or version != 1:
        problems.append(ConfigError("unknown version.", field="version", fix="Write 1, or leave it out."))
    if not isinstance(document.get("$schema", ""), str):
        problems.append(wrong(document["$schema"], "$schema", "text"))
    if not isinstance(document.get("gateway", True), bool):
        problems.append(wrong(document["gateway"], "gateway", "true or false"))
    inputs = document.get("inputs", [])
    if not isinstance(inputs, list):
        problems.append(wrong(inputs, "inputs", "a list"))
    elif inputs:
        warnings.append("'inputs' has no effect: nobody is asked for values, and a server that uses one won't start.")


def _limits(value: object, problems: list[ConfigError]) -> dict[str, float]:
    found: dict[str, float] = {}
    try:
        given = pairs(value, "limits")
    except ConfigError as problem:
        problems.append(problem)
        return found
    problems += unknown_keys(given, LIMIT_OF_KEY, within="limits.")
    for key in (key for key in given if key in LIMIT_OF_KEY):
        try:
            found[LIMIT_OF_KEY[key]] = check_limit(LIMIT_OF_KEY[key], given[key], f"limits.{key}")
        except ConfigError as problem:
            problems.append(problem)
    return found


def _servers(
    document: Mapping[str, object],
    candidate: Candidate,
    home: str | None,
    problems: list[ConfigError],
    warnings: list[str],
) -> tuple[ServerConfig, ...]:
    forms = [form for form in FORMS if form in document]
    if len(forms) != 1:
        if forms:
            problem = ConfigError("has both 'mcpServers' and 'servers'.", fix="Move all servers into one of them.")
        else:
            problem = ConfigError("has neither 'mcpServers' nor 'servers'.", fix='Write {"mcpServers": {}}.')
        problems.append(problem)
    servers: list[ServerConfig] = []
    for form in FORMS:
        try:
            entries = pairs(document.get(form, {}), form)
        except ConfigError as problem:
            problems.append(problem)
            continue
        around = _surroundings(form, candidate, home)
        for written, entry in entries.items():
            if len(problems) >= MOST_PROBLEMS_SOUGHT:
                break
            found: list[ConfigError] = []
            server = parse_server(written, entry, around, found, warnings)
            if server is not None and starts_toolbridge(server.command or "", server.args):
                warnings.append(f"server {quoted(written)} is toolbridge itself, and is left out: no run inside a run.")
            elif server is not None:
                servers.append(server)
            if found:
                problems += all_of(found, server=written[:60]).problems
    return tuple(servers)


def _surroundings(form: str, candidate: Candidate, home: str | None) -> Surroundings:
    return Surroundings(
        origin=Origin(candidate.origin, candidate.path),
        base=candidate.base,
        # `node server.js` of a project is the project's own file, wherever this program was started.
        default_cwd=candidate.base if candidate.origin == "project" else None,
        home=home,
        # core-agent, whose form this is, gives the empty text for a variable that is not set.
        unset_env="empty" if form == "servers" else "error",
        editor_values=editor_values(candidate.base, home) if is_editors_file(candidate.path) else {},
    )
