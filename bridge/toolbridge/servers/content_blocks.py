"""SECURITY: one block of a result's content, as a value or a handle. Every field is a server's, and may be anything."""

from __future__ import annotations

import binascii
import re
from collections.abc import Mapping
from typing import Any, cast

from toolbridge.servers.blobs import clean_mime, clean_name, name_in_uri
from toolbridge.servers.delivery import TEXT_MIME, Delivery, Piece
from toolbridge.servers.exact_json import NotJsonError, strict_json

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
