"""The hook that plugins implement. A plugin imports `hookimpl` from `toolbridge`, and nothing else."""

from __future__ import annotations

from typing import Any

import pluggy

PROJECT = "toolbridge"
hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)
"""Marks a plugin's method as its implementation of the hook `provide_mcp_servers`."""


class PluginHooks:
    """What a plugin can implement."""

    @hookspec
    def provide_mcp_servers(self) -> list[dict[str, Any]] | None:  # pyright: ignore[reportReturnType]
        """Servers to offer: dicts of name, package, command, args, env_required, capabilities, keywords."""
