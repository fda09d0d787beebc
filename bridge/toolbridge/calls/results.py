"""SECURITY: what a tool sent becomes what guest code gets. docs/use-results.md has the rules as a table.

The result comes from a server as it is: any field may be missing or of a wrong type. Nothing in it raises but
`ServerProtocolError`, and nothing of it is lost without a note.
"""

from __future__ import annotations

import binascii
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, cast
from urllib.parse import unquote

import anyio.to_thread

from toolbridge.boundary.host_call import CallFailed, Reply
from toolbridge.boundary.wire import ErrorFrame, encode_handles
from toolbridge.errors import ServerProtocolError
from toolbridge.json_codec import (
    NotJsonError,
    compact_text,
    has_long_integer,
    is_marked_not_utf8,
    mapped,
    strict_json,
    utf8,
    without_infinite_numbers,
    without_large_integers,
)
from toolbridge.limits import Limits
from toolbridge.trust.text.sanitise import for_error, for_guest_error, masked, masked_bytes
from toolbridge_codegen.catalog import ToolSpec
from toolbridge_codegen.derive.tools import is_wrapped_result

if TYPE_CHECKING:
    from toolbridge.calls.tool_call import CallRules, CheckedCall, HandleStore
    from toolbridge.servers.manager import ServerManager


# Sizes as people and models read them.


def size_text(size: int) -> str:
    """`512 B`, `3.1 KB`, `34 KB`, `2.5 MB`: of 1024, with a decimal below ten, as guest code shows handles."""
    if size < 1024:
        return f"{size} B"
    amount, unit = size / 1024, "KB"
    if round(amount) >= 1024:
        amount, unit = amount / 1024, "MB"
    return f"{amount:.1f} {unit}" if amount < 9.95 else f"{amount:.0f} {unit}"


# Data that guest code gets as a handle instead of as a value.


UNKNOWN_MIME = "application/octet-stream"
LONGEST_NAME = 100

_MIME = re.compile(r"[a-z0-9][a-z0-9!#$&^_.+-]{0,63}/[a-z0-9][a-z0-9!#$&^_.+-]{0,63}")
# Types that are text without saying so in their first half.
_TEXT_SUBTYPE = re.compile(
    r"application/(?:.*[+.-])?(?:json5?|xml|yaml|toml|csv|javascript|typescript|ecmascript|sql|graphql|x-sh|ndjson|jsonl"
    r"|x-ndjson|jsonlines|x-www-form-urlencoded|x-httpd-php|x-python|x-tex|rtf|x-subrip)|image/svg\+xml"
)


@dataclass(frozen=True, slots=True)
class Blob:
    """Bytes with what is known of them."""

    data: bytes
    mime: str
    name: str = ""

    @property
    def is_text(self) -> bool:
        """Whether its bytes are meant to be read as text."""
        return self.mime.startswith("text/") or _TEXT_SUBTYPE.fullmatch(self.mime) is not None

    @property
    def is_json(self) -> bool:
        """Whether its bytes are one JSON value."""
        return self.mime in ("application/json", "text/json") or self.mime.endswith("+json")


def clean_mime(given: object) -> str:
    """A server's word for a type, without parameters; what is no such word is no type."""
    if not isinstance(given, str) or len(given) > 1000:
        return UNKNOWN_MIME
    mime = given.partition(";")[0].strip().lower()
    return mime if _MIME.fullmatch(mime) else UNKNOWN_MIME


def clean_name(given: object, secrets: frozenset[str]) -> str:
    """A server's name for something, harmless and short."""
    return for_error(given, secrets, limit=LONGEST_NAME) if isinstance(given, str) else ""


def name_in_uri(uri: object, secrets: frozenset[str]) -> str:
    """The last part of a URI's path: what a person would call the file. Never more than one part of a path."""
    if not isinstance(uri, str):
        return ""
    path = unquote(uri[:4000].partition("#")[0].partition("?")[0]).replace("\\", "/").rstrip("/")
    name = path.rpartition("/")[2]
    return clean_name("" if name in ("", ".", "..") or name.endswith(":") else name, secrets)


# SECURITY: how one value of a server's result is given to guest code: masked, exact, within the inline limit.


JSON_MIME = "application/json"
TEXT_MIME = "text/plain"
_MOST_NOTES = 20
_MASKED = "the server's own secrets are masked in the result"


class Piece(NamedTuple):
    """A value with its JSON, or a blob in its place."""

    value: Any
    encoded: bytes
    blob: Blob | None = None


def blob_piece(blob: Blob) -> Piece:
    """A place where a handle belongs."""
    return Piece(None, b"null", blob)


class Delivery:
    """The rules for one result, and what was noted under them."""

    __slots__ = ("exact_integers", "inline_bytes", "notes", "secrets")

    def __init__(self, inline_bytes: int, secrets: frozenset[str], exact_integers: bool) -> None:
        self.inline_bytes = inline_bytes
        self.secrets = secrets
        self.exact_integers = exact_integers
        self.notes: list[str] = []

    def note(self, text: str) -> None:
        """Say something of the result to whoever reads the call's record."""
        if text not in self.notes and len(self.notes) < _MOST_NOTES:
            self.notes.append(text)

    def masked(self, text: str) -> str:
        """Text without known secrets."""
        clean = masked(text, self.secrets) if self.secrets else text
        if clean != text:
            self.note(_MASKED)
        return clean

    def text(self, text: str, mime: str = TEXT_MIME, name: str = "") -> Piece:
        """A text: a string, or a handle if it is too large."""
        text = self.masked(text)
        encoded = utf8(compact_text(text), text)
        return Piece(text, encoded) if len(encoded) <= self.inline_bytes else blob_piece(text_blob(text, mime, name))

    def value(self, value: Any, text: str | None = None) -> Piece:
        """A JSON value; `text` is its JSON if that is known, and is then not made again.

        Raises:
            NotJsonError: it has no JSON form.
        """
        written = text
        if written is None:
            value, written = self._written(value)
        if self.secrets:
            value, written = self._without_secrets(value, written, is_ours=text is None)
        data = utf8(written, value)
        if len(data) > self.inline_bytes and written is text:
            data = utf8(compact_text(value), value)  # it may be large only for its white space
        if len(data) > self.inline_bytes:
            return blob_piece(Blob(data, JSON_MIME))  # every number exact: a handle is not read as a whole
        if not self.exact_integers and has_long_integer(data):
            value, found = without_large_integers(value)
            if found:
                self.note(f"integers beyond ±(2^53-1) are given as strings of digits: {found}")
                data = utf8(compact_text(value), value)
        return Piece(value, data)

    def data(self, data: bytes, mime: str, name: str) -> Piece:
        """Binary data, without secrets. Whether it is text its bytes say, not the type that the server gives it."""
        blob = Blob(data, mime, name)
        if not self.secrets:
            return blob_piece(blob)
        try:
            text = data.decode("utf-8", "surrogateescape" if blob.is_text else "strict")
        except UnicodeDecodeError:
            clean = masked_bytes(data, self.secrets)
            if clean != data:
                self.note(_MASKED)
            return blob_piece(Blob(clean, mime, name))
        masked_text = self.masked(text)
        if masked_text != text:
            blob = Blob(masked_text.encode("utf-8", "surrogateescape"), mime, name)
        return blob_piece(blob)

    def _written(self, value: Any) -> tuple[Any, str]:
        try:
            return value, compact_text(value)
        except NotJsonError:
            value, found = without_infinite_numbers(value)
            if not found:
                raise
            self.note(f"numbers that JSON doesn't have (NaN, Infinity) are given as null: {found}")
            return value, compact_text(value)

    def _without_secrets(self, value: Any, written: str, *, is_ours: bool) -> tuple[Any, str]:
        # Somebody else's text may have escaped any character.
        looked_at = written if is_ours or "\\" not in written else compact_text(value)
        if masked(looked_at, self.secrets) == looked_at:
            return value, written
        value = mapped(value, self._masked_scalar, self.masked)
        written = compact_text(value)
        if masked(written, self.secrets) != written:
            value = mapped(value, _same, change_list=self._masked_bytes)
            written = compact_text(value)
        return value, written

    def _masked_bytes(self, items: list[Any]) -> Any:
        """A list of numbers may be the bytes of a secret, as Node writes a buffer: then it is masked as a whole."""
        if not all(type(item) is int for item in items):
            return items
        written = compact_text(items)
        clean = self.masked(written)
        return items if clean == written else clean

    def _masked_scalar(self, scalar: Any) -> Any:
        if isinstance(scalar, str):
            return self.masked(scalar)
        if type(scalar) is int and scalar.bit_length() < 256:
            digits = str(scalar)
            clean = self.masked(digits)
            return scalar if clean == digits else clean
        return scalar


def _same(scalar: Any) -> Any:
    return scalar


def text_blob(text: str, mime: str, name: str = "") -> Blob:
    """A text as bytes; half a surrogate pair is no character and becomes U+FFFD."""
    return Blob(text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace").encode("utf-8"), mime, name)


# SECURITY: one block of a result's content, as a value or a handle. Every field is a server's, and may be anything.


# White space that some encoders put into long base64.
_WHITE_SPACE = {ord(character): None for character in " \t\r\n"}
_DATA_URL = re.compile(r"data:[^,]{0,200};base64,", re.IGNORECASE)
_JSON_STARTS = ("{", "[")


class BadBlockError(ValueError):
    """A block that can't be what it says it is."""


def fields_of(value: object) -> dict[str, Any]:
    """The fields of an object; none of what is no object."""
    return dict(cast("Mapping[str, Any]", value)) if isinstance(value, Mapping) else {}


def kind_of(block: object) -> str:
    """What a block says it is."""
    kind = fields_of(block).get("type")
    return kind if isinstance(kind, str) else ""


def carries_data(block: object) -> bool:
    """Whether a block holds data that no text beside it can repeat."""
    return kind_of(block) in ("image", "audio") or "blob" in fields_of(fields_of(block).get("resource"))


def text_of(block: object) -> str | None:
    """The text of a text block."""
    text = fields_of(block).get("text") if kind_of(block) == "text" else None
    return text if isinstance(text, str) else None


def block_piece(block: object, delivery: Delivery) -> Piece:
    """What guest code gets for a block.

    Raises:
        BadBlockError: its base64 is none.
        NotJsonError: it is nested too deeply.
    """
    fields = fields_of(block)
    kind = kind_of(fields)
    text = text_of(fields)
    if text is not None:
        return _text_piece(text, delivery)
    if kind in ("image", "audio"):
        return delivery.data(_decoded(fields.get("data")), clean_mime(fields.get("mimeType")), "")
    if kind == "resource_link" and isinstance(fields.get("uri"), str):
        return delivery.value(_link(fields, delivery))
    if kind == "resource":
        piece = _resource_piece(fields_of(fields.get("resource")), delivery)
        if piece is not None:
            return piece
    shown = clean_name(kind, delivery.secrets)
    delivery.note(f"a block of content of an unknown form is given as it came: {shown or 'it says no type'}")
    return delivery.value(fields if isinstance(block, Mapping) else block)


def _text_piece(text: str, delivery: Delivery) -> Piece:
    stripped = text.strip().removeprefix("\ufeff").lstrip()
    if not stripped.startswith(_JSON_STARTS):
        return delivery.text(text)
    try:
        value = strict_json(stripped)
    except NotJsonError:
        return delivery.text(text)
    return delivery.value(value, stripped)


def _resource_piece(resource: dict[str, Any], delivery: Delivery) -> Piece | None:
    """An embedded resource; None for one that has neither text nor data."""
    uri, text, data = resource.get("uri"), resource.get("text"), resource.get("blob")
    name = name_in_uri(uri, delivery.secrets)
    if isinstance(text, str):
        fields: dict[str, Any] = {"type": "resource"}
        if isinstance(uri, str):
            fields["uri"] = uri
        if resource.get("mimeType") is not None:
            fields["mime"] = clean_mime(resource["mimeType"])
        whole = delivery.text(text, fields.get("mime", TEXT_MIME), name)
        return whole if whole.blob is not None else delivery.value({**fields, "text": text})
    if data is not None:
        return delivery.data(_decoded(data), clean_mime(resource.get("mimeType")), name)
    return None


def _link(fields: dict[str, Any], delivery: Delivery) -> dict[str, Any]:
    """A link to a resource, with what is known of it."""
    link: dict[str, Any] = {"type": "resource_link", "uri": fields["uri"]}
    for key in ("name", "title", "description"):
        if isinstance(fields.get(key), str):
            link[key] = clean_name(fields[key], delivery.secrets) if key == "name" else fields[key]
    if fields.get("mimeType") is not None:
        link["mime"] = clean_mime(fields["mimeType"])
    size = fields.get("size")
    if isinstance(size, (int, float)) and not isinstance(size, bool):
        link["size"] = size
    return link


def _decoded(data: object) -> bytes:
    """Base64 as servers write it: with line breaks, without padding, behind the head of a data URL; nothing worse."""
    if not isinstance(data, str):
        raise BadBlockError("has no data")
    head = _DATA_URL.match(data)
    if head is not None:
        data = data[head.end() :]
    if any(character in data for character in " \t\r\n"):
        data = data.translate(_WHITE_SPACE)
    try:
        return binascii.a2b_base64(data + "=" * (-len(data) % 4), strict_mode=True)
    except ValueError:
        raise BadBlockError("has data that is not base64") from None


__all__ = ["Blob", "Unwrapped", "unwrap"]

MOST_BLOCKS = 10_000
MOST_BLOBS = 1_000
_EXPECTED_FIELDS = frozenset({"content", "structuredContent", "isError", "_meta", "resultType"})


class Unwrapped(NamedTuple):
    """A result as guest code gets it."""

    value: Any
    """A JSON value; None at each place where a blob belongs."""
    blobs: tuple[tuple[tuple[str | int, ...], Blob], ...] = ()
    """Where in the value a handle belongs, and what it stands for. The empty path is the value itself."""
    notes: tuple[str, ...] = ()
    """What a reader of the call's record should know."""
    error: str | None = None
    """The tool failed, and says this; sanitised."""
    encoded: bytes = b"null"
    """The value as JSON in UTF-8, so that it need not be written again. It may hold white space."""


def unwrap(
    result: Mapping[str, Any],
    tool: ToolSpec,
    *,
    inline_bytes: int,
    secrets: Collection[str] = (),
    exact_integers: bool = False,
) -> Unwrapped:
    """What guest code gets for a raw result.

    `exact_integers` is for guests whose integers have no bounds.

    Raises:
        ServerProtocolError: it is no result at all, or can't be given to anybody.
    """
    delivery = Delivery(inline_bytes, frozenset(secrets), exact_integers)
    try:
        if type(result) is dict and len(cast("dict[str, Any]", result)) == 1:
            structured = cast("dict[str, Any]", result).get("structuredContent")
            if structured is not None:  # and nothing else, as of most of a host's own tools
                return _finished(delivery.value(_inner(structured, tool)), delivery)
        return _unwrap(cast("object", result), tool, delivery)
    except NotJsonError as error:
        raise ServerProtocolError(tool.server, f"gave an unusable result for {tool.name!r}: {error}") from None


def _unwrap(result: object, tool: ToolSpec, delivery: Delivery) -> Unwrapped:
    if not isinstance(result, Mapping):
        raise NotJsonError("it is not an object")
    fields = cast("Mapping[str, Any]", result)
    content, structured = fields.get("content"), fields.get("structuredContent")
    if content is not None and not isinstance(content, (list, tuple)):
        raise NotJsonError("its content is not a list")
    blocks: list[object] = list(cast("list[object]", content or ()))
    if len(blocks) > MOST_BLOCKS:
        raise NotJsonError(f"it has more than {MOST_BLOCKS:,} blocks of content")
    if is_marked_not_utf8(fields):
        delivery.note("bytes that are not UTF-8 are given as U+FFFD")
    if fields.get("isError") in (True, "true"):
        error = for_guest_error(_error_text(blocks, structured), delivery.secrets)
        return Unwrapped(None, notes=tuple(delivery.notes), error=error)
    if structured is not None:
        return _finished(delivery.value(_inner(structured, tool)), delivery, _left_out(blocks))
    if content is None:
        _note_other_fields(fields, delivery)
    pieces = [_piece(block, number, delivery) for number, block in enumerate(blocks, 1)]
    if len(pieces) == 1:
        return _finished(pieces[0], delivery)
    return _list_of(pieces, delivery) if pieces else Unwrapped(None, notes=tuple(delivery.notes))


def _inner(structured: Any, tool: ToolSpec) -> Any:
    """Frameworks wrap what is no object as `{"result": …}`: to the stub and the guest, it is what is inside."""
    if type(structured) is dict and len(cast("dict[str, Any]", structured)) != 1:  # most of them
        return cast("Any", structured)
    if isinstance(structured, Mapping) and len(cast("Mapping[str, Any]", structured)) == 1:
        members = cast("Mapping[str, Any]", structured)
        if "result" in members and is_wrapped_result(tool.definition.output_schema):
            return members["result"]
    return cast("Any", structured)


def _piece(block: object, number: int, delivery: Delivery) -> Piece:
    try:
        return block_piece(block, delivery)
    except BadBlockError as error:
        kind = clean_name(kind_of(block), delivery.secrets)
        raise NotJsonError(f"block {number} of its content ({kind}) {error}") from None


def _finished(piece: Piece, delivery: Delivery, note: str = "") -> Unwrapped:
    if note:
        delivery.note(note)
    blobs = () if piece.blob is None else (((), piece.blob),)
    return Unwrapped(piece.value, blobs, tuple(delivery.notes), None, piece.encoded)


def _list_of(pieces: list[Piece], delivery: Delivery) -> Unwrapped:
    """Several blocks. If they are too large together, the largest become handles, or all of them one."""
    size = sum(len(piece.encoded) + 1 for piece in pieces) + 1
    if size > delivery.inline_bytes and all(piece.blob is None for piece in pieces):
        whole = blob_piece(Blob(_joined(pieces), JSON_MIME))
        return _finished(whole, delivery)
    by_size = sorted(range(len(pieces)), key=lambda index: len(pieces[index].encoded), reverse=True)
    for index in by_size:
        piece = pieces[index]
        if size <= delivery.inline_bytes or len(piece.encoded) <= len(b"null"):
            break
        size -= len(piece.encoded) - len(b"null")
        is_text = isinstance(piece.value, str)
        pieces[index] = blob_piece(text_blob(piece.value, TEXT_MIME) if is_text else Blob(piece.encoded, JSON_MIME))
    blobs = tuple(((index,), piece.blob) for index, piece in enumerate(pieces) if piece.blob is not None)
    if len(blobs) > MOST_BLOBS or size > max(delivery.inline_bytes, 8 * MOST_BLOCKS):
        raise NotJsonError(f"it has more than {MOST_BLOBS:,} blocks of data")
    return Unwrapped([piece.value for piece in pieces], blobs, tuple(delivery.notes), encoded=_joined(pieces))


def _joined(pieces: list[Piece]) -> bytes:
    return b"[" + b",".join([piece.encoded for piece in pieces]) + b"]"


def _error_text(blocks: list[object], structured: object) -> str:
    texts = [text for text in map(text_of, blocks) if text]
    if texts:
        return "\n".join(texts)
    if structured is not None:
        try:
            return compact_text(structured)
        except NotJsonError:
            pass
    return "the tool failed without a message"


def _left_out(blocks: list[object]) -> str:
    """What the structured content can't hold. Its text is in there, says the protocol; data is not."""
    kinds = [kind_of(block) for block in blocks if carries_data(block)]
    if not kinds:
        return ""
    counted = ", ".join(f"{kinds.count(kind)} {kind}" for kind in dict.fromkeys(kinds))
    return f"blocks of data beside the structured content are left out: {counted}"


def _note_other_fields(fields: Mapping[str, Any], delivery: Delivery) -> None:
    others = [clean_name(key, delivery.secrets) for key in list(fields)[:10] if key not in _EXPECTED_FIELDS]
    if others:
        delivery.note(f"the result has no content; other fields are left out: {', '.join(others)}")


# SECURITY: a tool's raw result becomes the reply that guest code gets: unwrapped, checked, within the limits.


_MOST_ON_THE_LOOP = 32_768
"""Characters of a result; a worker thread unwraps what has more."""


class Replies:
    """The replies to a run's calls."""

    def __init__(self, manager: ServerManager, rules: CallRules, limits: Limits, handles: HandleStore) -> None:
        self._manager = manager
        self._rules = rules
        self._limits = limits
        self._handles = handles

    def reply(self, checked: CheckedCall, raw: Mapping[str, Any]) -> Reply:
        """The reply for a raw result.

        Raises:
            CallFailed: the tool failed, or its result can't be given to guest code.
            ServerError: it is no result.
        """
        return self._framed(checked, *self._unwrapped(checked, raw))

    async def foreign_reply(self, checked: CheckedCall, raw: Mapping[str, Any]) -> Reply:
        """The same for a server's result: a large one is unwrapped in a worker thread. Raises as `reply` does."""
        if not _is_large(raw):
            return self.reply(checked, raw)
        # The run's deadline doesn't wait for the thread: masking stops by itself, the rest is bounded.
        result, problem = await anyio.to_thread.run_sync(self._unwrapped, checked, raw, abandon_on_cancel=True)
        return self._framed(checked, result, problem)

    def _unwrapped(self, checked: CheckedCall, raw: Mapping[str, Any]) -> tuple[Unwrapped, str]:
        """A result and how it deviates from its schema. Thread-safe: it changes nothing of the run."""
        result = unwrap(
            raw,
            checked.spec,
            inline_bytes=self._limits.result_bytes,
            secrets=self._manager.secrets(checked.spec.server),
            exact_integers=self._rules.exact_integers,
        )
        if result.error is not None:
            raise CallFailed(ErrorFrame("failed", result.error), (*checked.notes, *result.notes))
        is_declared = checked.spec.output_schema is not None and not result.blobs
        return result, checked.checks.result_problem(result.value) if is_declared else ""

    def _framed(self, checked: CheckedCall, result: Unwrapped, problem: str) -> Reply:
        spec, notes = checked.spec, (*checked.notes, *result.notes)
        if problem and self._rules.strict_results:
            raise CallFailed(ErrorFrame("failed", f"The result of {spec.identifier} is not as declared: {problem}"))
        if problem:
            notes = (*notes, f"The result is not as its schema says: {problem}")
        if not result.blobs:
            reply = Reply(b'{"ok":%b}' % result.encoded, "ok", notes)
        else:
            handles = [self._handles.add(path, blob) for path, blob in result.blobs]
            reply = Reply(encode_handles(handles, result.encoded), "ok", notes)
        if len(reply.frame) > self._limits.frame_bytes:
            sizes = f"{size_text(len(reply.frame))}, more than {size_text(self._limits.frame_bytes)}"
            raise CallFailed(ErrorFrame("limit", f"The result of {spec.identifier} has {sizes}. Ask for less."))
        return reply


def _is_large(value: object) -> bool:
    """Whether a result takes more than about a millisecond to unwrap."""
    left = _MOST_ON_THE_LOOP
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, str):
            left -= len(item)
        elif isinstance(item, (dict, list)):
            items = cast("dict[str, object] | list[object]", item)
            left -= 32 * len(items)
            if left < 0:
                return True
            waiting.extend(items)
            if isinstance(items, dict):
                waiting.extend(items.values())
        if left < 0:
            return True
    return False
