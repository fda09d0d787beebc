"""From a file's JSON object to servers and limits. Every mistake in a file is found before any is reported."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from types import MappingProxyType

from toolbridge.config.editor_variables import editor_values, is_editors_file
from toolbridge.config.locate import Candidate
from toolbridge.config.parse_server import Surroundings, parse_server
from toolbridge.config.policy import POLICY_KEYS, Policy, parse_policy
from toolbridge.config.profiles import Profile, parse_profiles
from toolbridge.config.server_config import Origin, ServerConfig
from toolbridge.config.server_limits import ServerLimits, check_limit
from toolbridge.config.validate import check_together, starts_toolbridge
from toolbridge.config.values import absolute_directory, pairs, wrong
from toolbridge.config.wording import MOST_PROBLEMS_SOUGHT, all_of, quoted, shown_path, unknown_keys
from toolbridge.errors import ConfigError

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
