"""SECURITY: converts one content block of a result to a value or a handle. Every field comes from a server.

A `Delivery` (results.py) redacts each value and applies the inline limit.
"""

from __future__ import annotations

import binascii
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import unquote

from toolbridge.json_codec import NotJsonError, strict_json
from toolbridge.trust.sanitise import for_error

if TYPE_CHECKING:
    from toolbridge.calls.results import Delivery, Piece

JSON_MIME = "application/json"
TEXT_MIME = "text/plain"
UNKNOWN_MIME = "application/octet-stream"
LONGEST_NAME = 100

_MIME = re.compile(r"[a-z0-9][a-z0-9!#$&^_.+-]{0,63}/[a-z0-9][a-z0-9!#$&^_.+-]{0,63}")
# Text types outside of `text/`.
_TEXT_SUBTYPE = re.compile(
    r"application/(?:.*[+.-])?(?:json5?|xml|yaml|toml|csv|javascript|typescript|ecmascript|sql|graphql|x-sh|ndjson|jsonl"
    r"|x-ndjson|jsonlines|x-www-form-urlencoded|x-httpd-php|x-python|x-tex|rtf|x-subrip)|image/svg\+xml"
)


@dataclass(frozen=True, slots=True)
class Blob:
    """Bytes with their MIME type and name: the content of a handle."""

    data: bytes
    mime: str
    name: str = ""

    @property
    def is_text(self) -> bool:
        """Whether the MIME type is a text type."""
        return self.mime.startswith("text/") or _TEXT_SUBTYPE.fullmatch(self.mime) is not None

    @property
    def is_json(self) -> bool:
        """Whether the MIME type is JSON."""
        return self.mime in ("application/json", "text/json") or self.mime.endswith("+json")


def clean_mime(given: object) -> str:
    """Validates a MIME type and drops its parameters; invalid ones become `application/octet-stream`."""
    if not isinstance(given, str) or len(given) > 1000:
        return UNKNOWN_MIME
    mime = given.partition(";")[0].strip().lower()
    return mime if _MIME.fullmatch(mime) else UNKNOWN_MIME


def clean_name(given: object, secrets: frozenset[str]) -> str:
    """Sanitises a name, redacts `secrets` and truncates it to 100 characters; empty if it is not a string."""
    return for_error(given, secrets, limit=LONGEST_NAME) if isinstance(given, str) else ""


def name_in_uri(uri: object, secrets: frozenset[str]) -> str:
    """Returns the sanitised file name at the end of a URI's path; empty if there is none, or `uri` is not a string."""
    if not isinstance(uri, str):
        return ""
    path = unquote(uri[:4000].partition("#")[0].partition("?")[0]).replace("\\", "/").rstrip("/")
    name = path.rpartition("/")[2]
    return clean_name("" if name in ("", ".", "..") or name.endswith(":") else name, secrets)


def text_blob(text: str, mime: str, name: str = "") -> Blob:
    """Encodes a text as a blob; a lone surrogate becomes U+FFFD."""
    return Blob(text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace").encode("utf-8"), mime, name)


# Line breaks that encoders put into long base64.
_WHITE_SPACE = {ord(character): None for character in " \t\r\n"}
_DATA_URL = re.compile(r"data:[^,]{0,200};base64,", re.IGNORECASE)
_JSON_STARTS = ("{", "[")


class BadBlockError(ValueError):
    """A block whose data is missing or not base64."""


def fields_of(value: object) -> dict[str, Any]:
    """Copies the fields of an object; empty for any other value."""
    return dict(cast("Mapping[str, Any]", value)) if isinstance(value, Mapping) else {}


def kind_of(block: object) -> str:
    """Returns the type that a block declares; empty if it declares none."""
    kind = fields_of(block).get("type")
    return kind if isinstance(kind, str) else ""


def carries_data(block: object) -> bool:
    """Returns whether a block is binary: image, audio or an embedded blob."""
    return kind_of(block) in ("image", "audio") or "blob" in fields_of(fields_of(block).get("resource"))


def text_of(block: object) -> str | None:
    """Returns the text of a text block; None for any other."""
    text = fields_of(block).get("text") if kind_of(block) == "text" else None
    return text if isinstance(text, str) else None


def block_piece(block: object, delivery: Delivery) -> Piece:
    """Converts a content block to a value or a handle; an unknown kind is passed on as it came, with a note.

    Raises:
        BadBlockError: its data is missing or not base64.
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
    """Delivers a text: parsed if it is a JSON object or array, else as a string."""
    stripped = text.strip().removeprefix("\ufeff").lstrip()
    if not stripped.startswith(_JSON_STARTS):
        return delivery.text(text)
    try:
        value = strict_json(stripped)
    except NotJsonError:
        return delivery.text(text)
    return delivery.value(value, stripped)


def _resource_piece(resource: dict[str, Any], delivery: Delivery) -> Piece | None:
    """Converts an embedded resource; None if it has neither text nor data."""
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
    """Converts a link to a resource: keeps known fields of the expected type, with name and MIME type cleaned."""
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
    """Decodes base64, tolerating line breaks, missing padding and the head of a data URL; raises BadBlockError."""
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
