"""SECURITY: what a tool sent becomes what guest code gets. docs/RESULTS.md has the rules as a table.

The result comes from a server as it is: any field may be missing or of a wrong type. Nothing in it raises but
`ServerProtocolError`, and nothing of it is lost without a note.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, NamedTuple, cast

from toolbridge.errors import ServerProtocolError
from toolbridge.servers.blobs import Blob, clean_name
from toolbridge.servers.content_blocks import BadBlockError, block_piece, carries_data, kind_of, text_of
from toolbridge.servers.delivery import JSON_MIME, TEXT_MIME, Delivery, Piece, blob_piece, text_blob
from toolbridge.servers.exact_json import NotJsonError, compact_text, is_marked_not_utf8
from toolbridge.trust.sanitise import for_guest_error
from toolbridge_codegen.catalog import ToolSpec
from toolbridge_codegen.wrapped_result import is_wrapped_result

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
    keep: Iterable[str] = (),
) -> Unwrapped:
    """What guest code gets for a raw result.

    `exact_integers` is for guests whose integers have no bounds. `keep` has the strings of the call's arguments,
    which an error may repeat as they are.

    Raises:
        ServerProtocolError: it is no result at all, or can't be given to anybody.
    """
    delivery = Delivery(inline_bytes, frozenset(secrets), exact_integers)
    try:
        if type(result) is dict and len(cast("dict[str, Any]", result)) == 1:
            structured = cast("dict[str, Any]", result).get("structuredContent")
            if structured is not None:  # and nothing else, as of most of a host's own tools
                return _finished(delivery.value(_inner(structured, tool)), delivery)
        return _unwrap(cast("object", result), tool, delivery, keep)
    except NotJsonError as error:
        raise ServerProtocolError(tool.server, f"gave an unusable result for {tool.name!r}: {error}") from None


def _unwrap(result: object, tool: ToolSpec, delivery: Delivery, keep: Iterable[str]) -> Unwrapped:
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
        error = for_guest_error(_error_text(blocks, structured), delivery.secrets, keep=keep)
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
