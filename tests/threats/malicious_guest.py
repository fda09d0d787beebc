"""Guests written in WebAssembly text, for what no JavaScript could do: the other side of the boundary is ours to abuse.

A guest imports what every image may import, has two pages of memory (128 KiB), and consists of the body of `run`.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import anyio
import wasmtime

from toolbridge import Limits, RunResult
from toolbridge.boundary import library
from toolbridge.boundary.host_call import Deliver, HostSide, PendingCall, Reply, Scheduler, failed, reply_with
from toolbridge.boundary.run_state import Ending, RunState
from toolbridge.sandbox.engine import Engine, shared_engine
from toolbridge.sandbox.execution import Execution
from toolbridge.sandbox.instance import GuestTrap, Image, Instance
from toolbridge.sandbox.outcome import JAVASCRIPT
from toolbridge.sandbox.sandbox import host_modules, wait_for, wait_for_async
from toolbridge.sandbox.scheduler import LoopTasks, TaskScheduler

MEMORY_BYTES = 2 * 65536
REQUEST, REPLY, REPLY_BYTES, OUTCOME = 0, 65536, 32768, 120_000
"""Where guests keep what they send and receive."""

# Plenty for guests that end by themselves; those that don't get less.
LIMITS = Limits(wall_seconds=5.0, cpu_seconds=5.0)
SHORT = Limits(wall_seconds=0.4, cpu_seconds=0.3, host_calls=100)

_HEAD = """
  (import "toolbridge" "call" (func $call (param i32 i32 i32 i32) (result i32)))
  (import "toolbridge" "start" (func $start (param i32 i32) (result i32)))
  (import "toolbridge" "wait" (func $wait (param i64 i32 i32) (result i32)))
  (import "toolbridge" "take" (func $take (param i32 i32) (result i32)))
  (import "toolbridge" "log" (func $log (param i32 i32 i32)))
  (import "toolbridge" "now" (func $now (param i32) (result i64)))
  (import "toolbridge" "leave" (func $leave))
  (memory (export "memory") 2)
"""


def _escape(data: bytes) -> str:
    return "".join(f"\\{byte:02x}" for byte in data)


def outcome(frame: bytes) -> str:
    """The end of a body: the run's outcome is this frame."""
    return f"(i64.const {len(frame) << 32 | OUTCOME})"


class ThreadScheduler:
    """Runs each started call on a thread of its own: no event loop comes between guest and function."""

    def start(self, call: PendingCall, deliver: Deliver) -> None:
        """Begins the call."""

        def perform() -> None:
            try:
                reply = reply_with(call.request, call.function.function(*call.arguments), Limits().frame_bytes)
            except Exception as error:
                reply = Reply(failed(error))
            deliver(call, reply)

        threading.Thread(target=perform, daemon=True).start()

    def start_awaiting(self, call: PendingCall, value: Any, deliver: Deliver) -> None:
        """No function of these guests gives anything to await."""
        raise NotImplementedError


FINE = b'{"wire":1,"value":"fine"}'


@cache
def linked_image(wat: str) -> tuple[Engine, Image]:
    """A module as the engine compiles and links images.

    Raises:
        EngineError: it refuses to.
    """
    engine = shared_engine()
    code = bytes(wasmtime.wat2wasm(wat))
    module = ctypes.c_void_p()
    library.check(library.module_new(engine.pointer, code, len(code), ctypes.byref(module)), "compile a test's guest")
    assert module.value
    return engine, engine._link(module.value)


@dataclass(frozen=True)
class MaliciousGuest:
    """`body` is the text of `run`, whose last value is the packed outcome; `request` lies at REQUEST."""

    body: str
    request: bytes = b""
    frame: bytes = FINE
    functions: str = ""
    inbox: int | None = None
    """Where the host may put a run frame. With one, `body` runs as `run_inbox`, begun on the caller's thread."""

    def wat(self) -> str:
        """The whole module."""
        name = "run" if self.inbox is None else "run_inbox"
        inbox = f'(func (export "inbox") (result i64) (i64.const {4096 << 32 | (self.inbox or 0)}))'
        return (
            f"(module {_HEAD}"
            f'(data (i32.const {REQUEST}) "{_escape(self.request)}")'
            f'(data (i32.const {OUTCOME}) "{_escape(self.frame)}")'
            f"{self.functions}{inbox if self.inbox is not None else ''}"
            f'(func (export "{name}") (param $length i32) (result i64) (local $i i32) {self.body}))'
        )

    def new_instance(self) -> tuple[Engine, Instance]:
        """A fresh instance of this guest."""
        engine, image = linked_image(self.wat())
        return engine, Instance(engine.pointer, image, Limits().memory_bytes)

    def run(
        self,
        functions: Mapping[str, Callable[..., Any]] | None = None,
        limits: Limits = LIMITS,
    ) -> RunResult:
        """Runs the guest just as a program is run: whatever it does, there is a result."""
        return wait_for(self._execution(functions, limits, ThreadScheduler()))

    async def run_async(
        self, functions: Mapping[str, Callable[..., Any]] | None = None, limits: Limits = LIMITS
    ) -> RunResult:
        """The same on an event loop."""
        result: RunResult | None = None
        async with anyio.create_task_group() as calls:
            inbox = LoopTasks(calls)
            scheduler = TaskScheduler(limits, inbox.post)
            result = await wait_for_async(self._execution(functions, limits, scheduler), inbox, scheduler)
            calls.cancel_scope.cancel()
        assert result is not None
        return result

    def _execution(
        self, functions: Mapping[str, Callable[..., Any]] | None, limits: Limits, scheduler: Scheduler
    ) -> Execution:
        engine, _ = linked_image(self.wat())
        return Execution(
            engine=engine,
            dialect=JAVASCRIPT,
            source="",
            seed=bytes(32),
            limits=limits,
            host=HostSide(host_modules({"host:demo": functions or {}})),
            scheduler=scheduler,
            clock=lambda: 0.0,
            new_instance=lambda: self.new_instance()[1],
        )

    def look(
        self,
        functions: Mapping[str, Callable[..., Any]] | None = None,
        limits: Limits = LIMITS,
    ) -> Seen:
        """Runs the guest on this thread, and looks at its memory afterwards."""
        engine, instance = self.new_instance()
        frame = b'{"run":"frame"}'
        state = RunState(
            limits=limits,
            host=HostSide(host_modules({"host:demo": functions or {}})),
            scheduler=ThreadScheduler(),
            ticks=engine.ticker.ticks,
            clock=lambda: 0.0,
            frame=frame,
        )
        trapped = False
        engine.ticker.enter()
        try:
            for _ in instance.run(state, frame, False):
                raise AssertionError("a run on a guest thread never yields")
        except GuestTrap:
            trapped = True
        finally:
            engine.ticker.leave()
        memory = instance.memory.read(0, MEMORY_BYTES)
        instance.close()
        return Seen(memory, trapped, state.ending, state)


@dataclass(frozen=True)
class Seen:
    """What is left of a guest that ran."""

    memory: bytes
    trapped: bool
    ending: Ending | None
    state: RunState = field(repr=False)

    def code(self, index: int = 0) -> int:
        """The index-th number that the guest put behind its request, at REQUEST + 60000."""
        at = REQUEST + 60_000 + 4 * index
        return int.from_bytes(self.memory[at : at + 4], "little", signed=True)

    def reply(self) -> bytes:
        """What the host wrote to REPLY, as long as the first code says."""
        return self.memory[REPLY : REPLY + self.code()]


def keep(index: int, call: str) -> str:
    """Puts a call's result where `Seen.code` finds it."""
    return f"(i32.store (i32.const {REQUEST + 60_000 + 4 * index}) {call})"


def call_with(request: bytes) -> MaliciousGuest:
    """A guest that makes one call with these bytes as its request, and keeps code and reply."""
    call = (
        f"(call $call (i32.const {REQUEST}) (i32.const {len(request)}) (i32.const {REPLY}) (i32.const {REPLY_BYTES}))"
    )
    return MaliciousGuest(keep(0, call) + outcome(FINE), request=request)
