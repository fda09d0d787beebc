"""SECURITY: keeps secrets out of other libraries' logs (T4).

httpx logs whole URLs, httpcore all headers of an answer, and the SDK's sign-in flow whole errors of a server with their
tracebacks. Whatever they would log while they work for us is dropped; what another part of the process does with them
is none of our business, and is logged as before.
"""

from __future__ import annotations

import logging
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar

_LOGGERS = (
    "httpx2",
    "httpcore2.connection",
    "httpcore2.http11",
    "httpcore2.http2",
    "httpcore2.proxy",
    "httpcore2.socks",
    "mcp.client.auth.oauth2",
    "mcp.client.auth.utils",
)
_for_us: ContextVar[bool] = ContextVar("toolbridge_http", default=False)


def _is_not_ours(_record: logging.LogRecord) -> bool:
    return not _for_us.get()


@contextmanager
def unlogged() -> Generator[None]:
    """Nothing that these libraries do inside is logged."""
    for name in _LOGGERS:
        logging.getLogger(name).addFilter(_is_not_ours)  # adding it again changes nothing
    token = _for_us.set(True)
    try:
        yield
    finally:
        _for_us.reset(token)
