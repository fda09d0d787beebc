"""Prompts: sections that bring servers, and descriptions of modules for a model."""

from toolbridge.describe.module_info import FunctionInfo, ModuleInfo
from toolbridge.describe.modules import ModuleSummary
from toolbridge.describe.search import SearchHit, ToolSearch
from toolbridge.describe.system_prompt import SystemPrompt
from toolbridge.sources.sections import RenderedPrompt, Section, Visibility, render

__all__ = [
    "FunctionInfo",
    "ModuleInfo",
    "ModuleSummary",
    "RenderedPrompt",
    "SearchHit",
    "Section",
    "SystemPrompt",
    "ToolSearch",
    "Visibility",
    "render",
]
