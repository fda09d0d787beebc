"""The type-check of Python programs: `ty` over a rewritten program."""
