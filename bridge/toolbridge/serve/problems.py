"""What a model is told when a server can't be used: what to do about it, and nothing of this machine."""

from __future__ import annotations

from toolbridge import Runtime, ServerError, ServerNotApprovedError
from toolbridge.trust.sanitise import for_error, for_guest_error


def problem_text(runtime: Runtime, server: str, error: ServerError) -> str:
    """Why a server can't be used. The command that approves it is ours, and left as it is; the rest is cleaned."""
    if isinstance(error, ServerNotApprovedError):
        return for_error(str(error), limit=2_000)
    servers = runtime.servers
    return for_guest_error(str(error), servers.secrets(server), keep=servers.configured_paths(server), limit=1_000)
