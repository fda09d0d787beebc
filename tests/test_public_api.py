"""What `import toolbridge` offers, and what it costs."""

from __future__ import annotations

import subprocess
import sys

import pytest

import toolbridge

PUBLIC_NAMES = [
    "Admission",
    "Approval",
    "ApprovalRequest",
    "ApprovalStore",
    "ApprovalStoreError",
    "ApproveDigests",
    "Approver",
    "AuditLog",
    "BlockedTool",
    "CallEnded",
    "CallProgressed",
    "CallRecord",
    "CallStarted",
    "CallbackApprover",
    "CanUseTool",
    "CheckReport",
    "Config",
    "ConfigError",
    "ConnectionLimitError",
    "Decision",
    "DecisionMade",
    "DenyAll",
    "ElicitationAnswer",
    "ElicitationRequest",
    "Elicitor",
    "EngineError",
    "Event",
    "Failure",
    "Finding",
    "FunctionInfo",
    "GuestImageError",
    "HostModuleError",
    "InProcessTool",
    "LanguageError",
    "Limits",
    "LimitsError",
    "Listing",
    "LockError",
    "LockPins",
    "MisuseError",
    "ModuleInfo",
    "ModuleSummary",
    "OAuth",
    "Observer",
    "Origin",
    "Permissions",
    "Pins",
    "Plugin",
    "PluginPolicy",
    "Problem",
    "Progress",
    "ProvidedServer",
    "RenderedPrompt",
    "Roots",
    "RunEnded",
    "RunResult",
    "RunStarted",
    "Runtime",
    "RuntimeSession",
    "Sampler",
    "Sandbox",
    "SandboxClosedError",
    "SearchHit",
    "Section",
    "SectionError",
    "SeedError",
    "ServerClosedError",
    "ServerCollided",
    "ServerConfig",
    "ServerConnectError",
    "ServerDisconnectedError",
    "ServerEnvironmentError",
    "ServerError",
    "ServerIgnored",
    "ServerLimits",
    "ServerManager",
    "ServerNotApprovedError",
    "ServerProtocolError",
    "ServerRegistered",
    "ServerRespawnError",
    "ServerStatus",
    "ServerTimeoutError",
    "Session",
    "SessionBusyError",
    "StateChanged",
    "StoredApprovals",
    "SystemPrompt",
    "TerminalApprover",
    "ToolBlockedError",
    "ToolContext",
    "ToolDefinitionError",
    "ToolNotFoundError",
    "ToolProblem",
    "ToolRefusedError",
    "ToolSearch",
    "ToolUse",
    "ToolbridgeError",
    "ToolsChanged",
    "Tracing",
    "UnknownModuleError",
    "UnknownServerError",
    "Usage",
    "Visibility",
    "audit",
    "create_server",
    "hookimpl",
    "load_config",
    "load_plugins",
    "open_runtime",
    "render",
    "run_sync",
    "tool",
]

HEAVY = ["anyio", "asyncio", "click", "mcp", "pluggy", "pydantic", "rich", "trio", "wasmtime"]

REPORT_IMPORTS = f"print('imported:', *sorted(set(sys.modules) & set({HEAVY!r})), file=sys.stderr)"


def imported_by(statements: str, standard_input: str = "") -> tuple[set[str], str]:
    """Which of the heavy modules a new interpreter has imported after some statements, and their output."""
    script = f"import sys\n{statements}\n{REPORT_IMPORTS}"
    done = subprocess.run(
        [sys.executable, "-c", script], input=standard_input, capture_output=True, encoding="utf-8", check=True
    )
    report = [line for line in done.stderr.splitlines() if line.startswith("imported:")]
    assert len(report) == 1
    return set(report[0].split()[1:]), done.stdout


def test_the_public_names_are_exactly_these() -> None:
    assert toolbridge.__all__ == PUBLIC_NAMES


ALIASES = {"CanUseTool", "Event", "Observer", "hookimpl"}


def test_every_public_name_can_be_imported() -> None:
    found = {name: getattr(toolbridge, name) for name in PUBLIC_NAMES}
    assert [name for name, it in found.items() if name not in ALIASES and it.__name__ != name] == []


def test_every_public_name_is_listed_by_dir() -> None:
    assert set(PUBLIC_NAMES) <= set(dir(toolbridge))


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match=r"^module 'toolbridge' has no attribute 'Sandbx'$"):
        _ = toolbridge.Sandbx  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType, reportUnknownVariableType]


def test_every_error_is_a_toolbridge_error() -> None:
    errors = [getattr(toolbridge, name) for name in PUBLIC_NAMES if name.endswith("Error")]
    assert [error for error in errors if not issubclass(error, toolbridge.ToolbridgeError)] == []


def test_the_version_is_that_of_the_distribution() -> None:
    from importlib.metadata import version

    assert toolbridge.__version__ == version("toolbridge")


def test_importing_toolbridge_imports_nothing_heavy() -> None:
    assert imported_by("import toolbridge") == (set(), "")


def test_help_imports_click_and_nothing_else_heavy() -> None:
    statements = "from toolbridge.cli import _run\nsys.argv = ['toolbridge', '--help']\nassert _run() == 0"
    imported, output = imported_by(statements)
    assert imported == {"click"}
    assert "Usage: toolbridge [OPTIONS] COMMAND [ARGS]..." in output


def test_running_a_program_imports_click_and_nothing_else_heavy() -> None:
    statements = "from toolbridge.cli import _run\nsys.argv = ['toolbridge', 'run', '-']\nassert _run() == 0"
    imported, output = imported_by(statements, standard_input="1+1")
    assert imported == {"click"}
    assert output == "2\n"
