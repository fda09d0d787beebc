"""The public names, written once: type checkers read this file, and `toolbridge.__getattr__` does."""

from toolbridge.boundary.host_call import CallRecord as CallRecord
from toolbridge.check.checker import CheckReport as CheckReport
from toolbridge.check.checker import Problem as Problem
from toolbridge.config.config import Config as Config
from toolbridge.config.config import load_config as load_config
from toolbridge.config.policy import Permissions as Permissions
from toolbridge.config.server_config import OAuth as OAuth
from toolbridge.config.server_config import ServerConfig as ServerConfig
from toolbridge.config.server_config import ServerLimits as ServerLimits
from toolbridge.errors import ConfigError as ConfigError
from toolbridge.errors import MisuseError as MisuseError
from toolbridge.errors import ServerError as ServerError
from toolbridge.errors import ToolbridgeError as ToolbridgeError
from toolbridge.limits import Limits as Limits
from toolbridge.observe.audit_log import AuditLog as AuditLog
from toolbridge.observe.progress import Progress as Progress
from toolbridge.observe.tracing import Tracing as Tracing
from toolbridge.opening import open_runtime as open_runtime
from toolbridge.opening import run_sync as run_sync
from toolbridge.runtime import Runtime as Runtime
from toolbridge.runtime import RuntimeSession as RuntimeSession
from toolbridge.sandbox.outcome import Failure as Failure
from toolbridge.sandbox.outcome import RunResult as RunResult
from toolbridge.sandbox.outcome import Usage as Usage
from toolbridge.sandbox.sandbox import Sandbox as Sandbox
from toolbridge.sandbox.session import Session as Session
from toolbridge.servers.manager import ServerManager as ServerManager
from toolbridge.servers.registry import ServerStatus as ServerStatus
from toolbridge.sources.plugins import hookimpl as hookimpl
from toolbridge.sources.sections import Section as Section
from toolbridge.tools.binding import ToolContext as ToolContext
from toolbridge.tools.server import create_server as create_server
from toolbridge.tools.tool import InProcessTool as InProcessTool
from toolbridge.tools.tool import tool as tool
from toolbridge.trust.approval.approver import ApprovalRequest as ApprovalRequest
from toolbridge.trust.approval.approvers import CallbackApprover as CallbackApprover
from toolbridge.trust.approval.approvers import StoredApprovals as StoredApprovals
from toolbridge.trust.approval.approvers import TerminalApprover as TerminalApprover
from toolbridge.trust.approval.store import ApprovalStore as ApprovalStore
from toolbridge.trust.gate import ToolUse as ToolUse

__version__: str
