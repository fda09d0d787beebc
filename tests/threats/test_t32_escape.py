"""T32, escape: no file, environment, argument, socket, process, clock or other run's memory is reachable."""

from __future__ import annotations

import json
import os
import socket
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import wasmtime

from threats.hostile_programs import Contain, HostileProgram, programs_for
from threats.malicious_guest import FINE, MaliciousGuest, linked_image, outcome
from toolbridge import Sandbox
from toolbridge.boundary.imports import IMPORTS, LEAVE
from toolbridge.errors import EngineError
from toolbridge.sandbox import instance as instance_module
from toolbridge_guest import guest_image


@pytest.mark.parametrize("program", programs_for("T32"), ids=lambda program: program.name)
def test_a_program_that_tries_to_get_out_finds_nothing(program: HostileProgram, contain: Contain) -> None:
    contain(program)


def image_bytes() -> bytes:
    image = guest_image("javascript")
    assert image is not None
    return Path(image.path).read_bytes()


def test_the_image_imports_what_the_boundary_lists_and_nothing_else() -> None:
    module = wasmtime.Module(wasmtime.Engine(), image_bytes())
    imported = {(item.module, item.name) for item in module.imports}
    assert imported == {("toolbridge", name.decode()) for name in (LEAVE, *(item.name for item in IMPORTS))}
    assert {item.name for item in module.exports} == {"memory", "run", "inbox", "run_inbox"}


@pytest.mark.parametrize(
    "statement",
    [
        '(import "wasi_snapshot_preview1" "fd_write" (func (param i32 i32 i32 i32) (result i32)))',
        '(import "wasi_snapshot_preview1" "environ_get" (func (param i32 i32) (result i32)))',
        '(import "wasi_snapshot_preview1" "sock_send" (func (param i32 i32 i32 i32 i32) (result i32)))',
        '(import "env" "system" (func (param i32) (result i32)))',
        '(import "toolbridge" "open" (func (param i32) (result i32)))',
        '(import "toolbridge" "call" (func (param i32)))',
        '(import "toolbridge" "memory" (memory 1))',
        '(import "" "" (func))',
    ],
)
def test_an_image_that_wants_anything_else_is_not_even_linked(statement: str) -> None:
    guest = MaliciousGuest(outcome(FINE))
    with pytest.raises(EngineError, match=r"link the guest image|compile a test's guest"):
        linked_image(guest.wat().replace("(module ", f"(module {statement}", 1))


@pytest.mark.parametrize(
    "statement",
    [
        '(memory (export "second") 1)',
        "(memory i64 1)",
        "(memory 1 1 shared)",
        "(func (result v128) (v128.const i64x2 0 0))",
        "(tag $t)",
        "(func (param anyref))",
        "(func $tail (return_call $tail))",
    ],
)
def test_webassembly_that_no_image_needs_is_switched_off(statement: str) -> None:
    wat = f"(module {statement} {'' if 'memory' in statement and 'second' not in statement else '(memory 1)'})"
    with pytest.raises(EngineError, match="compile a test's guest"):
        linked_image(wat)


# ---- what the host knows and the guest must not

LOOK_EVERYWHERE = """
const seen = new Set(), texts = [];
const queue = [globalThis, require("host:demo"), new Error("x")];
try { require("host:nothing"); } catch (error) { queue.push(error); }
try { require("host:demo").fail(); } catch (error) { queue.push(error); }
while (queue.length) {
  const value = queue.pop();
  if (typeof value === "string") texts.push(value);
  if ((typeof value !== "object" && typeof value !== "function") || value === null || seen.has(value)) continue;
  seen.add(value);
  try { queue.push(Object.getPrototypeOf(value), String(value)); } catch {}
  let keys = [];
  try { keys = Reflect.ownKeys(value); } catch {}
  for (const key of keys) {
    texts.push(String(key));
    try { queue.push(value[key]); } catch {}
  }
}
export default texts;
"""

SECRET = "s3cret-4f1a9c"


def _fail() -> None:
    local = SECRET
    raise ValueError(f"failed with {len(local)} characters")


@pytest.fixture
def revealing_sandbox(monkeypatch: pytest.MonkeyPatch) -> Iterator[Sandbox]:
    monkeypatch.setenv("TOOLBRIDGE_TEST_SECRET", SECRET)
    monkeypatch.setattr(sys, "argv", [*sys.argv, SECRET])
    with Sandbox(modules={"host:demo": {"fail": _fail}}) as sandbox:
        yield sandbox


def test_nothing_that_a_guest_can_read_holds_a_fact_about_the_host(revealing_sandbox: Sandbox) -> None:
    result = revealing_sandbox.run_sync(LOOK_EVERYWHERE)
    assert result.failure is None
    texts = json.dumps(result.value)
    assert len(result.value) > 1000
    facts = {
        SECRET,
        str(Path.cwd()),
        str(Path.home()),
        sys.executable,
        socket.gethostname(),
        str(os.getpid()),
        __file__,
    }
    assert {fact for fact in facts if len(fact) > 3 and fact in texts} == set()
    assert "Traceback" not in texts


def test_the_hosts_time_zone_is_not_the_guests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    try:
        with Sandbox(clock=lambda: 0.0) as sandbox:
            result = sandbox.run_sync("[new Date().getHours(), new Date().getTimezoneOffset(), String(new Date())]")
    finally:
        monkeypatch.undo()
        time.tzset()
    assert result.value[:2] == [0, 0]
    assert "Tokyo" not in result.value[2]
    assert "JST" not in result.value[2]


def test_the_only_wall_clock_is_the_one_that_was_granted() -> None:
    with Sandbox(clock=lambda: 86_400.0) as sandbox:
        result = sandbox.run_sync("[Date.now(), new Date().toISOString(), performance.timeOrigin < 86400001]")
    assert result.value == [86_400_000, "1970-01-02T00:00:00.000Z", True]


def test_a_guest_opens_no_descriptor_and_starts_no_process(demo_sandbox: Sandbox) -> None:
    events: list[str] = []
    watched = ("open", "socket.", "subprocess.", "os.", "shutil.", "import", "compile", "exec")

    def hook(event: str, arguments: tuple[object, ...]) -> None:
        is_ours = (
            event == "open" and arguments[0] == instance_module._PAGE_MAP
        )  # the host's own look at the guest's pages
        if listening and event.startswith(watched) and not is_ours:
            events.append(event)

    listening = False
    sys.addaudithook(hook)  # can't be removed: `listening` switches it off
    program = 'import { add } from "host:demo"; try { require("node:fs") } catch {} add(1, 2)'
    demo_sandbox.run_sync(program)
    listening = True
    result = demo_sandbox.run_sync(program)
    listening = False
    assert result.value == 3
    assert events == []
