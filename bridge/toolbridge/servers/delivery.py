"""SECURITY: how one value of a server's result is given to guest code: masked, exact, within the inline limit."""

from __future__ import annotations

from typing import Any, NamedTuple

from toolbridge.servers.blobs import Blob
from toolbridge.servers.exact_json import (
    NotJsonError,
    compact_text,
    has_long_integer,
    mapped,
    utf8,
    without_infinite_numbers,
    without_large_integers,
)
from toolbridge.trust.sanitise import masked, masked_bytes

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
