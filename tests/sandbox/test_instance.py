"""One instance of the guest image: fresh, limited, dead after a trap."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from queue import SimpleQueue
from typing import Any

import pytest

from toolbridge import Limits
from toolbridge.boundary.host_call import HostSide
from toolbridge.boundary.run_state import RunState
from toolbridge.boundary.wire import RunFrame, decode_outcome, encode_run
from toolbridge.sandbox.engine import shared_engine
from toolbridge.sandbox.instance import GuestTrap, Instance
from toolbridge.sandbox.outcome import PROGRAM_FILE
from toolbridge.sandbox.scheduler import BackgroundLoop, TaskScheduler


def on_guest_thread(job: Callable[[], Any]) -> Any:
    """A guest needs a stack that only guest threads have."""
    done: SimpleQueue[Any] = SimpleQueue()

    def work() -> None:
        try:
            done.put(job())
        except BaseException as error:
            done.put(error)

    shared_engine().threads.submit(work)
    result = done.get(timeout=60)
    if isinstance(result, BaseException):
        raise result
    return result


def new_instance(limits: Limits | None = None) -> Instance:
    engine = shared_engine()
    return Instance(engine.pointer, engine.image("javascript"), (limits or Limits()).memory_bytes)


@pytest.fixture
def instance() -> Iterator[Instance]:
    made = new_instance()
    yield made
    made.close()


def run_to_its_end(instance: Instance, state: RunState, frame: bytes) -> tuple[int, int]:
    """What `Instance.run` gives on a guest thread, where it never yields."""
    try:
        next(instance.run(state, frame, False))
    except StopIteration as end:
        return end.value
    raise AssertionError("it yielded")


def run(instance: Instance, source: str, limits: Limits | None = None) -> tuple[Any, RunState]:
    """The program's value, and the state that it ran with."""
    limits = limits or Limits()
    frame = encode_run(RunFrame(source, PROGRAM_FILE, "00" * 32, limits.stack_bytes))
    loop = BackgroundLoop()
    scheduler = TaskScheduler(limits, loop.post)
    ticker = shared_engine().ticker
    state = RunState(
        limits=limits, host=HostSide({}), scheduler=scheduler, ticks=ticker.ticks, clock=lambda: 0.0, frame=frame
    )

    def job() -> Any:
        ticker.enter()
        try:
            pointer, length = run_to_its_end(instance, state, frame)
        finally:
            ticker.leave()
        return decode_outcome(instance.memory.read(pointer, length)).value

    try:
        return on_guest_thread(job), state
    finally:
        loop.close()


def test_a_program_runs_and_its_value_is_read_from_memory(instance: Instance) -> None:
    assert run(instance, "[1, 'two'].concat({ three: 3 })")[0] == [1, "two", {"three": 3}]


def test_an_instance_keeps_its_state_from_one_run_to_the_next(instance: Instance) -> None:
    run(instance, "let counter = 1")
    assert run(instance, "counter += 1")[0] == 2


def test_two_instances_share_nothing(instance: Instance) -> None:
    other = new_instance()
    try:
        run(instance, "globalThis.secret = 1; Array.prototype.secret = 2")
        assert run(other, "[typeof secret, [].secret ?? null]")[0] == ["undefined", None]
    finally:
        other.close()


def test_memory_grows_with_the_program_and_stops_at_the_limit() -> None:
    limits = Limits(memory_bytes=16 * 2**20)
    instance = new_instance(limits)
    try:
        before = instance.memory.size
        program = "const all = []; try { for (;;) all.push(new Uint8Array(2 ** 20)) } catch { all.length }"
        count, _ = run(instance, program, limits)
        assert 0 < count < 16
        assert before < instance.memory.size <= 16 * 2**20
    finally:
        instance.close()


def test_a_run_that_is_ended_traps(instance: Instance) -> None:
    with pytest.raises(GuestTrap):
        run(instance, "for (;;);", Limits(wall_seconds=0.05))


def test_a_run_that_has_ended_already_traps_at_once(instance: Instance) -> None:
    with pytest.raises(GuestTrap):
        run(instance, "while (true) {}", Limits(cpu_seconds=0.001))


def test_closing_twice_is_harmless() -> None:
    instance = new_instance()
    instance.close()
    instance.close()
