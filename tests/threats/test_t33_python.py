"""T33, state bleed between runs in Python: what one run leaves is invisible to the next."""

from __future__ import annotations

import asyncio
import threading

import pytest
from anyio import to_thread

from threats.hostile_programs import Contain, HostileProgram, python_programs_for
from toolbridge import Limits, Sandbox

PROBE = """
import asyncio, builtins, codecs, decimal, gc, io, json, os, random, sys, types, warnings
import host.demo
seen = []
for module in (builtins, sys, json, os, asyncio, io, codecs, decimal, random, warnings, host.demo):
    for name, value in sorted(vars(module).items()):
        shown = type(value).__name__ if name.startswith("_") or "object at" in repr(value) else repr(value)[:200]
        if name != "modules": seen.append(f"{module.__name__}.{name} {shown}")
for kind in (object, type, dict, list, str, int, types.ModuleType, host.demo.add.__class__, json.JSONEncoder):
    seen += [f"{kind.__name__}.{name} {type(value).__name__}" for name, value in sorted(vars(kind).items())]
seen += [repr(sorted(sys.modules)), repr([type(each).__name__ for each in sys.meta_path]), repr(dict(os.environ))]
seen += [str(sys.getrecursionlimit()), str(gc.isenabled()), str(decimal.getcontext()), str(len(warnings.filters))]
seen
"""


@pytest.mark.parametrize("program", python_programs_for("T33"), ids=lambda program: program.name)
def test_what_a_program_leaves_behind_is_gone_when_it_runs_again(
    program: HostileProgram, contain_python: Contain
) -> None:
    contain_python(program)
    contain_python(program)


@pytest.mark.parametrize("program", python_programs_for("T33"), ids=lambda program: program.name)
def test_the_interpreter_is_as_it_was_after_a_program_that_leaves_things_behind(
    program: HostileProgram, python_sandbox: Sandbox
) -> None:
    before = python_sandbox.run_sync(PROBE, language="python")
    python_sandbox.run_sync(program.source, language="python", limits=program.limits)
    after = python_sandbox.run_sync(PROBE, language="python")
    assert before.failure is None, str(before.failure)
    assert len(before.value) > 700
    assert after.value == before.value


def test_random_numbers_differ_from_run_to_run(python_sandbox: Sandbox) -> None:
    source = """
import os, random, secrets, uuid
[random.random(), secrets.token_hex(8), os.urandom(8).hex(), uuid.uuid4().hex]
"""
    runs = [python_sandbox.run_sync(source, language="python").value for _ in range(5)]
    assert all(len(set(column)) == 5 for column in zip(*runs, strict=True))


def test_a_session_is_seeded_anew_for_every_run(python_sandbox: Sandbox) -> None:
    with python_sandbox.session(language="python") as session:
        values = [session.run_sync("import random\nrandom.random()").value for _ in range(5)]
    assert len(set(values)) == 5


def test_sessions_do_not_see_each_other(python_sandbox: Sandbox) -> None:
    look = """
import builtins, json, os
[hasattr(builtins, "leaked"), "leaked" in globals(), json.dumps(1), dict(os.environ)]
"""
    with python_sandbox.session(language="python") as one, python_sandbox.session(language="python") as other:
        spoilt = "import builtins, json, os\nbuiltins.leaked = leaked = 1\njson.dumps = str\nos.environ['LEAKED'] = '1'"
        assert one.run_sync(spoilt).ok
        assert other.run_sync(look).value == [False, False, "1", {}]
        assert one.run_sync("leaked").value == 1
        assert python_sandbox.run_sync(look, language="python").value == [False, False, "1", {}]


@pytest.mark.parametrize(
    "stopped",
    [
        "while True: pass",
        "from host.demo import add\nwhile True: add(1, 2)",
        "import asyncio\nawait asyncio.sleep(3600)",
        "import faulthandler\nfaulthandler._sigsegv()",
        "import _socket\n_socket.socket()",
    ],
    ids=["computing", "calling", "waiting", "crashed", "denied"],
)
def test_a_session_whose_run_was_stopped_starts_afresh(python_sandbox: Sandbox, stopped: str) -> None:
    """A guest that was stopped in the middle of anything may be in any state: it is never used again."""
    limits = Limits(wall_seconds=0.4, cpu_seconds=0.4, host_calls=100)
    with python_sandbox.session(language="python", limits=limits) as session:
        session.run_sync("mine = 1")
        result = session.run_sync(stopped)
        assert result.failure is not None
        assert any("state is lost" in note for note in result.failure.notes), str(result.failure)
        assert session.run_sync("'mine' in globals()").value is False
        assert session.run_sync("from host.demo import add\nadd(1, 2)").value == 3


def test_a_session_whose_run_failed_by_itself_goes_on_whole(python_sandbox: Sandbox) -> None:
    with python_sandbox.session(language="python", limits=Limits(memory_bytes=48 * 2**20)) as session:
        session.run_sync("mine = 1")
        for failing in (
            "raise ValueError('x')",
            "kept = []\nwhile True: kept.append(bytearray(1 << 20))",
            "def f(): return f()\nf()",
            "x = = 1",
            "import sys\nsys.exit(3)",
        ):
            assert session.run_sync(failing).failure is not None
            assert session.run_sync("kept = None\nmine").value == 1


def test_a_reply_that_comes_late_does_not_reach_the_sessions_next_run() -> None:
    """Both runs number their calls from one: the first one's reply must not settle the second one's call."""
    released = threading.Event()

    async def slow(text: str) -> str:
        await to_thread.run_sync(released.wait)
        return text

    async def quick(text: str) -> str:
        await asyncio.sleep(0.05)
        return text

    modules = {"host:demo": {"slow": slow, "quick": quick}}
    with Sandbox(modules=modules) as sandbox, sandbox.session(language="python") as session:
        start = "import asyncio\nfrom host.demo.aio import slow\ntask = asyncio.ensure_future(slow('late'))\n"
        first = session.run_sync(f"{start}await asyncio.sleep(0)\nraise ValueError('stop')")
        assert first.failure is not None
        released.set()
        second = session.run_sync("from host.demo.aio import quick\nawait quick('in time')")
        assert second.value == "in time"


def test_tasks_and_timers_of_a_sessions_run_do_not_go_on_in_the_next(python_sandbox: Sandbox) -> None:
    begin = """
import asyncio
fired = []
async def tick():
    while True:
        await asyncio.sleep(0.001)
        fired.append(1)
task = asyncio.create_task(tick())
asyncio.get_running_loop().call_later(0.3, fired.append, 2)
await asyncio.sleep(0)
fired.clear()
"""
    with python_sandbox.session(language="python") as session:
        assert session.run_sync(begin).ok
        assert session.run_sync("await asyncio.sleep(0.5)\nfired").value == []


def test_runs_at_the_same_time_do_not_see_each_other(python_sandbox: Sandbox) -> None:
    program = """
import builtins
from host.demo import sleep
found = getattr(builtins, "mark", None)
builtins.mark = "MARK"
sleep(0.01)
[found, builtins.mark]
"""

    async def main() -> list[object]:
        runs = (python_sandbox.run(program.replace("MARK", str(index)), language="python") for index in range(10))
        return [result.value for result in await asyncio.gather(*runs)]

    assert asyncio.run(main()) == [[None, str(index)] for index in range(10)]
