"""T32, escape from Python: nothing of the host, and of no other run's memory, is reachable."""

from __future__ import annotations

import json
import os
import socket
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from threats.hostile_programs import Contain, HostileProgram, python_programs_for
from toolbridge import Limits, Sandbox
from toolbridge.boundary.component_imports import IMPORTS

SECRET = "s3cret-7c2e51"

# Every text that can be reached: from all objects, from what is behind them, and from the errors of the host.
LOOK_EVERYWHERE = """
import gc, os, sys, platform, time
from host.demo import fail
errors = []
for attempt in (lambda: fail(), lambda: __import__("host.nothing"), lambda: open("x"), lambda: fail.nothing):
    try: attempt()
    except Exception as error: errors += [str(error), repr(error), repr(vars(error)), repr(error.__traceback__)]
gc.unfreeze()
texts = errors + [platform.platform(), os.getcwd()]
texts += map(repr, (os.uname(), sys.argv, os.environ, time.tzname))
for each in gc.get_objects():
    if isinstance(each, dict):
        texts += [text for pair in list(each.items()) for text in pair if isinstance(text, str)]
    elif isinstance(each, (list, tuple, set, frozenset)):
        texts += [text for text in each if isinstance(text, str)]
found = "\\n".join(texts)
[len(texts), [fact for fact in BACKWARDS if fact[::-1] in found]]
"""


@pytest.mark.parametrize("program", python_programs_for("T32"), ids=lambda program: program.name)
def test_a_program_that_tries_to_get_out_finds_nothing(program: HostileProgram, contain_python: Contain) -> None:
    contain_python(program)


def test_what_is_granted_is_what_was_reviewed_and_no_more() -> None:
    """Wasmtime would link all of WASI in one line. Whatever is added here has to be added with a reason."""
    granted = {(interface.partition("@")[0], name) for interface, functions in IMPORTS.items() for name in functions}
    assert granted == {
        *(("", name) for name in ("call", "start", "wait", "take", "log", "now")),
        *(("wasi:clocks/monotonic-clock", name) for name in ("now", "resolution")),
        *(("wasi:clocks/wall-clock", name) for name in ("now", "resolution")),
        *(("wasi:random/random", name) for name in ("get-random-bytes", "get-random-u64")),
        *(("wasi:cli/environment", name) for name in ("get-environment", "get-arguments")),
        ("wasi:filesystem/preopens", "get-directories"),
    }


# ---- what the host knows and the guest must not


def _fail() -> None:
    local = SECRET
    raise ValueError(f"failed with {len(local)} characters")


@pytest.fixture
def revealing_sandbox(monkeypatch: pytest.MonkeyPatch, python_sandbox: Sandbox) -> Iterator[Sandbox]:
    monkeypatch.setenv("TOOLBRIDGE_TEST_SECRET", SECRET)
    monkeypatch.setattr(sys, "argv", [*sys.argv, SECRET])
    with Sandbox(modules={"host:demo": {"fail": _fail}}) as sandbox:
        yield sandbox


def test_nothing_that_a_guest_can_read_holds_a_fact_about_the_host(revealing_sandbox: Sandbox) -> None:
    facts = {SECRET, str(Path.cwd()), str(Path.home()), sys.executable, socket.gethostname(), __file__}
    # Written backwards, or the program would find itself.
    source = LOOK_EVERYWHERE.replace("BACKWARDS", repr([fact[::-1] for fact in sorted(facts) if len(fact) > 3]))
    limits = Limits(memory_bytes=256 * 2**20, wall_seconds=60.0, cpu_seconds=60.0)
    result = revealing_sandbox.run_sync(source, language="python", limits=limits)
    assert result.failure is None, str(result.failure)
    assert result.value[0] > 1000
    assert result.value[1] == []


def test_the_hosts_time_zone_and_clock_are_not_the_guests(
    monkeypatch: pytest.MonkeyPatch, python_sandbox: Sandbox
) -> None:
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    source = """
import datetime, time
now = datetime.datetime.now().isoformat()
[now, time.tzname[0], time.timezone, time.localtime().tm_hour, time.time(), time.time_ns()]
"""
    try:
        with Sandbox(clock=lambda: 86_400.0) as sandbox:
            result = sandbox.run_sync(source, language="python")
    finally:
        monkeypatch.undo()
        time.tzset()
    assert result.value == ["1970-01-02T00:00:00", "UTC", 0, 0, 86_400.0, 86_400_000_000_000]


def test_a_guest_opens_no_descriptor_and_starts_no_process(python_sandbox: Sandbox) -> None:
    events: list[str] = []
    watched = ("open", "socket.", "subprocess.", "os.", "shutil.", "import", "compile", "exec")

    def hook(event: str, arguments: tuple[object, ...]) -> None:
        if listening and event.startswith(watched):
            events.append(event)

    listening = False
    sys.addaudithook(hook)  # can't be removed: `listening` switches it off
    program = """
import os, subprocess, socket
from host.demo import add
for function, argument in ((open, "/etc/passwd"), (os.listdir, "/"), (subprocess.run, ["id"]), (socket.socket, 2)):
    try: function(argument)
    except OSError: pass
add(1, 2)
"""
    python_sandbox.run_sync(program, language="python")
    listening = True
    result = python_sandbox.run_sync(program, language="python")
    listening = False
    assert result.value == 3
    assert events == []


def test_a_run_sees_no_memory_of_the_run_before(python_sandbox: Sandbox) -> None:
    """Uninitialised memory of a fresh instance holds nothing of another's: it is the image's, or zero."""
    mark = os.urandom(8).hex()
    python_sandbox.run_sync(f"kept = ['{mark}' * 1000 for _ in range(2000)]\nlen(kept)", language="python")
    looking = f"""
import gc, json
needle = "{mark[::-1]}"[::-1]
found = []
gc.disable()
for size in (64, 1000, 16_000, 1_000_000, 8_000_000):
    class Empty(bytearray): pass
    data = Empty(size)
    found.append(needle.encode() in bytes(data))
found
"""
    result = python_sandbox.run_sync(looking, language="python")
    assert json.dumps(result.value) == "[false, false, false, false, false]"
