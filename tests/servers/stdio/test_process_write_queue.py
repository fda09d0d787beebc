"""Lines to a server that reads slowly or never: whole, in order, bounded, and never waited for."""

from __future__ import annotations

import os

import anyio
import pytest

from servers.line_peer import LinePeer
from toolbridge.servers.stdio.process import WriteQueue

pytestmark = pytest.mark.anyio

LONG = b"x" * 300_000 + b"\n"


async def read(peer: LinePeer, size: int) -> bytes:
    data = b""
    with anyio.fail_after(60):
        while len(data) < size:
            await anyio.wait_readable(peer.pipes.child_stdin)
            data += os.read(peer.pipes.child_stdin, 65536)
    return data


async def test_a_line_for_which_there_is_room_is_written_at_once() -> None:
    peer = LinePeer()
    outbox = WriteQueue(peer, 1000)
    assert outbox.send(b"one\n") is None
    assert os.read(peer.pipes.child_stdin, 100) == b"one\n"
    peer.pipes.close()


async def test_lines_that_wait_are_written_whole_and_in_order() -> None:
    peer = LinePeer()
    outbox = WriteQueue(peer, 1000)
    for number in range(5):
        outbox.send(b"%d" % number + LONG)
    assert outbox.is_full
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(outbox.write_waiting)
        data = await read(peer, 5 * (len(LONG) + 1))
        assert data == b"".join(b"%d" % number + LONG for number in range(5))
        tasks.cancel_scope.cancel()
    assert not outbox.is_full
    peer.pipes.close()


async def test_a_line_that_the_server_saw_nothing_of_is_withdrawn_and_a_begun_one_is_not() -> None:
    peer = LinePeer()
    outbox = WriteQueue(peer, 1000)
    begun, waiting, after = outbox.send(LONG), outbox.send(b"waiting\n"), outbox.send(b"after\n")
    assert begun is not None
    assert waiting is not None
    assert after is not None
    assert outbox.withdraw(waiting)
    assert not outbox.withdraw(waiting)
    assert not outbox.withdraw(begun)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(outbox.write_waiting)
        assert await read(peer, len(LONG) + 6) == LONG + b"after\n"
        tasks.cancel_scope.cancel()
    peer.pipes.close()


async def test_being_cancelled_while_it_writes_cuts_no_line_in_two() -> None:
    peer = LinePeer()
    outbox = WriteQueue(peer, 1000)
    outbox.send(LONG)
    for _ in range(3):
        with anyio.move_on_after(0.01):
            await outbox.write_waiting()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(outbox.write_waiting)
        assert await read(peer, len(LONG)) == LONG
        tasks.cancel_scope.cancel()
    peer.pipes.close()


async def test_a_server_that_reads_no_more_is_an_error_at_once_and_while_writing() -> None:
    peer = LinePeer()
    outbox = WriteQueue(peer, 1000)
    outbox.send(LONG)
    peer.close_stdin()
    with pytest.raises(OSError), anyio.fail_after(60):
        await outbox.write_waiting()
    with pytest.raises(OSError):
        WriteQueue(peer, 1000).send(b"one\n")
    peer.pipes.close()


async def test_closing_the_pipe_wakes_who_waits_for_room() -> None:
    peer = LinePeer()
    outbox = WriteQueue(peer, 1000)
    outbox.send(LONG)

    async def close() -> None:
        await anyio.sleep(0.01)
        peer.pipes.close()

    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(close)
            with pytest.raises(OSError):
                await outbox.write_waiting()
