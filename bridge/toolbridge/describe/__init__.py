"""Describing tools to a model: search, modules, and the section of a system prompt."""
