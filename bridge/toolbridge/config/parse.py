"""Parse a file's JSON object into servers, limits and rules; collects all mistakes before it reports any."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from functools import partial
from types import MappingProxyType
from typing import Literal, TypeVar, cast

from toolbridge.config.fields import (
    FIELDS,
    SENT_ANYWAY,
    TRANSPORT_OF_SPELLING,
    WITHOUT_EFFECT,
    check_fields,
    check_together,
    fields_of_entry,
    starts_toolbridge,
)
from toolbridge.config.policy import POLICY_KEYS, Policy, parse_policy
from toolbridge.config.profiles import Profile, parse_profiles
from toolbridge.config.read_file import Candidate
from toolbridge.config.references import (
    editor_values,
    expand_editor_variables,
    expand_in_values,
    is_editors_file,
    looks_expandable,
)
from toolbridge.config.server_config import Origin, ServerConfig, ServerLimits, Transport, check_limit, checked_server
from toolbridge.config.values import (
    MOST_PROBLEMS_SOUGHT,
    absolute_directory,
    all_of,
    checked_members,
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

# One server's entry in a file, in the spelling of any client.


_T = TypeVar("_T")
_KEY = {each.attribute: each.key for each in FIELDS} | {"transport": "transport"}


@dataclass(frozen=True, slots=True)
class EntryContext:
    """The file around an entry: where it came from, and how paths and variables in it are resolved."""

    origin: Origin
    base: str
    """The directory that a relative `cwd` is resolved against."""
    default_cwd: str | None
    home: str | None
    unset_env: Literal["error", "empty"]
    editor_values: Mapping[str, str]
    """Values of VS Code's own variables; empty for every other file."""


def parse_server(
    written: str, entry: object, context: EntryContext, problems: list[ConfigError], warnings: list[str]
) -> ServerConfig | None:
    """Parse one server's entry, in any client's spelling; None after adding all its mistakes to `problems`.

    `problems` must be empty when called. Adds to `warnings` only if there is a server. Paths become absolute;
    references stay as written. Reads a file of output schemas, if one is named.
    """
    if not isinstance(entry, Mapping):
        problem = f"expected an object, found {kind_of(entry)}."
        problems.append(ConfigError(problem, fix='Write {"command": …} or {"url": …}.'))
        return None
    name = _collect(problems, name_for, written)
    given = pairs(cast("object", entry), "")
    if context.editor_values:
        given |= {
            key: expand_in_values(given[key], context.editor_values) for key in ("env", "headers") if key in given
        }
        if "cwd" in given:
            given["cwd"] = expand_editor_variables(given["cwd"], context.editor_values, has_references=False)
    absolute = partial(absolute_directory, base=context.base, home=context.home)
    given, keys = fields_of_entry(given, absolute, problems, without_effect=WITHOUT_EFFECT)

    def label(attribute: str) -> str:
        return keys.get(attribute, _KEY[attribute])

    dropped = _drop_our_own_headers(given)
    transport = _transport(given, label, problems)
    kept = {} if transport is None else check_fields(given, transport, label, problems)
    if problems or transport is None or name is None:
        return None
    if transport == "stdio" and context.default_cwd is not None:
        kept.setdefault("cwd", context.default_cwd)
    kept.setdefault("unset_env", context.unset_env)
    display_name = written if written != name else ""
    known = {"name": name, "transport": transport, "origin": context.origin, "display_name": display_name}
    server = checked_server(**known, **kept)
    ignored = sorted(key for key in cast("Mapping[str, object]", entry) if key in WITHOUT_EFFECT)
    warnings += [f"server {quoted(written)}: {each}" for each in (*dropped, *_warnings(server, ignored))]
    return server


def _transport(given: dict[str, object], label: Callable[[str], str], problems: list[ConfigError]) -> Transport | None:
    """Remove `transport` from `given`, or infer it from `command` or `url`; None after adding a problem."""
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
    """Remove headers that the transport sets anyway from `given`, in place; returns a warning if there were any.

    Other clients' files repeat them. Headers that are no object are left to the check that follows.
    """
    found = given.get("headers")
    if not isinstance(found, Mapping):
        return []
    written = cast("Mapping[object, object]", found)
    dropped = [name for name in written if isinstance(name, str) and name.lower() in SENT_ANYWAY]
    given["headers"] = {name: value for name, value in written.items() if name not in dropped}
    return [f"'headers' is read without {listed(sorted(dropped), 'and')}: the transport sets that."] if dropped else []


def _collect(problems: list[ConfigError], check: Callable[..., _T], *values: object) -> _T | None:
    """Call `check` with the values; on a ConfigError, add what it lists to `problems` and return None."""
    try:
        return check(*values)
    except ConfigError as problem:
        problems += problem.problems
        return None


def _warnings(server: ServerConfig, ignored: Iterable[str]) -> Iterator[str]:
    """Yield warnings about an accepted server: ignored keys, a space in its command, references not expanded."""
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
        yield f"a '${{' in {where} is not expanded: references work in 'env' and 'headers' only."


FORMS = ("mcpServers", "servers")
TOP_LEVEL_KEYS = (*FORMS, "version", "limits", "inputs", "gateway", "profiles", *POLICY_KEYS, "$schema")


def _camel_case(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


LIMIT_OF_KEY: Mapping[str, str] = MappingProxyType({_camel_case(each.name): each.name for each in fields(ServerLimits)})
"""Name of each limit by its key in a file."""


@dataclass(frozen=True, slots=True)
class ParsedFile:
    """The content of one file."""

    path: str
    servers: tuple[ServerConfig, ...]
    limits: Mapping[str, float]
    """Only those that the file sets."""
    policy: Policy
    profiles: tuple[Profile, ...]
    is_project: bool
    """Whether it comes with a repository: it may make rules stricter, never looser."""
    warnings: tuple[str, ...]


def parse_file(document: Mapping[str, object], candidate: Candidate, home: str | None) -> ParsedFile:
    """Parse a file's JSON object, which was read already; only files of output schemas are read here.

    A server that is toolbridge itself is left out with a warning.

    Raises:
        ConfigError: lists all problems: server, field, what was found and what to write.
    """
    problems: list[ConfigError] = []
    warnings: list[str] = []
    _check_top_level(document, problems, warnings)
    limits: dict[str, float] = {}
    if "limits" in document:
        checks = {key: partial(check_limit, name) for key, name in LIMIT_OF_KEY.items()}
        given = _collect(problems, checked_members, document["limits"], "limits", checks) or {}
        limits = {LIMIT_OF_KEY[key]: limit for key, limit in given.items()}
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
        _collect(problems, check_together, servers)
    if problems:
        raise all_of(problems, file=candidate.path)
    where = shown_path(candidate.path)
    shown = tuple(f"{where}: {each}" for each in warnings)
    return ParsedFile(candidate.path, servers, limits, policy, profiles, candidate.origin == "project", shown)


def _check_top_level(document: Mapping[str, object], problems: list[ConfigError], warnings: list[str]) -> None:
    """Check all but servers, limits, rules and profiles; adds to `problems` and `warnings`, raises nothing."""
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
        warnings.append("'inputs' has no effect: values are not prompted for, and a server that uses one won't start.")


def _servers(
    document: Mapping[str, object],
    candidate: Candidate,
    home: str | None,
    problems: list[ConfigError],
    warnings: list[str],
) -> tuple[ServerConfig, ...]:
    """Parse all entries; adds to `problems` and `warnings`, and stops at `MOST_PROBLEMS_SOUGHT`.

    A server that is toolbridge itself is left out with a warning.
    """
    if all(form in document for form in FORMS):
        problems.append(ConfigError("has both 'mcpServers' and 'servers'.", fix="Move all servers into one of them."))
    elif not any(form in document for form in FORMS):
        problems.append(ConfigError("has neither 'mcpServers' nor 'servers'.", fix='Write {"mcpServers": {}}.'))
    servers: list[ServerConfig] = []
    for form in FORMS:
        entries = _collect(problems, pairs, document.get(form, {}), form) or {}
        context = _entry_context(form, candidate, home)
        for written, entry in entries.items():
            if len(problems) >= MOST_PROBLEMS_SOUGHT:
                break
            found: list[ConfigError] = []
            server = parse_server(written, entry, context, found, warnings)
            if server is not None and starts_toolbridge(server.command or "", server.args):
                warnings.append(f"server {quoted(written)} is toolbridge itself, and is left out: no run inside a run.")
            elif server is not None:
                servers.append(server)
            if found:
                problems += all_of(found, server=written[:60]).problems
    return tuple(servers)


def _entry_context(form: str, candidate: Candidate, home: str | None) -> EntryContext:
    """Build the context of a file's entries; `form` is the key of its servers."""
    return EntryContext(
        origin=Origin(candidate.origin, candidate.path),
        base=candidate.base,
        # `node server.js` of a project is the project's own file, wherever this program was started.
        default_cwd=candidate.base if candidate.origin == "project" else None,
        home=home,
        # core-agent, whose form this is, gives the empty text for a variable that is not set.
        unset_env="empty" if form == "servers" else "error",
        editor_values=editor_values(candidate.base, home) if is_editors_file(candidate.path) else {},
    )
