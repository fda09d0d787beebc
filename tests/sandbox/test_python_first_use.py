"""The first run in Python, when the image has to be compiled: the event loop goes on."""

from __future__ import annotations

import time
from collections.abc import Iterator

import anyio
import pytest

from toolbridge import EngineError, RunResult, Sandbox
from toolbridge.sandbox.component_instance import ComponentImage
from toolbridge.sandbox.engine import CompileNotice, Engine, shared_engine

pytestmark = pytest.mark.anyio


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def slow_image(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """As if the image had to be compiled for half a second."""
    engine = shared_engine()
    ready = engine.python_image()

    def python_image(_engine: Engine, on_compile: CompileNotice | None = None) -> ComponentImage:
        if not engine.is_ready("python"):
            time.sleep(0.5)
            engine._python = ready
        return ready

    monkeypatch.setattr(Engine, "python_image", python_image)
    engine._python = None
    yield
    engine._python = ready


async def test_the_event_loop_goes_on_while_the_image_is_compiled(slow_image: None, sandbox: Sandbox) -> None:
    beats = 0
    result: RunResult | None = None

    async def beat() -> None:
        nonlocal beats
        while True:
            await anyio.sleep(0.02)
            beats += 1

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(beat)
        result = await sandbox.run("1 + 1", language="python")
        tasks.cancel_scope.cancel()
    assert result is not None
    assert result.value == 2
    assert result.usage.wall_seconds < 0.5  # compiling is not the run's time
    assert beats >= 5


async def test_it_can_be_cancelled_meanwhile(slow_image: None, sandbox: Sandbox) -> None:
    began = time.perf_counter()
    with anyio.move_on_after(0.1) as scope:
        await sandbox.run("1 + 1", language="python")
    assert scope.cancelled_caught
    assert time.perf_counter() - began < 0.45
    await anyio.sleep(0.6)  # the thread that was left to itself ends


async def test_an_error_of_the_installation_is_raised_as_it_is(
    monkeypatch: pytest.MonkeyPatch, slow_image: None, sandbox: Sandbox
) -> None:
    def broken(_engine: Engine, on_compile: CompileNotice | None = None) -> ComponentImage:
        raise EngineError("compile", "broken")

    monkeypatch.setattr(Engine, "python_image", broken)
    with pytest.raises(EngineError, match="broken"):
        await sandbox.run("1 + 1", language="python")
