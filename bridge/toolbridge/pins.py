"""Pins of tool definitions in `toolbridge.lock`, and the audit of their text for injected instructions."""

from toolbridge.servers.listing import Listing, ToolProblem
from toolbridge.trust.audit.detector import Finding, audit
from toolbridge.trust.pins.admission import Admission, BlockedTool
from toolbridge.trust.pins.lock_file import LockError
from toolbridge.trust.pins.pins import LockPins, Pins

__all__ = ["Admission", "BlockedTool", "Finding", "Listing", "LockError", "LockPins", "Pins", "ToolProblem", "audit"]
