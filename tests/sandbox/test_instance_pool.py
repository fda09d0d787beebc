"""A guest that ended well serves again as a fresh one; one that can't be made fresh again doesn't."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator

import pytest

from sandbox.guest_pools import has_page_map, new_guests
from toolbridge import Limits, Sandbox
from toolbridge.sandbox import instance as instance_module
from toolbridge.sandbox.instance import InstancePool


@pytest.fixture
def guests(monkeypatch: pytest.MonkeyPatch) -> Iterator[InstancePool]:
    with new_guests(monkeypatch) as guests:
        yield guests


@pytest.fixture
def sandbox(guests: InstancePool) -> Iterator[Sandbox]:
    with Sandbox({"host:demo": {"nothing": lambda: None}}) as sandbox:
        yield sandbox


@has_page_map
def test_from_the_third_run_on_the_same_guest_serves(sandbox: Sandbox, guests: InstancePool) -> None:
    sandbox.run_sync("1")
    sandbox.run_sync("2")
    assert guests._instances == []
    sandbox.run_sync("3")
    (first,) = guests._instances
    for program in ("3", 'require("host:demo").nothing()', "throw new Error('x')", "1 +", "console.log('x')"):
        sandbox.run_sync(program)
        assert guests._instances == [first]


@has_page_map
def test_a_session_keeps_its_guest_to_itself(sandbox: Sandbox, guests: InstancePool) -> None:
    sandbox.run_sync("1")
    sandbox.run_sync("2")
    with sandbox.session() as session:
        session.run_sync("globalThis.mine = 1")
        assert guests._instances == []
    assert guests._instances == []


@has_page_map
def test_each_run_has_the_memory_that_its_own_limits_give(sandbox: Sandbox) -> None:
    grow = "'x'.repeat(30_000_000).length"
    for _ in range(3):
        sandbox.run_sync("1")
        failure = sandbox.run_sync(grow, limits=Limits(memory_bytes=8 * 2**20)).failure
        assert failure is not None
        assert failure.kind in ("out_of_memory", "raised")
        sandbox.run_sync("1", limits=Limits(memory_bytes=8 * 2**20))
        assert sandbox.run_sync(grow).value == 30_000_000


@has_page_map
def test_no_two_runs_share_a_guest_at_a_time(sandbox: Sandbox, guests: InstancePool) -> None:
    wrong: list[object] = []

    def work(index: int) -> None:
        for _ in range(40):
            value = sandbox.run_sync(f"globalThis.before = globalThis.mine; globalThis.mine = {index}; [before, mine]")
            if value.value != [None, index]:
                wrong.append(value)

    threads = [threading.Thread(target=work, args=(index,)) for index in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert 1 <= len(guests._instances) <= 4


def test_where_the_system_tells_of_no_pages_every_guest_is_new(
    sandbox: Sandbox, guests: InstancePool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(instance_module, "_PAGE_MAP", "/nowhere/pagemap")
    for _ in range(3):
        assert sandbox.run_sync("1 + 1").value == 2
    assert guests._instances == []


@pytest.mark.parametrize("answer", [b"", b"\0" * 8], ids=["nothing", "too little"])
@has_page_map
def test_a_system_that_tells_too_little_is_not_believed(
    sandbox: Sandbox, guests: InstancePool, monkeypatch: pytest.MonkeyPatch, answer: bytes
) -> None:

    def told(*_arguments: object) -> bytes:
        return answer

    monkeypatch.setattr(os, "pread", told)
    for _ in range(3):
        assert sandbox.run_sync("1 + 1").value == 2
    assert guests._instances == []
