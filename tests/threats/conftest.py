"""What the threat tests share: the sandbox that hostile programs run in, and what must hold of every run."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import wasmtime

from growth import patience
from threats.demo_functions import DEMO_FUNCTIONS
from threats.hostile_programs import (
    DEFAULT_LIMITS,
    GRANTED_TIME,
    MOST_FAILURE_TEXT,
    MOST_LATENESS,
    OUTPUT_MARKER_ROOM,
    Contain,
    HostileProgram,
)
from threats.tiny_cache import WAT, Loads, use_image
from toolbridge import RunResult, Sandbox
from toolbridge.sandbox.outcome import SandboxLanguage
from toolbridge_guest import GuestImage

JAVASCRIPT_INNOCENT = """
import { add } from "host:demo";
import { add as start } from "host:demo/async";
const leaks = Object.getOwnPropertyNames(globalThis).filter((name) => name === "leaked" || name === "counter");
await new Promise((done) => setTimeout(done, 1));
export default [add(20, 22), await start(1, 1), JSON.stringify({ a: [1] }), leaks];
"""
PYTHON_INNOCENT = """
import asyncio, builtins, json, os, sys
from host.demo import add
from host.demo.aio import add as start
leaks = [name for name in ("leaked", "counter") if hasattr(builtins, name) or hasattr(sys, name) or name in globals()]
leaks += os.environ
await asyncio.sleep(0.001)
[add(20, 22), await start(1, 1), json.dumps({"a": sorted([1])}, separators=(",", ":")), leaks]
"""
INNOCENT_PROGRAMS: dict[SandboxLanguage, str] = {"javascript": JAVASCRIPT_INNOCENT, "python": PYTHON_INNOCENT}
INNOCENT_VALUE: list[Any] = [42, 2, '{"a":[1]}', []]


@pytest.fixture(scope="session")
def demo_sandbox() -> Iterator[Sandbox]:
    """Functions of every sort, and a clock that shows an instant of its own."""
    with Sandbox(modules={"host:demo": DEMO_FUNCTIONS}, clock=lambda: GRANTED_TIME) as sandbox:
        assert sandbox.run_sync("1 + 1").value == 2
        yield sandbox


@pytest.fixture(scope="session")
def python_sandbox(demo_sandbox: Sandbox) -> Sandbox:
    """The same, with the Python image compiled: on no program's time."""
    assert demo_sandbox.run_sync("1 + 1", language="python").value == 2
    return demo_sandbox


@pytest.fixture(scope="session")
def contain(demo_sandbox: Sandbox) -> Contain:
    """Runs a hostile program: it ends in time and as declared, and the next program is none the worse."""

    def run(program: HostileProgram) -> RunResult:
        # The clock is a limit only of what is to run into it.
        limits = program.limits if "timeout" in program.kinds else program.limits.with_(wall_seconds=120.0)
        began = time.perf_counter()
        result = demo_sandbox.run_sync(program.source, language=program.language, limits=limits)
        took = time.perf_counter() - began
        text = str(result.failure) if result.failure is not None else ""

        assert program.is_met_by(result), f"expected {program.expectation()}, got {text or repr(result.value)[:500]}"
        assert took <= limits.wall_seconds + patience(MOST_LATENESS), f"it took {took:.3f} s"
        assert len(text) <= MOST_FAILURE_TEXT
        output = len(result.stdout) + len(result.stderr)
        assert output <= program.limits.output_bytes + OUTPUT_MARKER_ROOM
        assert len(result.calls) <= program.limits.host_calls

        innocent = INNOCENT_PROGRAMS[program.language]
        limits = DEFAULT_LIMITS[program.language].with_(wall_seconds=120.0)
        following = demo_sandbox.run_sync(innocent, language=program.language, limits=limits)
        assert (following.value, following.stdout, following.failure) == (INNOCENT_VALUE, "", None)
        return result

    return run


@pytest.fixture(scope="session")
def contain_python(python_sandbox: Sandbox, contain: Contain) -> Contain:
    """The same for programs in Python."""
    return contain


# ---- T34


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return tmp_path / "cache"


@pytest.fixture
def image(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> GuestImage:
    """A tiny image in place of JavaScript's, which takes seconds to compile."""
    code = bytes(wasmtime.wat2wasm(WAT))
    (tmp_path / "tiny.wasm").write_bytes(code)
    image = GuestImage("javascript", str(tmp_path / "tiny.wasm"), hashlib.sha256(code).hexdigest())
    use_image(monkeypatch, image)
    return image


@pytest.fixture
def loads(monkeypatch: pytest.MonkeyPatch) -> Loads:
    return Loads(monkeypatch)
