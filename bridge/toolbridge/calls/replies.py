"""SECURITY: a tool's raw result becomes the reply that guest code gets: unwrapped, checked, within the limits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from toolbridge.boundary.host_call import CallFailed, Reply
from toolbridge.boundary.wire import ErrorFrame, encode_handles
from toolbridge.calls.call_arguments import CheckedCall
from toolbridge.calls.call_rules import CallRules
from toolbridge.calls.handles import HandleStore
from toolbridge.calls.sizes import size_text
from toolbridge.limits import Limits
from toolbridge.servers.results import Unwrapped, unwrap
from toolbridge.trust.sanitise import argument_texts

if TYPE_CHECKING:
    from toolbridge.servers.manager import ServerManager


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
        result = unwrap(
            raw,
            checked.spec,
            inline_bytes=self._limits.result_bytes,
            secrets=self._manager.secrets(checked.spec.server),
            exact_integers=self._rules.exact_integers,
            keep=_texts(checked.arguments),
        )
        if result.error is not None:
            raise CallFailed(ErrorFrame("failed", result.error))
        return self._framed(checked, result)

    def _framed(self, checked: CheckedCall, result: Unwrapped) -> Reply:
        spec, notes = checked.spec, (*checked.notes, *result.notes)
        if spec.output_schema is not None and not result.blobs:
            problem = checked.checks.result_problem(result.value)
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


def _texts(arguments: object) -> Iterator[str]:
    """The strings in a call's arguments, not looked for unless they are wanted: of a success, nobody asks."""
    yield from argument_texts(arguments)
