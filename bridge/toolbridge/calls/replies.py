"""SECURITY: a tool's raw result becomes the reply that guest code gets: unwrapped, checked, within the limits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, cast

import anyio.to_thread

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

_MOST_ON_THE_LOOP = 32_768
"""Characters of a result; a worker thread unwraps what has more."""


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
        return self._framed(checked, *self._unwrapped(checked, raw))

    async def foreign_reply(self, checked: CheckedCall, raw: Mapping[str, Any]) -> Reply:
        """The same for a server's result: a large one is unwrapped in a worker thread. Raises as `reply` does."""
        if not _is_large(raw):
            return self.reply(checked, raw)
        # The run's deadline doesn't wait for the thread: masking stops by itself, the rest is bounded.
        result, problem = await anyio.to_thread.run_sync(self._unwrapped, checked, raw, abandon_on_cancel=True)
        return self._framed(checked, result, problem)

    def _unwrapped(self, checked: CheckedCall, raw: Mapping[str, Any]) -> tuple[Unwrapped, str]:
        """A result and how it deviates from its schema. Thread-safe: it changes nothing of the run."""
        result = unwrap(
            raw,
            checked.spec,
            inline_bytes=self._limits.result_bytes,
            secrets=self._manager.secrets(checked.spec.server),
            exact_integers=self._rules.exact_integers,
            keep=self._named_paths(checked),
        )
        if result.error is not None:
            raise CallFailed(ErrorFrame("failed", result.error), (*checked.notes, *result.notes))
        is_declared = checked.spec.output_schema is not None and not result.blobs
        return result, checked.checks.result_problem(result.value) if is_declared else ""

    def _named_paths(self, checked: CheckedCall) -> Iterator[str]:
        """Paths that the call or the configuration names; a generator, because only errors need them."""
        yield from argument_texts(checked.arguments)
        yield from self._manager.configured_paths(checked.spec.server)

    def _framed(self, checked: CheckedCall, result: Unwrapped, problem: str) -> Reply:
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
    """Whether a result takes more than about a millisecond to unwrap."""
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
