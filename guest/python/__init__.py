"""The Python guest: CPython as a WebAssembly component, and what runs programs in it."""
