"""Data that guest code gets as a handle instead of as a value."""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import unquote

from toolbridge.trust.sanitise import for_error

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
