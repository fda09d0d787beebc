"""toolbridge: a model writes ordinary code against MCP servers, in a sandbox that can reach nothing else.

Names are imported when they are first used, so that a command pays only for what it needs.
"""

from __future__ import annotations

from toolbridge.version import __version__ as __version__

TYPE_CHECKING = False  # typing's own costs a command a tenth of its start-up to import
if TYPE_CHECKING:
    from typing import Any

    from toolbridge.boundary.host_call import CallRecord
    from toolbridge.check.checker import CheckReport, Problem
    from toolbridge.config.config import Config
    from toolbridge.config.load import load_config
    from toolbridge.config.policy import Permissions, PluginPolicy
    from toolbridge.config.server_config import OAuth, Origin, ServerConfig, ServerLimits
    from toolbridge.describe.modules import FunctionInfo, ModuleInfo, ModuleSummary
    from toolbridge.describe.search import SearchHit, ToolSearch
    from toolbridge.describe.system_prompt import SystemPrompt
    from toolbridge.errors import (
        ConfigError,
        ConnectionLimitError,
        EngineError,
        GuestImageError,
        HostModuleError,
        LanguageError,
        LimitsError,
        MisuseError,
        SandboxClosedError,
        SectionError,
        SeedError,
        ServerClosedError,
        ServerConnectError,
        ServerDisconnectedError,
        ServerEnvironmentError,
        ServerError,
        ServerNotApprovedError,
        ServerProtocolError,
        ServerRespawnError,
        ServerTimeoutError,
        SessionBusyError,
        ToolBlockedError,
        ToolbridgeError,
        ToolDefinitionError,
        ToolNotFoundError,
        ToolRefusedError,
        UnknownModuleError,
        UnknownServerError,
    )
    from toolbridge.limits import Limits
    from toolbridge.observe.audit_log import AuditLog
    from toolbridge.observe.events import (
        CallEnded,
        CallProgressed,
        CallStarted,
        DecisionMade,
        Event,
        Observer,
        RunEnded,
        RunStarted,
        ServerCollided,
        ServerIgnored,
        ServerRegistered,
        StateChanged,
        ToolsChanged,
    )
    from toolbridge.observe.progress import Progress
    from toolbridge.observe.tracing import Tracing
    from toolbridge.runtime import Runtime, RuntimeSession, open_runtime, run_sync
    from toolbridge.sandbox.outcome import Failure, RunResult, Usage
    from toolbridge.sandbox.sandbox import Sandbox
    from toolbridge.sandbox.session import Session
    from toolbridge.servers.listing import Listing, ToolProblem
    from toolbridge.servers.manager import ServerManager
    from toolbridge.servers.pool import ServerStatus
    from toolbridge.servers.requests import ElicitationAnswer, ElicitationRequest, Elicitor, Roots, Sampler
    from toolbridge.sources.hooks import hookimpl
    from toolbridge.sources.plugins import Plugin, ProvidedServer, load_plugins
    from toolbridge.sources.sections import RenderedPrompt, Section, Visibility, render
    from toolbridge.tools.binding import ToolContext
    from toolbridge.tools.server import create_server
    from toolbridge.tools.tool import InProcessTool, tool
    from toolbridge.trust.approval.approver import Approval, ApprovalRequest, ApproveDigests, Approver, DenyAll
    from toolbridge.trust.approval.approvers import CallbackApprover, StoredApprovals, TerminalApprover
    from toolbridge.trust.approval.store import ApprovalStore, ApprovalStoreError
    from toolbridge.trust.audit.detector import Finding, audit
    from toolbridge.trust.gate.gate import CanUseTool, Decision, ToolUse
    from toolbridge.trust.pins.admission import Admission, BlockedTool
    from toolbridge.trust.pins.lock_file import LockError
    from toolbridge.trust.pins.pins import LockPins, Pins

_WHERE = {
    "Admission": "toolbridge.trust.pins.admission",
    "Approval": "toolbridge.trust.approval.approver",
    "ApprovalRequest": "toolbridge.trust.approval.approver",
    "ApprovalStore": "toolbridge.trust.approval.store",
    "ApprovalStoreError": "toolbridge.trust.approval.store",
    "ApproveDigests": "toolbridge.trust.approval.approver",
    "Approver": "toolbridge.trust.approval.approver",
    "AuditLog": "toolbridge.observe.audit_log",
    "BlockedTool": "toolbridge.trust.pins.admission",
    "CallEnded": "toolbridge.observe.events",
    "CallProgressed": "toolbridge.observe.events",
    "CallRecord": "toolbridge.boundary.host_call",
    "CallStarted": "toolbridge.observe.events",
    "CallbackApprover": "toolbridge.trust.approval.approvers",
    "CanUseTool": "toolbridge.trust.gate.gate",
    "CheckReport": "toolbridge.check.checker",
    "Config": "toolbridge.config.config",
    "ConfigError": "toolbridge.errors",
    "ConnectionLimitError": "toolbridge.errors",
    "Decision": "toolbridge.trust.gate.gate",
    "DecisionMade": "toolbridge.observe.events",
    "DenyAll": "toolbridge.trust.approval.approver",
    "ElicitationAnswer": "toolbridge.servers.requests",
    "ElicitationRequest": "toolbridge.servers.requests",
    "Elicitor": "toolbridge.servers.requests",
    "EngineError": "toolbridge.errors",
    "Event": "toolbridge.observe.events",
    "Failure": "toolbridge.sandbox.outcome",
    "Finding": "toolbridge.trust.audit.detector",
    "FunctionInfo": "toolbridge.describe.modules",
    "GuestImageError": "toolbridge.errors",
    "HostModuleError": "toolbridge.errors",
    "InProcessTool": "toolbridge.tools.tool",
    "LanguageError": "toolbridge.errors",
    "Limits": "toolbridge.limits",
    "LimitsError": "toolbridge.errors",
    "Listing": "toolbridge.servers.listing",
    "LockError": "toolbridge.trust.pins.lock_file",
    "LockPins": "toolbridge.trust.pins.pins",
    "MisuseError": "toolbridge.errors",
    "ModuleInfo": "toolbridge.describe.modules",
    "ModuleSummary": "toolbridge.describe.modules",
    "OAuth": "toolbridge.config.server_config",
    "Observer": "toolbridge.observe.events",
    "Origin": "toolbridge.config.server_config",
    "Permissions": "toolbridge.config.policy",
    "Pins": "toolbridge.trust.pins.pins",
    "Plugin": "toolbridge.sources.plugins",
    "PluginPolicy": "toolbridge.config.policy",
    "Problem": "toolbridge.check.checker",
    "Progress": "toolbridge.observe.progress",
    "ProvidedServer": "toolbridge.sources.plugins",
    "RenderedPrompt": "toolbridge.sources.sections",
    "Roots": "toolbridge.servers.requests",
    "RunEnded": "toolbridge.observe.events",
    "RunResult": "toolbridge.sandbox.outcome",
    "RunStarted": "toolbridge.observe.events",
    "Runtime": "toolbridge.runtime",
    "RuntimeSession": "toolbridge.runtime",
    "Sampler": "toolbridge.servers.requests",
    "Sandbox": "toolbridge.sandbox.sandbox",
    "SandboxClosedError": "toolbridge.errors",
    "SearchHit": "toolbridge.describe.search",
    "Section": "toolbridge.sources.sections",
    "SectionError": "toolbridge.errors",
    "SeedError": "toolbridge.errors",
    "ServerClosedError": "toolbridge.errors",
    "ServerCollided": "toolbridge.observe.events",
    "ServerConfig": "toolbridge.config.server_config",
    "ServerConnectError": "toolbridge.errors",
    "ServerDisconnectedError": "toolbridge.errors",
    "ServerEnvironmentError": "toolbridge.errors",
    "ServerError": "toolbridge.errors",
    "ServerIgnored": "toolbridge.observe.events",
    "ServerLimits": "toolbridge.config.server_config",
    "ServerManager": "toolbridge.servers.manager",
    "ServerNotApprovedError": "toolbridge.errors",
    "ServerProtocolError": "toolbridge.errors",
    "ServerRegistered": "toolbridge.observe.events",
    "ServerRespawnError": "toolbridge.errors",
    "ServerStatus": "toolbridge.servers.pool",
    "ServerTimeoutError": "toolbridge.errors",
    "Session": "toolbridge.sandbox.session",
    "SessionBusyError": "toolbridge.errors",
    "StateChanged": "toolbridge.observe.events",
    "StoredApprovals": "toolbridge.trust.approval.approvers",
    "SystemPrompt": "toolbridge.describe.system_prompt",
    "TerminalApprover": "toolbridge.trust.approval.approvers",
    "ToolBlockedError": "toolbridge.errors",
    "ToolContext": "toolbridge.tools.binding",
    "ToolDefinitionError": "toolbridge.errors",
    "ToolNotFoundError": "toolbridge.errors",
    "ToolProblem": "toolbridge.servers.listing",
    "ToolRefusedError": "toolbridge.errors",
    "ToolSearch": "toolbridge.describe.search",
    "ToolUse": "toolbridge.trust.gate.gate",
    "ToolbridgeError": "toolbridge.errors",
    "ToolsChanged": "toolbridge.observe.events",
    "Tracing": "toolbridge.observe.tracing",
    "UnknownModuleError": "toolbridge.errors",
    "UnknownServerError": "toolbridge.errors",
    "Usage": "toolbridge.sandbox.outcome",
    "Visibility": "toolbridge.sources.sections",
    "audit": "toolbridge.trust.audit.detector",
    "create_server": "toolbridge.tools.server",
    "hookimpl": "toolbridge.sources.hooks",
    "load_config": "toolbridge.config.load",
    "load_plugins": "toolbridge.sources.plugins",
    "open_runtime": "toolbridge.runtime",
    "render": "toolbridge.sources.sections",
    "run_sync": "toolbridge.runtime",
    "tool": "toolbridge.tools.tool",
}

__all__ = [
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


def __getattr__(name: str) -> Any:
    where = _WHERE.get(name)
    if where is None:
        raise AttributeError(f"module 'toolbridge' has no attribute {name!r}")
    import importlib

    value = getattr(importlib.import_module(where), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
