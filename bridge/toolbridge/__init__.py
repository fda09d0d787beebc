"""toolbridge: a model writes ordinary code against MCP servers, in a sandbox that can reach nothing else.

Names are imported when they are first used, so that a command pays only for what it needs.
"""

from __future__ import annotations

from toolbridge.version import __version__ as __version__

TYPE_CHECKING = False  # typing's own costs a command a tenth of its start-up to import
if TYPE_CHECKING:
    from typing import Any

    from toolbridge.boundary.host_call import CallRecord
    from toolbridge.check.report import CheckReport, Problem
    from toolbridge.config.config import Config
    from toolbridge.config.load import load_config
    from toolbridge.config.permissions import Permissions
    from toolbridge.config.plugin_policy import PluginPolicy
    from toolbridge.config.server_config import OAuth, Origin, ServerConfig
    from toolbridge.config.server_limits import ServerLimits
    from toolbridge.describe.module_info import FunctionInfo, ModuleInfo
    from toolbridge.describe.modules import ModuleSummary
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
    )
    from toolbridge.observe.progress import Progress
    from toolbridge.observe.tracing import Tracing
    from toolbridge.runtime import Runtime, open_runtime, run_sync
    from toolbridge.runtime_session import RuntimeSession
    from toolbridge.sandbox.outcome import Failure, RunResult, Usage
    from toolbridge.sandbox.sandbox import Sandbox
    from toolbridge.sandbox.session import Session
    from toolbridge.servers.events import ServerCollided, ServerIgnored, ServerRegistered, StateChanged, ToolsChanged
    from toolbridge.servers.listing import Listing, ToolProblem
    from toolbridge.servers.manager import ServerManager
    from toolbridge.servers.own_server import create_server
    from toolbridge.servers.own_tool import InProcessTool, tool
    from toolbridge.servers.server_requests import ElicitationAnswer, ElicitationRequest, Elicitor, Roots, Sampler
    from toolbridge.servers.slot import ServerStatus
    from toolbridge.servers.tool_context import ToolContext
    from toolbridge.sources.hooks import hookimpl
    from toolbridge.sources.plugins import Plugin, load_plugins
    from toolbridge.sources.provided import ProvidedServer
    from toolbridge.sources.render_sections import render
    from toolbridge.sources.rendered_prompt import RenderedPrompt
    from toolbridge.sources.sections import Section, Visibility
    from toolbridge.trust.admission import Admission, BlockedTool
    from toolbridge.trust.approval_store import ApprovalStore, ApprovalStoreError
    from toolbridge.trust.approver import Approval, ApprovalRequest, ApproveDigests, Approver, DenyAll
    from toolbridge.trust.approvers import CallbackApprover, StoredApprovals, TerminalApprover
    from toolbridge.trust.audit import Finding, audit
    from toolbridge.trust.lock_text import LockError
    from toolbridge.trust.pins import LockPins, Pins
    from toolbridge.trust.tool_use import CanUseTool, Decision, ToolUse

_WHERE = {
    "Admission": "toolbridge.trust.admission",
    "Approval": "toolbridge.trust.approver",
    "ApprovalRequest": "toolbridge.trust.approver",
    "ApprovalStore": "toolbridge.trust.approval_store",
    "ApprovalStoreError": "toolbridge.trust.approval_store",
    "ApproveDigests": "toolbridge.trust.approver",
    "Approver": "toolbridge.trust.approver",
    "AuditLog": "toolbridge.observe.audit_log",
    "BlockedTool": "toolbridge.trust.admission",
    "CallEnded": "toolbridge.observe.events",
    "CallProgressed": "toolbridge.observe.events",
    "CallRecord": "toolbridge.boundary.host_call",
    "CallStarted": "toolbridge.observe.events",
    "CallbackApprover": "toolbridge.trust.approvers",
    "CanUseTool": "toolbridge.trust.tool_use",
    "CheckReport": "toolbridge.check.report",
    "Config": "toolbridge.config.config",
    "ConfigError": "toolbridge.errors",
    "ConnectionLimitError": "toolbridge.errors",
    "Decision": "toolbridge.trust.tool_use",
    "DecisionMade": "toolbridge.observe.events",
    "DenyAll": "toolbridge.trust.approver",
    "ElicitationAnswer": "toolbridge.servers.server_requests",
    "ElicitationRequest": "toolbridge.servers.server_requests",
    "Elicitor": "toolbridge.servers.server_requests",
    "EngineError": "toolbridge.errors",
    "Event": "toolbridge.observe.events",
    "Failure": "toolbridge.sandbox.outcome",
    "Finding": "toolbridge.trust.audit",
    "FunctionInfo": "toolbridge.describe.module_info",
    "GuestImageError": "toolbridge.errors",
    "HostModuleError": "toolbridge.errors",
    "InProcessTool": "toolbridge.servers.own_tool",
    "LanguageError": "toolbridge.errors",
    "Limits": "toolbridge.limits",
    "LimitsError": "toolbridge.errors",
    "Listing": "toolbridge.servers.listing",
    "LockError": "toolbridge.trust.lock_text",
    "LockPins": "toolbridge.trust.pins",
    "MisuseError": "toolbridge.errors",
    "ModuleInfo": "toolbridge.describe.module_info",
    "ModuleSummary": "toolbridge.describe.modules",
    "OAuth": "toolbridge.config.server_config",
    "Observer": "toolbridge.observe.events",
    "Origin": "toolbridge.config.server_config",
    "Permissions": "toolbridge.config.permissions",
    "Pins": "toolbridge.trust.pins",
    "Plugin": "toolbridge.sources.plugins",
    "PluginPolicy": "toolbridge.config.plugin_policy",
    "Problem": "toolbridge.check.report",
    "Progress": "toolbridge.observe.progress",
    "ProvidedServer": "toolbridge.sources.provided",
    "RenderedPrompt": "toolbridge.sources.rendered_prompt",
    "Roots": "toolbridge.servers.server_requests",
    "RunEnded": "toolbridge.observe.events",
    "RunResult": "toolbridge.sandbox.outcome",
    "RunStarted": "toolbridge.observe.events",
    "Runtime": "toolbridge.runtime",
    "RuntimeSession": "toolbridge.runtime_session",
    "Sampler": "toolbridge.servers.server_requests",
    "Sandbox": "toolbridge.sandbox.sandbox",
    "SandboxClosedError": "toolbridge.errors",
    "SearchHit": "toolbridge.describe.search",
    "Section": "toolbridge.sources.sections",
    "SectionError": "toolbridge.errors",
    "SeedError": "toolbridge.errors",
    "ServerClosedError": "toolbridge.errors",
    "ServerCollided": "toolbridge.servers.events",
    "ServerConfig": "toolbridge.config.server_config",
    "ServerConnectError": "toolbridge.errors",
    "ServerDisconnectedError": "toolbridge.errors",
    "ServerEnvironmentError": "toolbridge.errors",
    "ServerError": "toolbridge.errors",
    "ServerIgnored": "toolbridge.servers.events",
    "ServerLimits": "toolbridge.config.server_limits",
    "ServerManager": "toolbridge.servers.manager",
    "ServerNotApprovedError": "toolbridge.errors",
    "ServerProtocolError": "toolbridge.errors",
    "ServerRegistered": "toolbridge.servers.events",
    "ServerRespawnError": "toolbridge.errors",
    "ServerStatus": "toolbridge.servers.slot",
    "ServerTimeoutError": "toolbridge.errors",
    "Session": "toolbridge.sandbox.session",
    "SessionBusyError": "toolbridge.errors",
    "StateChanged": "toolbridge.servers.events",
    "StoredApprovals": "toolbridge.trust.approvers",
    "SystemPrompt": "toolbridge.describe.system_prompt",
    "TerminalApprover": "toolbridge.trust.approvers",
    "ToolBlockedError": "toolbridge.errors",
    "ToolContext": "toolbridge.servers.tool_context",
    "ToolDefinitionError": "toolbridge.errors",
    "ToolNotFoundError": "toolbridge.errors",
    "ToolProblem": "toolbridge.servers.listing",
    "ToolRefusedError": "toolbridge.errors",
    "ToolSearch": "toolbridge.describe.search",
    "ToolUse": "toolbridge.trust.tool_use",
    "ToolbridgeError": "toolbridge.errors",
    "ToolsChanged": "toolbridge.servers.events",
    "Tracing": "toolbridge.observe.tracing",
    "UnknownModuleError": "toolbridge.errors",
    "UnknownServerError": "toolbridge.errors",
    "Usage": "toolbridge.sandbox.outcome",
    "Visibility": "toolbridge.sources.sections",
    "audit": "toolbridge.trust.audit",
    "create_server": "toolbridge.servers.own_server",
    "hookimpl": "toolbridge.sources.hooks",
    "load_config": "toolbridge.config.load",
    "load_plugins": "toolbridge.sources.plugins",
    "open_runtime": "toolbridge.runtime",
    "render": "toolbridge.sources.render_sections",
    "run_sync": "toolbridge.runtime",
    "tool": "toolbridge.servers.own_tool",
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
