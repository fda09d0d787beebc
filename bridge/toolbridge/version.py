"""The version, where every part can read it without importing the others."""

__version__ = "0.1.0"
