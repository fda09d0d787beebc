"""T33, state bleed between runs: a guest that serves again is a fresh one, byte for byte, or gone."""

from __future__ import annotations

from collections.abc import Iterator

import anyio
import pytest

from sandbox.guest_pools import has_page_map, new_guests
from threats.hostile_programs import HostileProgram, programs_for
from toolbridge import Limits, Sandbox
from toolbridge.sandbox import instance as instance_module
from toolbridge.sandbox.engine import shared_engine
from toolbridge.sandbox.instance import Instance, InstancePool


@pytest.fixture
def guests(monkeypatch: pytest.MonkeyPatch) -> Iterator[InstancePool]:
    with new_guests(monkeypatch) as guests:
        yield guests


@pytest.fixture
def sandbox(guests: InstancePool) -> Iterator[Sandbox]:
    with Sandbox({"host:demo": {"nothing": lambda: None}}) as sandbox:
        sandbox.run_sync("1")
        sandbox.run_sync("2")  # from now on, guests serve again
        yield sandbox


def content(instance: Instance) -> bytes:
    return instance.memory.read(0, instance.memory.size)


def fresh_content() -> bytes:
    fresh = Instance(shared_engine().pointer, shared_engine().image("javascript"), 2**26)
    try:
        return content(fresh)
    finally:
        fresh.close()


@has_page_map
@pytest.mark.parametrize("program", programs_for("T33"), ids=lambda program: program.name)
def test_a_guest_that_a_hostile_program_had_is_a_fresh_one_or_gone(
    program: HostileProgram, sandbox: Sandbox, guests: InstancePool
) -> None:
    sandbox.run_sync(program.source, limits=program.limits)
    expected = fresh_content()
    assert all(content(spare) == expected for spare in guests._instances)


@has_page_map
@pytest.mark.parametrize(
    "program",
    [
        "globalThis.secret = 'hunter2'.repeat(1000); 1",
        "Object.prototype.polluted = 1; Array.prototype.map = null; 1",
        "const words = []; for (let i = 0; i < 2000; i++) words.push('word' + i); words.length",
        "function down(n) { return n ? down(n - 1) + 1 : 0 } down(500)",
        "let text = ''; for (let i = 0; i < 3000; i++) text += String.fromCharCode(i); text.length",
        "JSON.parse('[' + '1,'.repeat(5000) + '1]').length",
        'import "host:demo"; await new Promise((done) => setTimeout(done, 1)); "x".repeat(20000)',
        "/(a+)+b/.test('aaaaaaaaaa'); new Date().toLocaleString(); new URL('https://example.org/a?b#c').href",
        "throw new Error('hunter2')",
        "export default",
    ],
)
@pytest.mark.parametrize("way", ["waited for", "awaited"])
def test_a_spare_guest_is_a_fresh_one_byte_for_byte(
    sandbox: Sandbox, guests: InstancePool, program: str, way: str
) -> None:
    for _ in range(3):
        if way == "waited for":
            sandbox.run_sync(program)
        else:
            anyio.run(sandbox.run, program)
    (spare,) = guests._instances
    assert content(spare) == fresh_content()


@has_page_map
@pytest.mark.parametrize(
    ("program", "limits"),
    [
        ("'x'.repeat(20_000_000).length", Limits()),
        ("for (;;);", Limits(wall_seconds=0.05)),
        ("const a = []; for (;;) a.push('x'.repeat(10000) + a.length)", Limits(memory_bytes=16 * 2**20)),
        ("const a = []; for (let i = 0; i < 30000; i++) a.push({ i }); a.length", Limits()),
    ],
    ids=["grown", "stopped", "out of memory", "too much written"],
)
def test_a_guest_that_has_grown_or_was_stopped_does_not_serve_again(
    sandbox: Sandbox, guests: InstancePool, program: str, limits: Limits
) -> None:
    sandbox.run_sync(program, limits=limits)
    assert guests._instances == []
    assert sandbox.run_sync("1 + 1").value == 2


@has_page_map
def test_a_system_that_tells_wrong_things_is_found_out(
    sandbox: Sandbox, guests: InstancePool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every page only read: as if nothing had to be restored. The first time, the whole memory is compared."""
    guests._works = None
    monkeypatch.setattr(instance_module, "_IS_WRITTEN", bytes(256))
    for _ in range(4):
        assert sandbox.run_sync("globalThis.mine = 1; 1 + 1").value == 2
    assert guests._instances == []
