"""Several processes that want the same image: one compiles it."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from growth import patience
from toolbridge.sandbox.compile_cache import CompileCache, compile_turn


def test_one_at_a_time(tmp_path: Path) -> None:
    inside: list[int] = []
    most: list[int] = []

    def work(number: int) -> None:
        with compile_turn(str(tmp_path / "turn")):
            inside.append(number)
            most.append(len(inside))
            time.sleep(0.02)
            inside.remove(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1] * 5


def test_whoever_is_stuck_is_not_waited_for_forever(tmp_path: Path) -> None:
    began = time.monotonic()
    with compile_turn(str(tmp_path / "turn")), compile_turn(str(tmp_path / "turn"), seconds=0.2):
        assert 0.15 < time.monotonic() - began < patience(5)


def test_a_process_that_ends_gives_its_turn_back(tmp_path: Path) -> None:
    program = f"""
import os
from toolbridge.sandbox.compile_cache import compile_turn
with compile_turn({str(tmp_path / "turn")!r}): os._exit(3)
"""
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 3
    began = time.monotonic()
    with compile_turn(str(tmp_path / "turn")):
        assert time.monotonic() - began < patience(5)


def test_without_a_place_for_the_lock_everybody_goes_ahead(tmp_path: Path) -> None:
    with compile_turn(str(tmp_path / "missing" / "turn")):
        pass
    (tmp_path / "file").touch()
    with CompileCache(tmp_path / "file" / "cache").turn("key"):
        pass


@pytest.mark.skipif(os.name != "posix", reason="links and modes of POSIX")
def test_a_link_in_its_place_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "turn").symlink_to(tmp_path / "elsewhere")
    with compile_turn(str(tmp_path / "turn")):
        pass
    assert not (tmp_path / "elsewhere").exists()
