"""SECURITY: what guest code passes to a tool becomes what its server gets, or an error that says what to repair."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from toolbridge.boundary.host_call import CallFailed
from toolbridge.boundary.wire import ErrorFrame
from toolbridge.calls.call_rules import CallRules
from toolbridge.calls.handles import HandleStore
from toolbridge.config.policy import Errors
from toolbridge.describe.signatures import signature_of
from toolbridge.servers.handle_arguments import HandleArgumentError, with_handles
from toolbridge.servers.schema_checks import CheckStore, ToolChecks
from toolbridge_codegen.catalog import ToolSpec, module_specifier

if TYPE_CHECKING:
    from toolbridge.servers.manager import ServerManager


class CheckedCall(NamedTuple):
    """A call whose arguments fit."""

    spec: ToolSpec
    checks: ToolChecks
    arguments: Mapping[str, Any]
    """As the server gets them."""
    notes: tuple[str, ...]
    """What was changed."""


class CallArguments:
    """The arguments of a run's calls."""

    def __init__(self, manager: ServerManager, checks: CheckStore, handles: HandleStore, rules: CallRules) -> None:
        self._manager = manager
        self._checks = checks
        self._handles = handles
        self._errors: Errors = rules.errors
        self._is_python = rules.exact_integers
        """How a function is called, and declared, is told in the program's own language."""

    def checked(self, spec: ToolSpec, given: Sequence[Any]) -> CheckedCall:
        """A call with its arguments as the server gets them.

        Raises:
            CallFailed: they don't fit; the words say which and how, for a model to repair its code from.
        """
        if len(given) > 1 or (given and type(given[0]) is not dict):
            takes = "keyword arguments, or one dict" if self._is_python else "one object with named properties"
            raise self._bad(spec, (f"it takes {takes}",))
        arguments = cast("dict[str, Any]", given[0]) if given else {}
        if not self._handles.is_empty:
            try:
                arguments = with_handles(arguments, spec, self._handles.find)
            except HandleArgumentError as error:
                raise self._bad(spec, (str(error),)) from None
        checks = self._checks.of(spec)
        prepared = checks.prepared(arguments)
        if prepared.problems:
            raise self._bad(spec, prepared.problems)
        return CheckedCall(spec, checks, prepared.arguments, prepared.notes)

    def _bad(self, spec: ToolSpec, problems: Sequence[str]) -> CallFailed:
        module = self._manager.catalog.module(module_specifier(spec.server))
        assert module is not None
        declared = signature_of(module, spec, "python" if self._is_python else "typescript", errors=self._errors)
        text = f"{spec.identifier}: {'; '.join(problems)}. It is declared as {declared}"
        return CallFailed(ErrorFrame("invalid_arguments", text))
