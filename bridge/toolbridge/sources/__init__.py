"""Servers that come from elsewhere than a file: plugins, tasks, prompt sections; and which of two holds."""
