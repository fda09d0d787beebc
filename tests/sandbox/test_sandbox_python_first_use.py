"""The first run in Python, when the image has to be compiled: the event loop goes on."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from functools import partial

import anyio
import pytest

from growth import patience
from toolbridge import RunResult, Sandbox
from toolbridge.errors import EngineError
from toolbridge.sandbox.component_instance import ComponentImage
from toolbridge.sandbox.engine import CompileNotice, Engine, shared_engine

pytestmark = pytest.mark.anyio


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    return request.param


class Compiling(threading.Event):
    """Set when the image is compiled."""

    def __init__(self) -> None:
        super().__init__()
        self.began = threading.Event()


@pytest.fixture
def slow_image(monkeypatch: pytest.MonkeyPatch) -> Iterator[Compiling]:
    """As if the image had to be compiled until this is set."""
    engine = shared_engine()
    ready = engine.python_image()
    compiled = Compiling()

    def python_image(_engine: Engine, on_compile: CompileNotice | None = None) -> ComponentImage:
        if not engine.is_ready("python"):
            compiled.began.set()
            assert compiled.wait(60)
            engine._python = ready
        return ready

    monkeypatch.setattr(Engine, "python_image", python_image)
    engine._python = None
    yield compiled
    compiled.set()
    engine._python = ready


async def test_the_event_loop_goes_on_while_the_image_is_compiled(slow_image: Compiling, sandbox: Sandbox) -> None:
    result: RunResult | None = None

    async def beat() -> None:
        for _ in range(20):
            await anyio.sleep(0.02)
        slow_image.set()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(beat)
        result = await sandbox.run("1 + 1", language="python")
    assert result is not None
    assert result.value == 2
    assert result.usage.wall_seconds < patience(0.1)  # compiling is not the run's time


async def test_it_can_be_cancelled_meanwhile(slow_image: Compiling, sandbox: Sandbox) -> None:
    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(partial(sandbox.run, "1 + 1", language="python"))
            while not slow_image.began.is_set():  # noqa: ASYNC110  # it is a thread's
                await anyio.sleep(0.01)
            tasks.cancel_scope.cancel()
    assert not shared_engine().is_ready("python")
    slow_image.set()
    with anyio.fail_after(60):
        while not shared_engine().is_ready("python"):  # noqa: ASYNC110  # the thread that was left to itself
            await anyio.sleep(0.01)


async def test_an_error_of_the_installation_is_raised_as_it_is(
    monkeypatch: pytest.MonkeyPatch, slow_image: Compiling, sandbox: Sandbox
) -> None:
    def broken(_engine: Engine, on_compile: CompileNotice | None = None) -> ComponentImage:
        raise EngineError("compile", "broken")

    monkeypatch.setattr(Engine, "python_image", broken)
    with pytest.raises(EngineError, match="broken"):
        await sandbox.run("1 + 1", language="python")
