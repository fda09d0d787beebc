"""Typed stubs from tool schemas: reserved for the stub generator, which is not part of this version."""
