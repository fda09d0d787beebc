"""Wire format: frames between host and guest, as guest/WIRE.md specifies them.

Frames are JSON in UTF-8. Frames of the guest are validated field by field, and unknown fields refused, so that a guest
of another version gets an error.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple, cast

from toolbridge.json_codec import (
    WireError,
    decode_json,
    encode_json,
    json_text,
    scan_json,
    scan_whole,
    without_lone_surrogates,
)

WIRE_VERSION = 1

JsonValue = None | bool | int | float | str | list["JsonValue"] | dict[str, "JsonValue"]


class CallRequest(NamedTuple):
    """Guest → host: call a function of a module."""

    module: str
    function: str
    arguments: list[Any]


class ImportRequest(NamedTuple):
    """Guest → host: list the functions of a module."""

    module: str


class ErrorFrame(NamedTuple):
    """Host → guest: the call failed. `kind` is for programs, `message` for reading."""

    kind: str
    message: str
    name: str | None = None
    data: JsonValue = None
    server: str | None = None
    tool: str | None = None


class HandleFrame(NamedTuple):
    """Host → guest: a handle at a path of the value."""

    path: tuple[str | int, ...]
    identity: int
    mime: str
    size: int
    name: str = ""


class RunFrame(NamedTuple):
    """Host → guest: run this program."""

    source: str
    file: str
    seed: str
    stack: int


class GuestError(NamedTuple):
    """A thrown value as the guest describes it. Hostile text, bounded in length."""

    name: str
    message: str
    stack: str
    module: str = ""
    function: str = ""
    kind: str = ""
    causes: tuple[str, ...] = ()


class OutcomeFrame(NamedTuple):
    """Guest → host: the run's value, or why it failed."""

    value: Any = None
    failure_kind: str | None = None
    error: GuestError | None = None


# ── guest → host ──────────────────────────────────────────────────────────────────────────────────────────────────

_CALL_FIELDS = {"op", "module", "function", "arguments"}
_IMPORT_FIELDS = {"op", "module"}
_LAST_FIELD = ',"arguments":'
_MOST_HEADS = 1000
_LONGEST_HEAD = 1000


KnownHeads = dict[str, tuple[str, str]]
"""Cache: head of a call frame → module and function."""


def decode_request(data: bytes, heads: KnownHeads | None = None) -> CallRequest | ImportRequest:
    """Decodes a request frame.

    All calls of a function have the same head. Decoded heads are cached in `heads`, and then only the arguments are
    decoded: saves a third of the cost of a host call.

    Raises:
        WireError: the frame is malformed.
    """
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        raise WireError("not UTF-8") from None
    if "\\u" in text:
        text = without_lone_surrogates(text)
    heads = {} if heads is None else heads
    at = text.find(_LAST_FIELD) + len(_LAST_FIELD)
    known = heads.get(text[:at])
    if known is not None:
        arguments, end = scan_json(text, at)
        if type(arguments) is list and text[end:] == "}":
            return CallRequest(known[0], known[1], arguments)
    request = _decode_fields(scan_whole(text))
    if type(request) is CallRequest and len(heads) < _MOST_HEADS and at <= _LONGEST_HEAD:
        head = text[:at]
        if head == call_head(request):
            heads[head] = (request.module, request.function)
    return request


def call_head(request: CallRequest) -> str:
    """Returns a call frame up to its arguments, as the guest writes it."""
    module, function = json_text(request.module), json_text(request.function)
    return f'{{"op":"call","module":{module},"function":{function}{_LAST_FIELD}'


def _decode_fields(frame: Any) -> CallRequest | ImportRequest:
    """Validates the fields of a request; raises WireError for missing, unknown or mistyped ones."""
    if type(frame) is not dict:
        raise WireError("a request is an object")
    fields = cast("dict[str, Any]", frame)
    op = fields.get("op")
    if op == "call":
        if fields.keys() != _CALL_FIELDS:
            raise WireError("a call has the fields op, module, function and arguments")
        module, function, arguments = fields["module"], fields["function"], fields["arguments"]
        if type(module) is not str or type(function) is not str or type(arguments) is not list:
            raise WireError("a call's module and function are strings, its arguments an array")
        return CallRequest(module, function, cast("list[Any]", arguments))
    if op == "import":
        if fields.keys() != _IMPORT_FIELDS or type(fields["module"]) is not str:
            raise WireError("an import has the fields op and module, a string")
        return ImportRequest(fields["module"])
    raise WireError("a request's op is call or import")


_OUTCOME_FIELDS = {"wire", "value", "failure"}
_FAILURE_KINDS = ("syntax", "raised", "out_of_memory")
_ERROR_FIELDS = {"name", "message", "stack"}
_MOST_ERROR_TEXT = 16_000


def decode_outcome(data: bytes) -> OutcomeFrame:
    """Decodes the frame that ends a run.

    Raises:
        WireError: the frame is malformed.
    """
    frame = decode_json(data)
    fields: dict[str, Any] = cast("dict[str, Any]", frame) if type(frame) is dict else {}
    version = fields.get("wire")
    if type(version) is not int or version != WIRE_VERSION:
        raise WireError(f"an outcome says wire {WIRE_VERSION}")
    if len(fields) > 2 or not fields.keys() <= _OUTCOME_FIELDS:
        raise WireError("an outcome has a value or a failure")
    if "failure" not in fields:
        return OutcomeFrame(value=fields.get("value"))
    failure = fields["failure"]
    if type(failure) is not dict or failure.keys() != {"kind", "error"}:  # pyright: ignore[reportUnknownMemberType]
        raise WireError("a failure has the fields kind and error")
    kind = cast("dict[str, Any]", failure)["kind"]
    if kind not in _FAILURE_KINDS:
        raise WireError("a failure's kind is one of " + ", ".join(_FAILURE_KINDS))
    return OutcomeFrame(failure_kind=kind, error=_decode_error(cast("dict[str, Any]", failure)["error"]))


def _decode_error(error: object) -> GuestError:
    """Validates the error of a failure, truncating long texts; raises WireError for mistyped fields."""
    if type(error) is not dict:
        raise WireError("a failure's error is an object")
    fields = cast("dict[str, Any]", error)
    optional = {"module", "function", "kind"}
    if not _ERROR_FIELDS <= fields.keys() <= _ERROR_FIELDS | optional | {"causes"}:
        raise WireError("an error has the fields name, message and stack")
    texts: dict[str, str] = {}
    for name in fields.keys() - {"causes"}:
        if type(fields[name]) is not str:
            raise WireError(f"an error's {name} is a string")
        texts[name] = fields[name][:_MOST_ERROR_TEXT]
    causes = fields.get("causes", [])
    if type(causes) is not list or not all(type(cause) is str for cause in cast("list[Any]", causes)):
        raise WireError("an error's causes are strings")
    kept = tuple(cause[:_MOST_ERROR_TEXT] for cause in cast("list[str]", causes)[:5])
    return GuestError(**texts, causes=kept)


# ── host → guest ──────────────────────────────────────────────────────────────────────────────────────────────────


def encode_run(frame: RunFrame) -> bytes:
    """Encodes the frame that starts a run."""
    return encode_json(
        {"wire": WIRE_VERSION, "source": frame.source, "file": frame.file, "seed": frame.seed, "stack": frame.stack}
    )


def encode_value(value: object) -> bytes:
    """Encodes the reply with a call's value.

    Raises:
        WireError: the value has no JSON form.
    """
    return encode_json(value, '{"ok":', "}")


def encode_error(error: ErrorFrame) -> bytes:
    """Encodes the reply of a failed call.

    Raises:
        WireError: its data has no JSON form.
    """
    fields = {name: value for name, value in error._asdict().items() if value is not None}
    return b'{"error":%b}' % encode_json(fields)


def encode_handles(handles: Iterable[HandleFrame], value: bytes) -> bytes:
    """Encodes the reply with a value, already JSON, that has handles at some paths."""
    listed = [
        [
            list(each.path),
            {"id": each.identity, "mime": each.mime, "size": each.size} | ({"name": each.name} if each.name else {}),
        ]
        for each in handles
    ]
    return b'{"handles":%b,"ok":%b}' % (encode_json(listed), value)


def encode_settled(call: int, reply: bytes) -> bytes:
    """Encodes a started call's reply with the call's number."""
    return b'{"id":%d,%b' % (call, reply[1:])


def encode_module(module: str, functions: list[str], *, is_async: bool) -> bytes:
    """Encodes the reply to an import."""
    return encode_value({"module": module, "functions": functions, "async": is_async})
