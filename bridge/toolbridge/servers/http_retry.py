"""Which requests are sent again when a server is busy, and when.

Only those that connect or list: a call may have taken effect, and is never sent twice.
"""

from __future__ import annotations

import random
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

BUSY_STATUSES = frozenset({429, 502, 503, 504})
_SAFE_METHODS = frozenset(
    {
        "server/discover",
        "initialize",
        "notifications/initialized",
        "ping",
        "tools/list",
        "prompts/list",
        "resources/list",
        "resources/templates/list",
    }
)
_MOST_ATTEMPTS = 5
_FIRST_DELAY = 0.25
_LONGEST_DELAY = 4.0
# Where nobody has set a deadline.
_LONGEST_WAIT = 60.0
_jitter = random.SystemRandom()


def may_be_repeated(method: str) -> bool:
    """Whether sending a request a second time can't do a second time what it does."""
    return method in _SAFE_METHODS


def retry_delay(
    method: str, status: int, retry_after: str | None, *, attempts: int, seconds_left: float
) -> float | None:
    """How long to wait before a request is sent again; None if it is not.

    Args:
        method: the JSON-RPC method.
        status: the HTTP status of the answer.
        retry_after: the answer's `Retry-After`.
        attempts: how often the request has been sent.
        seconds_left: until nobody waits for the answer any more.
    """
    if not may_be_repeated(method):
        return None
    return busy_delay(status, retry_after, attempts=attempts, seconds_left=seconds_left)


def busy_delay(status: int, retry_after: str | None, *, attempts: int, seconds_left: float) -> float | None:
    """The same for what does nothing but ask, such as opening a stream of events."""
    if status not in BUSY_STATUSES or attempts >= _MOST_ATTEMPTS:
        return None
    asked = parse_retry_after(retry_after)
    if asked is None:
        asked = min(_LONGEST_DELAY, _FIRST_DELAY * 2 ** (attempts - 1)) * _jitter.uniform(0.5, 1.5)
    # Waiting past the deadline would turn "the server is busy" into "the server did not answer".
    return asked if asked < min(seconds_left, _LONGEST_WAIT) else None


def parse_retry_after(value: str | None, now: datetime | None = None) -> float | None:
    """The seconds that a `Retry-After` asks for; None if it is absent or nonsense."""
    if value is None:
        return None
    value = value.strip()
    if value.isascii() and value.isdigit():
        return float(value[:9]) if len(value) <= 9 else float("inf")
    try:
        then = parsedate_to_datetime(value)
        if then.tzinfo is None:
            then = then.replace(tzinfo=UTC)
        return max(0.0, (then - (now or datetime.now(UTC))).total_seconds())
    except (ValueError, TypeError, OverflowError, IndexError):
        return None
