"""Shared notes, as a plugin for toolbridge."""
