"""`toolbridge call`: call one tool from a shell."""

from __future__ import annotations

import json
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any, cast

import click

from toolbridge import Limits
from toolbridge.cli import OF_FAILURE, OK
from toolbridge.cli.server_options import ServerChoice, config_option, refuse_inside_run
from toolbridge.cli.terminal import write, write_error_object
from toolbridge.trust.sanitise import for_error
from toolbridge_codegen.catalog import plain_schema

if TYPE_CHECKING:
    from toolbridge_codegen.catalog import ToolSpec

_MOST_EXACT = 2**53 - 1
_DEEPEST = 4
_MOST_CHOICES = 20


@click.command(
    "call",
    context_settings={"ignore_unknown_options": True},  # a value may begin with a dash
    epilog=(
        "Exit codes: 0 the tool answered; 1 it failed, refused the arguments, or was denied; 2 wrong usage, or no such "
        "server or tool; 3 the call was stopped at a limit; 4 the server is not approved or can't be reached."
    ),
)
@click.argument("tool", metavar="SERVER.TOOL")
@click.argument("words", metavar="[KEY=VALUE]...", nargs=-1)
@click.option(
    "--json", "given", metavar="OBJECT", help='Arguments as a JSON object, or "-" for standard input; answer as JSON.'
)
@click.option("--timeout", type=float, metavar="SECONDS", help="Give up after this long. Default: 30.")
@config_option
@click.option("--audit-log", metavar="FILE", help="Append one line of JSON per event to this file.")
def command(
    tool: str,
    words: tuple[str, ...],
    *,
    given: str | None,
    timeout: float | None,
    config_file: str | None,
    audit_log: str | None,
) -> int:
    """Call one tool: approved, pinned, gated, validated and logged like any call of a program.

    VALUE is parsed by the type of KEY in the tool's schema; if that allows a string, it is one. Repeated keys become a
    list. KEY:=JSON is parsed as JSON. At a terminal, you are asked about an unapproved server. A text result is printed
    as it is, anything else as JSON.

    \b
    Examples:  toolbridge call weather.get_forecast location=Oslo days=2
               toolbridge call weather.get_forecast --json '{"location": "Oslo"}'
    """
    from toolbridge.cli.run_program import limits_of
    from toolbridge.cli.run_with_servers import call_with_servers

    refuse_inside_run()

    server, dot, name = tool.partition(".")
    if not (server and dot and name):
        raise click.UsageError(f"{tool!r} names no tool: write SERVER.TOOL, such as weather.get_forecast.")
    base = {} if given is None else _object(given)
    pairs = [_pair(word) for word in words]
    limits = limits_of(timeout, None, "javascript")
    chosen = ServerChoice(config_file, (server,))
    result = call_with_servers(
        server, name, lambda spec: {**base, **_arguments(spec, pairs)}, limits, chosen, audit_log=audit_log
    )
    for warning in result.warnings:
        write(sys.stderr, f"Warning: {warning}\n")
    failure = result.failure
    if failure is None:
        is_text = isinstance(result.value, str) and given is None
        shown = result.value if is_text else json.dumps(result.value, ensure_ascii=False, indent=2)
        write(sys.stdout, f"{shown}\n")
        return OK
    if given is not None:
        write_error_object(failure.kind, failure.message)
    else:
        effect = " The call may have taken effect." if result.calls and failure.kind != "raised" else ""
        write(sys.stderr, f"{failure.message}{effect}\n")
    return OF_FAILURE[failure.kind]


def program_of(tool: ToolSpec, arguments: dict[str, Any]) -> str:
    """Build the JavaScript program that makes the call. Arguments are JSON text: never code, never a prototype.

    Raises:
        click.ClickException: an integer is too large for JavaScript.
    """
    _check_exact(arguments)
    text = json.dumps(json.dumps(arguments))
    return f'require("host:mcp-{tool.server}")[{json.dumps(tool.identifier)}](JSON.parse({text}))'


def _check_exact(value: object) -> None:
    """Raise ClickException for an integer anywhere in the value that JavaScript can't represent exactly."""
    if isinstance(value, dict):
        for each in cast("dict[str, Any]", value).values():
            _check_exact(each)
    elif isinstance(value, list):
        for each in cast("list[Any]", value):
            _check_exact(each)
    elif isinstance(value, int) and abs(value) > _MOST_EXACT:
        raise click.ClickException(f"{value} is too large to be passed exactly: call the tool from a Python program.")


def _object(text: str) -> dict[str, Any]:
    """Parse the JSON object of --json, from standard input for `-`; ClickException if it is none."""
    from toolbridge.cli.run_program import read_source

    text = read_source("-", Limits()) if text == "-" else text
    value = _json(text, "--json")
    if not isinstance(value, dict):
        raise click.UsageError('--json takes an object, such as \'{"location": "Oslo"}\'.')
    return cast("dict[str, Any]", value)


def _json(text: str, what: str) -> Any:
    """Parse JSON; UsageError, which calls the text `what`, if it is malformed or has NaN."""
    try:
        return json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        problem = "nested too deeply" if isinstance(error, RecursionError) else error
    raise click.UsageError(f"{what} is not JSON: {for_error(str(problem), limit=200)}.")


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


def _pair(word: str) -> tuple[str, str, bool]:
    """Parse an argument into key, text, and whether the text is JSON; UsageError if it is none."""
    key, mark, text = word.partition("=")
    if not mark or key in ("", ":"):
        raise click.UsageError(f"{word!r} is no argument: write KEY=VALUE, or KEY:=JSON.")
    if key.startswith("-"):  # a misspelt option would reach the server
        raise click.UsageError(f"{word!r} is no option of call. Arguments have no dashes, or are given with --json.")
    return (key[:-1], text, True) if key.endswith(":") else (key, text, False)


def _arguments(tool: ToolSpec, pairs: list[tuple[str, str, bool]]) -> dict[str, Any]:
    """Convert arguments by the tool's schema; repeated keys become lists.

    Unconvertible text stays text: the validator explains. UsageError for malformed JSON after `:=`.
    """
    schema = plain_schema(tool.definition.input_schema)  # hostile: may be anything
    known = _members(_members(schema).get("properties"))
    found: dict[str, list[Any]] = {}
    for key, text, is_json in pairs:
        value = _json(text, f"{key}:=") if is_json else _value(known.get(key), text, schema)
        found.setdefault(key, []).append(value)
    arguments: dict[str, Any] = {}
    for key, values in found.items():
        nested = all(isinstance(value, list) for value in values)
        flat = [item for value in values for item in value] if nested else values
        arguments[key] = values[0] if len(values) == 1 else flat
    return arguments


def _value(schema: object, text: str, root: Any) -> Any:
    """Convert an argument's text: text where a string is allowed, else JSON if it parses; one item becomes a list."""
    types, items = _types(schema, root, _DEEPEST)
    if "string" in types:
        return text
    value: Any = text
    with suppress(ValueError, RecursionError):
        value = json.loads(text, parse_constant=_no_constant)
    is_item = types == {"array"} and type(value) is not list
    return cast("Any", [_value(items, text, root)] if is_item else value)


def _types(schema: object, root: Any, depth: int) -> tuple[set[str], object]:
    """The JSON types that a schema allows, and the schema of its items; follows local `$ref`s up to `depth`.

    Both are empty for an unknown or malformed schema.
    """
    known = _members(schema)
    if not known or depth == 0:
        return set(), None
    reference = known.get("$ref")
    if isinstance(reference, str) and reference.startswith("#/"):
        target: object = root
        for part in reference[2:].split("/")[:_DEEPEST]:
            target = _members(target).get(part.replace("~1", "/").replace("~0", "~"))
        return _types(target, root, depth - 1)
    types = {each for each in _list(known.get("type")) if isinstance(each, str)}
    types |= {"string" for each in (*_list(known.get("enum")), known.get("const")) if isinstance(each, str)}
    items: object = known.get("items")
    choices = [each for name in ("anyOf", "oneOf", "allOf") for each in _list(known.get(name))]
    for choice in choices[:_MOST_CHOICES]:
        more, inner = _types(choice, root, depth - 1)
        types, items = types | more, items or inner
    return types, items


def _members(value: object) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _list(value: object) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else [value]
