"""Typed stubs from tool schemas: for TypeScript and Python, from one type model."""
