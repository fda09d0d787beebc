"""SECURITY: tries whether a compiled Python image is closed where it has to be, before its code is kept or used (T31).

CPython comes with calls of the system that would block its host beyond every deadline, or tell the real time.
That they are ours, or traps, rests on how the image and Wasmtime spell the names and versions of WASI's interfaces. So
it is not believed but tried, once for each compilation: what is found in the compile cache has been tried.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolbridge.boundary.host_call import HostSide
from toolbridge.errors import EngineError
from toolbridge.limits import Limits
from toolbridge.sandbox.component_instance import ComponentImage, ComponentInstance
from toolbridge.sandbox.dialect import PYTHON
from toolbridge.sandbox.execution import Execution
from toolbridge.sandbox.outcome import RunResult
from toolbridge.sandbox.scheduler import TaskScheduler
from toolbridge.sandbox.waiting import wait_for

if TYPE_CHECKING:
    from toolbridge.sandbox.engine import Engine

_LIMITS = Limits(wall_seconds=30.0, cpu_seconds=20.0)
_TIME = 1_234_567_890.0
_CLOCKS_AND_RANDOM = "import os, time\n[time.time(), time.monotonic() < 60, len(os.urandom(8))]"
# The module as CPython has it, without what ours puts in its place.
_SLEEP = """
import _imp, importlib.machinery
module = _imp.create_builtin(importlib.machinery.ModuleSpec("time", importlib.machinery.BuiltinImporter))
_imp.exec_builtin(module)
module.sleep(1)
"""


def check_component(engine: Engine, image: ComponentImage) -> None:
    """Runs two small programs in it.

    Raises:
        EngineError: it can block its host, or has other clocks or random numbers than those that are granted.
    """
    result = _run(engine, image, _CLOCKS_AND_RANDOM)
    if result.value != [_TIME, True, 8]:
        found = result.failure.message if result.failure is not None else repr(result.value)
        raise EngineError("give the python guest image its clocks and random numbers", found)
    result = _run(engine, image, _SLEEP)
    if result.failure is None or result.failure.kind != "denied":
        found = (
            result.failure.message if result.failure is not None else "it slept at the system, and so it can block us"
        )
        raise EngineError("keep the python guest image from blocking its host", found)


def _run(engine: Engine, image: ComponentImage, source: str) -> RunResult:
    def no_loop(_task: object) -> None:
        raise RuntimeError("nothing is called here")

    execution = Execution(
        engine=engine,
        dialect=PYTHON,
        source=source,
        seed=bytes(32),
        limits=_LIMITS,
        host=HostSide({}),
        scheduler=TaskScheduler(_LIMITS, no_loop),
        clock=lambda: _TIME,
        new_instance=lambda: ComponentInstance(engine.pointer, image, _LIMITS.memory_bytes),
    )
    return wait_for(execution)
