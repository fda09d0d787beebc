"""Plugins: packages that offer servers to tasks."""

from toolbridge.config.policy import PluginPolicy
from toolbridge.sources.plugins import Plugin, ProvidedServer, hookimpl, load_plugins

__all__ = ["Plugin", "PluginPolicy", "ProvidedServer", "hookimpl", "load_plugins"]
