"""Approvers of servers, authorization of tool calls, and answers to the requests of servers."""

from toolbridge.config.server_config import Origin
from toolbridge.servers.requests import ElicitationAnswer, ElicitationRequest, Elicitor, Roots, Sampler
from toolbridge.trust.approval.approver import Approval, ApprovalRequest, ApproveDigests, Approver, DenyAll
from toolbridge.trust.approval.approvers import CallbackApprover, StoredApprovals, TerminalApprover
from toolbridge.trust.approval.store import ApprovalStore, ApprovalStoreError
from toolbridge.trust.gate import CanUseTool, Decision, ToolUse

__all__ = [
    "Approval",
    "ApprovalRequest",
    "ApprovalStore",
    "ApprovalStoreError",
    "ApproveDigests",
    "Approver",
    "CallbackApprover",
    "CanUseTool",
    "Decision",
    "DenyAll",
    "ElicitationAnswer",
    "ElicitationRequest",
    "Elicitor",
    "Origin",
    "Roots",
    "Sampler",
    "StoredApprovals",
    "TerminalApprover",
    "ToolUse",
]
