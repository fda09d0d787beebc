"""SECURITY: unwraps a tool's raw result into the reply for guest code; docs/use-results.md has the rules as a table.

Any field of a raw result may be missing or of a wrong type. Unwrapping raises nothing but `ServerProtocolError`, and
drops nothing without a note.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import anyio.to_thread

from toolbridge.boundary.host_call import CallFailed, Reply
from toolbridge.boundary.wire import ErrorFrame, encode_handles
from toolbridge.calls.content import (
    JSON_MIME,
    TEXT_MIME,
    BadBlockError,
    Blob,
    block_piece,
    carries_data,
    clean_name,
    kind_of,
    text_blob,
    text_of,
)
from toolbridge.errors import ServerProtocolError
from toolbridge.json_codec import (
    NotJsonError,
    compact_text,
    has_long_integer,
    is_marked_not_utf8,
    mapped,
    utf8,
    without_infinite_numbers,
    without_large_integers,
)
from toolbridge.limits import Limits
from toolbridge.trust.sanitise import for_guest_error, masked, masked_bytes
from toolbridge_codegen.catalog import ToolSpec
from toolbridge_codegen.derive.tools import is_wrapped_result

if TYPE_CHECKING:
    from toolbridge.calls.tool_call import CallRules, HandleStore, ValidCall
    from toolbridge.servers.manager import ServerManager


# ── one value: redacted, exact, within the inline limit ───────────────────────────────────────────────────────────


def size_text(size: int) -> str:
    """Formats a size in units of 1024, with a decimal below ten: `512 B`, `3.1 KB`, `34 KB`, `2.5 MB`."""
    if size < 1024:
        return f"{size} B"
    amount, unit = size / 1024, "KB"
    if round(amount) >= 1024:
        amount, unit = amount / 1024, "MB"
    return f"{amount:.1f} {unit}" if amount < 9.95 else f"{amount:.0f} {unit}"


_MOST_NOTES = 20
_MASKED = "the server's own secrets are masked in the result"


class Piece(NamedTuple):
    """A value with its JSON, or a blob instead."""

    value: Any
    encoded: bytes
    blob: Blob | None = None


def blob_piece(blob: Blob) -> Piece:
    """Makes a piece that becomes a handle."""
    return Piece(None, b"null", blob)


class Delivery:
    """Redacts the values of one result, applies the inline limit, and collects notes."""

    __slots__ = ("exact_integers", "inline_bytes", "notes", "secrets")

    def __init__(self, inline_bytes: int, secrets: frozenset[str], exact_integers: bool) -> None:
        self.inline_bytes = inline_bytes
        self.secrets = secrets
        self.exact_integers = exact_integers
        self.notes: list[str] = []

    def note(self, text: str) -> None:
        """Adds a note to the call's record, unless it is there already or there are too many."""
        if text not in self.notes and len(self.notes) < _MOST_NOTES:
            self.notes.append(text)

    def masked(self, text: str) -> str:
        """Redacts the server's secrets in a text; adds a note if there were any."""
        clean = masked(text, self.secrets) if self.secrets else text
        if clean != text:
            self.note(_MASKED)
        return clean

    def text(self, text: str, mime: str = TEXT_MIME, name: str = "") -> Piece:
        """Delivers a text with secrets redacted: as a string, or as a handle if it exceeds the inline limit."""
        text = self.masked(text)
        encoded = utf8(compact_text(text), text)
        return Piece(text, encoded) if len(encoded) <= self.inline_bytes else blob_piece(text_blob(text, mime, name))

    def value(self, value: Any, text: str | None = None) -> Piece:
        """Delivers a JSON value with secrets redacted: inline, or as a handle if it exceeds the inline limit.

        `text`: its JSON if already known. Adds a note for each kind of change.

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
            data = utf8(compact_text(value), value)  # white space may be all that makes it large
        if len(data) > self.inline_bytes:
            return blob_piece(Blob(data, JSON_MIME))  # integers stay exact in handles
        if not self.exact_integers and has_long_integer(data):
            value, found = without_large_integers(value)
            if found:
                self.note(f"integers beyond ±(2^53-1) are given as strings of digits: {found}")
                data = utf8(compact_text(value), value)
        return Piece(value, data)

    def data(self, data: bytes, mime: str, name: str) -> Piece:
        """Delivers binary data as a handle; redacts secrets in it, which adds a note."""
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
        """Returns a value and its JSON; NaN and infinities become null, with a note. Raises NotJsonError otherwise."""
        try:
            return value, compact_text(value)
        except NotJsonError:
            value, found = without_infinite_numbers(value)
            if not found:
                raise
            self.note(f"numbers that JSON doesn't have (NaN, Infinity) are given as null: {found}")
            return value, compact_text(value)

    def _without_secrets(self, value: Any, written: str, *, is_ours: bool) -> tuple[Any, str]:
        """Redacts secrets in keys, strings, integers and lists of bytes; returns the value and its JSON.

        `is_ours`: `written` is our own encoding, not the server's, which may escape any character.
        """
        # A server's JSON may have escaped any character.
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
        """Redacts a list of numbers as a whole if it holds the bytes of a secret, as Node serialises a buffer."""
        if not all(type(item) is int for item in items):
            return items
        written = compact_text(items)
        clean = self.masked(written)
        return items if clean == written else clean

    def _masked_scalar(self, scalar: Any) -> Any:
        """Redacts secrets in a string, or in an integer's digits, which makes it a string; others are unchanged."""
        if isinstance(scalar, str):
            return self.masked(scalar)
        if type(scalar) is int and scalar.bit_length() < 256:
            digits = str(scalar)
            clean = self.masked(digits)
            return scalar if clean == digits else clean
        return scalar


def _same(scalar: Any) -> Any:
    return scalar


MOST_BLOCKS = 10_000
MOST_BLOBS = 1_000
_EXPECTED_FIELDS = frozenset({"content", "structuredContent", "isError", "_meta", "resultType"})


class Unwrapped(NamedTuple):
    """An unwrapped result."""

    value: Any
    """A JSON value, None in the place of each blob."""
    blobs: tuple[tuple[tuple[str | int, ...], Blob], ...] = ()
    """Path and content of each handle; the empty path is the value itself."""
    notes: tuple[str, ...] = ()
    """Notes for the call's record."""
    error: str | None = None
    """The tool's error message, sanitised; None if it succeeded."""
    encoded: bytes = b"null"
    """The value as JSON in UTF-8, possibly with white space."""


def unwrap(
    result: Mapping[str, Any],
    tool: ToolSpec,
    *,
    inline_bytes: int,
    secrets: Collection[str] = (),
    exact_integers: bool = False,
) -> Unwrapped:
    """Unwraps a tool's raw result: its value, blobs and notes; of one marked `isError`, the error message.

    `exact_integers`: the guest's language has integers of any size.

    Raises:
        ServerProtocolError: the result is malformed.
    """
    delivery = Delivery(inline_bytes, frozenset(secrets), exact_integers)
    try:
        if type(result) is dict and len(cast("dict[str, Any]", result)) == 1:
            structured = cast("dict[str, Any]", result).get("structuredContent")
            if structured is not None:  # fast path: most host tools return nothing else
                return _finished(delivery.value(_inner(structured, tool)), delivery)
        return _unwrap(cast("object", result), tool, delivery)
    except NotJsonError as error:
        raise ServerProtocolError(tool.server, f"gave an unusable result for {tool.name!r}: {error}") from None


def _unwrap(result: object, tool: ToolSpec, delivery: Delivery) -> Unwrapped:
    """Unwraps an error, else structured content, else content blocks. Raises NotJsonError for a malformed result."""
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
    """Returns the content of `{"result": …}`, in which frameworks wrap values that are no objects; stubs do the same.

    Returns other structured content as it is.
    """
    if type(structured) is dict and len(cast("dict[str, Any]", structured)) != 1:  # fast path
        return cast("Any", structured)
    if isinstance(structured, Mapping) and len(cast("Mapping[str, Any]", structured)) == 1:
        members = cast("Mapping[str, Any]", structured)
        if "result" in members and is_wrapped_result(tool.definition.output_schema):
            return members["result"]
    return cast("Any", structured)


def _piece(block: object, number: int, delivery: Delivery) -> Piece:
    """Converts block `number` (from 1); raises NotJsonError, which names the block, if its data is unusable."""
    try:
        return block_piece(block, delivery)
    except BadBlockError as error:
        kind = clean_name(kind_of(block), delivery.secrets)
        raise NotJsonError(f"block {number} of its content ({kind}) {error}") from None


def _finished(piece: Piece, delivery: Delivery, note: str = "") -> Unwrapped:
    """Makes the result of a single piece, with the notes so far and, if given, this one."""
    if note:
        delivery.note(note)
    blobs = () if piece.blob is None else (((), piece.blob),)
    return Unwrapped(piece.value, blobs, tuple(delivery.notes), None, piece.encoded)


def _list_of(pieces: list[Piece], delivery: Delivery) -> Unwrapped:
    """Delivers several blocks; if they are too large together, the largest become handles, or all of them one.

    Raises:
        NotJsonError: there would be too many handles.
    """
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
    """Returns a failed tool's message: its text blocks, else its structured content as JSON, else a default."""
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
    """Returns a note that counts data blocks beside structured content; empty if there are only text blocks.

    Text blocks only repeat the structured content, by the protocol.
    """
    if all(type(block) is dict and cast("dict[str, Any]", block).get("type") == "text" for block in blocks):
        return ""  # fast path
    kinds = [kind_of(block) for block in blocks if carries_data(block)]
    if not kinds:
        return ""
    counted = ", ".join(f"{kinds.count(kind)} {kind}" for kind in dict.fromkeys(kinds))
    return f"blocks of data beside the structured content are left out: {counted}"


def _note_other_fields(fields: Mapping[str, Any], delivery: Delivery) -> None:
    """Adds a note that names unexpected fields of a result without content."""
    others = [clean_name(key, delivery.secrets) for key in list(fields)[:10] if key not in _EXPECTED_FIELDS]
    if others:
        delivery.note(f"the result has no content; other fields are left out: {', '.join(others)}")


# ── replies ───────────────────────────────────────────────────────────────────────────────────────────────────────


_MOST_ON_THE_LOOP = 32_768
"""Characters; a larger result is unwrapped in a worker thread."""


class Replies:
    """Makes the replies to a run's calls: unwraps, validates, applies limits."""

    def __init__(self, manager: ServerManager, rules: CallRules, limits: Limits, handles: HandleStore) -> None:
        self._manager = manager
        self._rules = rules
        self._limits = limits
        self._handles = handles

    def reply(self, checked: ValidCall, raw: Mapping[str, Any]) -> Reply:
        """Makes the reply for a host tool's raw result.

        Raises:
            CallFailed: the tool failed, or its result can't be given to guest code.
            ServerError: the result is malformed.
        """
        return self._framed(checked, *self._unwrap_and_validate(checked, raw))

    async def server_reply(self, checked: ValidCall, raw: Mapping[str, Any]) -> Reply:
        """Makes the reply for a server's raw result, a large one in a worker thread. Raises as `reply` does."""
        if not _is_large(raw):
            return self.reply(checked, raw)
        # Abandoned at the run's deadline: redaction has a time limit of its own, the rest is bounded.
        result, problem = await anyio.to_thread.run_sync(
            self._unwrap_and_validate, checked, raw, abandon_on_cancel=True
        )
        return self._framed(checked, result, problem)

    def _unwrap_and_validate(self, checked: ValidCall, raw: Mapping[str, Any]) -> tuple[Unwrapped, str]:
        """Unwraps a result and validates it against its schema. Thread-safe: mutates nothing of the run."""
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

    def _framed(self, checked: ValidCall, result: Unwrapped, problem: str) -> Reply:
        """Makes the reply: registers blobs as handles, and adds a note if there is a schema `problem`.

        Raises:
            CallFailed: `problem` under strict results, too many or too large handles, or a frame over the limit.
        """
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
    """Estimates, without encoding it, whether a result takes more than about a millisecond to unwrap."""
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
