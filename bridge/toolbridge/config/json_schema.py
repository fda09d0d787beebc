"""The JSON Schema of a configuration file, for editors: generated from the tables that the parser reads by.

It knows every key, type, word and range. What needs more than one value at a time (twins, references, whether a pattern
can match) is left to the parser.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from toolbridge.config import fields as server_fields
from toolbridge.config import policy, values
from toolbridge.config.fields import ATTRIBUTE_OF_KEY, FIELDS, OAUTH_KEYS, TRANSPORT_OF_SPELLING, WITHOUT_EFFECT
from toolbridge.config.parse import FORMS, LIMIT_OF_KEY
from toolbridge.config.profiles import MOST_PROFILES, PROFILE_NAME
from toolbridge.config.server_config import RANGES, ServerLimits

_Schema = dict[str, Any]
_TEXT: _Schema = {"type": "string"}
_SOME_TEXT: _Schema = {"type": "string", "pattern": r"\S"}
_NAMES: _Schema = {"type": "array", "items": _SOME_TEXT}
_FLAG: _Schema = {"type": "boolean"}
_LABEL = rf"^({'|'.join(policy.LABELS)})(:\s*\S.*)?$"
_PATTERN = r"^(\*|mcp__[!-~]+__[!-~]+|mcp:[!-~]+_[!-~]+)$"
_SERVER_NAME = r"^(?!.*__)(?![Hh][Oo][Ss][Tt]:)(?![Hh][Aa]:).*\S"

_OAUTH: Mapping[str, _Schema] = {
    **dict.fromkeys(OAUTH_KEYS, _SOME_TEXT),
    "scopes": _NAMES,
    "redirectPort": {"type": "integer", "minimum": 1, "maximum": 65535},
}


def _object(properties: Mapping[str, Any], **more: Any) -> _Schema:
    return {"type": "object", "additionalProperties": False, "properties": dict(properties), **more}


def _map(member: _Schema, **more: Any) -> _Schema:
    return {"type": "object", "additionalProperties": member, **more}


_OF_CHECK: Mapping[values.Check, _Schema] = {
    values.any_text: _TEXT,
    values.some_text: _SOME_TEXT,
    values.working_directory: _SOME_TEXT,
    values.texts: {"type": "array", "items": _TEXT},
    values.names: _NAMES,
    values.denied_names: _NAMES,
    values.variables: _NAMES,
    values.flag: _FLAG,
    values.environment: _map(_TEXT),
    values.seconds: {"type": "number", "minimum": values.LEAST_SECONDS, "maximum": values.MOST_SECONDS},
    values.unset_env: {"enum": ["error", "empty"]},
    values.reading: {"enum": ["intended", "literal"]},
    policy.labels: {"type": "array", "items": {"type": "string", "pattern": _LABEL}},
    server_fields.url: {"type": "string", "pattern": r"^[Hh][Tt][Tt][Pp][Ss]?://[^/?@\s]+([/?]\S*)?$"},
    server_fields.headers: _map(_TEXT),
    server_fields.oauth: _object(_OAUTH),
    server_fields.output_schemas: {"anyOf": [_SOME_TEXT, _map({"type": "object"})]},
}
"""By the function that checks a field: what it takes, as far as a schema can say."""


def json_schema() -> _Schema:
    """Build the JSON Schema (draft 2020-12) of a configuration file, a new object at each call."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "toolbridge configuration",
        "type": "object",
        # A file that switches all of MCP off is not read any further.
        "if": {"properties": {"gateway": {"const": False}}, "required": ["gateway"]},
        "else": {"$ref": "#/$defs/file"},
        "$defs": {"file": _file(), "servers": _servers(), "server": _server(), "profile": _profile()},
    }


def _file() -> _Schema:
    """The schema of a whole file: keys at the top, exactly one form of servers."""
    level = {"enum": list(policy.LEVELS)}
    patterns = {"type": "array", "items": {"type": "string", "pattern": _PATTERN, "maxLength": policy.MOST_CHARACTERS}}
    keys = {
        "$schema": _TEXT,
        "version": {"const": 1},
        **{form: {"description": "Servers by name.", "$ref": "#/$defs/servers"} for form in FORMS},
        "inputs": {"description": "VS Code's; without effect here.", "type": "array"},
        "limits": _limits(),
        "gateway": {"description": "false switches all of MCP off.", "type": "boolean", "default": True},
        "profiles": _map(
            {"$ref": "#/$defs/profile"},
            description="Named sets of servers, active only while the profile is chosen.",
            maxProperties=MOST_PROFILES,
            propertyNames={"pattern": f"^{PROFILE_NAME.pattern}$", "not": {"const": "default"}},
        ),
        "permissions": _object(
            {each: level if each == "default" else patterns for each in policy.PERMISSION_KEYS},
            description="Which tools may be called. deny wins over ask, ask over allow, all of them over the default.",
        ),
        "flows": _object(
            {rule: {**level, "default": policy.DEFAULT_FLOWS.get(rule, "allow")} for rule in policy.FLOW_RULES},
            description="Level of calls to servers with the label on the right, after calls to all on the left.",
        ),
        "errors": {"description": "How guest code gets a tool's error.", "enum": list(policy.ERRORS)},
        "plugins": _object({"allow": _NAMES, "deny": _NAMES}, description="Which plugins may offer servers."),
        "unattended": {
            "description": "Calls made without a person to ask.",
            "enum": list(policy.UNATTENDED),
        },
        "strictResults": {**_FLAG, "description": "Results that break the tool's output schema are errors."},
    }
    return _object(keys, oneOf=[{"required": [form]} for form in FORMS])


def _limits() -> _Schema:
    """The schema of `limits`: the range and default of each."""
    found: dict[str, _Schema] = {}
    defaults = {each.name: each.default for each in fields(ServerLimits)}
    for key, name in LIMIT_OF_KEY.items():
        kind = "number" if name.endswith("_seconds") else "integer"
        least, most = RANGES[name]
        found[key] = {"type": kind, "minimum": least, "maximum": most, "default": defaults[name]}
    return _object(found, description="Caps for all servers together, and for each.")


def _servers() -> _Schema:
    """The schema of the object of servers, and of their names as written, reserved ones excluded."""
    reserved = sorted({each.replace("-", mark) for each in values.RESERVED_NAMES for mark in "-_"})
    names = {"maxLength": values.MOST_WRITTEN_CHARACTERS, "pattern": _SERVER_NAME, "not": {"enum": reserved}}
    return _map({"$ref": "#/$defs/server"}, propertyNames=names)


def _server() -> _Schema:
    """The schema of one server's entry, with all spellings of its keys and no two of one field."""
    known = {each.attribute: {"description": each.description, **_OF_CHECK[each.check]} for each in FIELDS if each.key}
    transport = {"description": "How the server is reached.", "enum": list(TRANSPORT_OF_SPELLING)}
    spellings: dict[str, list[str]] = {}
    for key, attribute in ATTRIBUTE_OF_KEY.items():
        spellings.setdefault(attribute, []).append(key)
    return _object(
        {key: known.get(attribute, transport) for key, attribute in ATTRIBUTE_OF_KEY.items()}
        | {key: {"description": "VS Code's; without effect here."} for key in sorted(WITHOUT_EFFECT)},
        oneOf=[_reached("command", server_fields.STDIO), _reached("url", server_fields.REMOTE)],
        allOf=[{"not": {"required": keys}} for keys in spellings.values() if len(keys) > 1],
    )


def _reached(needed: str, transports: frozenset[str]) -> _Schema:
    """The schema of an entry that has the key `needed`, and no field of another transport."""
    own = {"enum": [each for each, transport in TRANSPORT_OF_SPELLING.items() if transport in transports]}
    others = {each.attribute for each in FIELDS if not each.transports & transports}
    foreign = {key: False for key, attribute in ATTRIBUTE_OF_KEY.items() if attribute in others}
    return {"required": [needed], "properties": {"transport": own, "type": own, **foreign}}


def _profile() -> _Schema:
    """The schema of one profile: any field of a server but the transport can be overridden."""
    fields_of_server = {key for key, attribute in ATTRIBUTE_OF_KEY.items() if attribute != "transport"}
    override = _object({key: {"$ref": f"#/$defs/server/properties/{key}"} for key in sorted(fields_of_server)})
    keys = {**dict.fromkeys(FORMS, _NAMES), "overrides": _map(override), "description": _TEXT}
    return _object(keys, **{"not": {"required": list(FORMS)}})
