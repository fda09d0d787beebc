"""Errors that toolbridge raises to its host.

    ToolbridgeError
    ├── GuestImageError      a guest image is missing or damaged
    ├── EngineError          Wasmtime refused: a broken installation or an exhausted machine
    ├── HostModuleError      `modules=` can't be offered to guest code as it is
    ├── MisuseError          an argument is of the wrong type
    ├── LimitsError          a limit is out of range
    ├── SeedError            a seed is not 32 bytes
    ├── SandboxClosedError   used after close()
    └── SessionBusyError     a session runs one program at a time

They mean misuse or a broken installation. Whatever guest code does is never raised: it comes back
as `RunResult.failure`.
"""

from __future__ import annotations


class ToolbridgeError(Exception):
    """The base of every error that toolbridge raises."""


class GuestImageError(ToolbridgeError):
    """A guest image is missing or damaged."""

    def __init__(self, language: str, problem: str) -> None:
        self.language = language
        super().__init__(
            f"The {language} guest image {problem}. In a checkout, run `make guest`; "
            "otherwise reinstall the toolbridge package."
        )


class EngineError(ToolbridgeError):
    """Wasmtime refused to do something that does not depend on guest code."""

    def __init__(self, doing: str, message: str) -> None:
        super().__init__(f"Wasmtime failed to {doing}: {message}")


class HostModuleError(ToolbridgeError, ValueError):
    """A module can't be offered to guest code as it is."""

    def __init__(self, specifier: object, problem: str) -> None:
        self.specifier = specifier
        super().__init__(f"Module {specifier!r}: {problem}")


class MisuseError(ToolbridgeError, TypeError):
    """An argument is of the wrong type."""

    def __init__(self, name: str, value: object, expected: str) -> None:
        super().__init__(f"{name} is of type {type(value).__name__}: expected {expected}")


class LimitsError(ToolbridgeError, ValueError):
    """A limit is out of range."""

    def __init__(self, name: str, value: object, expected: str) -> None:
        self.name = name
        super().__init__(f"Limits.{name} is {value!r}: expected {expected}")


class SeedError(ToolbridgeError, ValueError):
    """A run's seed is not 32 bytes."""

    def __init__(self, length: int) -> None:
        super().__init__(f"A seed has 32 bytes: this one has {length}. `hashlib.sha256(text).digest()` makes one.")


class SandboxClosedError(ToolbridgeError):
    """A sandbox or session was used after it was closed."""

    def __init__(self, what: str) -> None:
        super().__init__(f"This {what} is closed.")


class SessionBusyError(ToolbridgeError):
    """A session runs one program at a time."""

    def __init__(self) -> None:
        super().__init__(
            "This session is running a program: await it before running another, or open a second session."
        )
