"""T34, poisoned compile cache: compiled code that another user could have written, or that is stale, is never loaded.

Loading a `.cwasm` runs native code, so every test here watches the one function that loads.
"""

from __future__ import annotations

import os
import stat
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from threats.tiny_cache import EVIL_WAT, Loads, answer, compiled, entry, plant
from toolbridge.sandbox import engine as engine_module
from toolbridge.sandbox.compile_cache import SUFFIX, CompileCache, entry_key
from toolbridge_guest import GuestImage

pytestmark = pytest.mark.skipif(os.name != "posix", reason="owners and modes are POSIX's")


def test_an_entry_of_our_own_is_loaded(directory: Path, image: GuestImage, loads: Loads) -> None:
    """The measure for all the others: nothing is wrong here, and nothing is compiled twice."""
    assert (answer(directory), answer(directory)) == (7, 7)
    assert loads.compilations == 1
    assert loads.files == [entry(directory)]


# ---- directories

Spoil = Callable[[Path], object]


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o707, 0o750, 0o701, 0o710, 0o720, 0o704])
def test_nothing_is_loaded_from_a_directory_that_others_can_reach(
    directory: Path, image: GuestImage, loads: Loads, mode: int
) -> None:
    answer(directory)
    directory.chmod(mode)
    assert answer(directory) == 7
    assert (loads.files, loads.compilations) == ([], 2)


def test_nothing_is_loaded_through_a_symbolic_link(directory: Path, image: GuestImage, loads: Loads) -> None:
    answer(directory)
    link = directory.with_name("link")
    link.symlink_to(directory)
    assert answer(link) == 7
    assert (loads.files, loads.compilations) == ([], 2)


def test_nothing_is_loaded_from_another_users_directory(
    directory: Path, image: GuestImage, loads: Loads, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file in it is ours, but whoever owns the directory can put another in its place."""
    answer(directory)
    real = os.lstat

    def foreign(path: str) -> os.stat_result:
        facts = list(real(path))
        facts[4] += 1
        return os.stat_result(facts)

    monkeypatch.setattr(os, "lstat", foreign)
    assert answer(directory) == 7
    assert (loads.files, loads.compilations) == ([], 2)


def test_nothing_is_loaded_as_another_user(
    directory: Path, image: GuestImage, loads: Loads, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer(directory)
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    assert answer(directory) == 7
    assert (loads.files, loads.compilations) == ([], 2)


@pytest.mark.parametrize("make", [Path.touch, os.mkfifo], ids=["file", "pipe"])
def test_what_is_no_directory_is_not_used(directory: Path, image: GuestImage, loads: Loads, make: Spoil) -> None:
    make(directory)
    assert answer(directory) == 7
    assert loads.files == []


def test_the_directory_is_made_for_this_user_alone(directory: Path, image: GuestImage) -> None:
    before = os.umask(0)
    try:
        answer(directory)
    finally:
        os.umask(before)
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    assert stat.S_IMODE(entry(directory).stat().st_mode) == 0o600


# ---- entries


def spoil_by_group_access(path: Path) -> None:
    path.chmod(0o620)


def spoil_by_access_for_all(path: Path) -> None:
    path.chmod(0o602)


def spoil_by_hard_link(path: Path) -> None:
    os.link(path, path.with_name("other name"))


def spoil_by_link(path: Path) -> None:
    target = path.with_name("target")
    path.rename(target)
    path.symlink_to(target)


def spoil_by_dangling_link(path: Path) -> None:
    path.unlink()
    path.symlink_to("/nonexistent/file")


def spoil_by_device(path: Path) -> None:
    path.unlink()
    path.symlink_to("/dev/zero")


def spoil_by_truncation(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def spoil_by_one_bit(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def spoil_by_emptying(path: Path) -> None:
    os.truncate(path, 0)


def spoil_by_other_code(path: Path) -> None:
    path.write_bytes(compiled(EVIL_WAT))


def spoil_by_upper_case(path: Path) -> None:
    path.rename(path.with_name(path.name.upper()))


def spoil_by_other_suffix(path: Path) -> None:
    path.rename(path.with_suffix(".tmp"))


def spoil_by_appending(path: Path) -> None:
    with path.open("ab") as file:
        file.write(b"\0")


@pytest.mark.parametrize(
    "spoil",
    [
        *(spoil_by_group_access, spoil_by_access_for_all, spoil_by_hard_link, spoil_by_link, spoil_by_dangling_link),
        *(spoil_by_device, spoil_by_truncation, spoil_by_one_bit, spoil_by_appending, spoil_by_emptying),
        *(spoil_by_other_code, spoil_by_upper_case, spoil_by_other_suffix),
    ],
)
def test_an_entry_that_was_tampered_with_is_not_loaded_but_made_anew(
    directory: Path, image: GuestImage, loads: Loads, spoil: Spoil
) -> None:
    answer(directory)
    spoil(entry(directory))
    before = loads.compilations
    assert answer(directory) == 7
    assert loads.files == []
    assert loads.compilations == before + 1


def test_an_entry_of_another_users_is_not_loaded(
    directory: Path, image: GuestImage, loads: Loads, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The directory is ours, but the file in it is not."""
    answer(directory)
    real = os.fstat

    def foreign(descriptor: int) -> os.stat_result:
        facts = list(real(descriptor))
        facts[4] += 1
        return os.stat_result(facts)

    monkeypatch.setattr(os, "fstat", foreign)
    assert answer(directory) == 7
    assert loads.files == []


def test_an_entry_that_was_renamed_to_another_key_is_not_loaded(
    directory: Path, image: GuestImage, loads: Loads
) -> None:
    """Code of another image, compiled by this very engine, so that nothing but its name could tell."""
    stored = CompileCache(directory).store(entry_key("another image"), compiled(EVIL_WAT))
    assert stored is not None
    os.rename(stored, directory / (engine_module._cache_key(image) + Path(stored).name[32:]))
    assert answer(directory) == 7
    assert loads.files == []


@pytest.mark.parametrize("make", [Path.mkdir, os.mkfifo], ids=["directory", "pipe"])
def test_what_is_no_file_is_neither_loaded_nor_waited_for(
    directory: Path, image: GuestImage, loads: Loads, make: Spoil
) -> None:
    path = plant(directory, image, b"")
    path.unlink()
    make(path)
    answers: list[int] = []
    thread = threading.Thread(target=lambda: answers.append(answer(directory)), daemon=True)
    thread.start()
    thread.join(60)
    assert answers == [7]
    assert loads.files == []


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="elsewhere a file can only be loaded by its name")
def test_what_was_verified_is_loaded_although_its_name_was_given_to_something_else(
    directory: Path, image: GuestImage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever can write in a directory above may exchange ours between the check and the loading."""
    assert answer(directory) == 7
    form = engine_module._MODULE
    aside = directory.with_name("aside")

    def exchange_and_deserialise(engine: int, path: bytes, out: object) -> object:
        name = entry(directory).name
        directory.rename(aside)
        directory.mkdir()
        (directory / name).write_bytes(compiled(EVIL_WAT))
        return form.deserialise(engine, path, out)

    monkeypatch.setattr(engine_module, "_MODULE", form._replace(deserialise=exchange_and_deserialise))
    assert answer(directory) == 7
    assert aside.exists()


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="descriptors are counted in /proc")
@pytest.mark.parametrize("make", [Path.mkdir, Path.touch], ids=["directory", "empty file"])
def test_what_is_not_loaded_leaves_no_descriptor_open(directory: Path, make: Spoil) -> None:
    cache = CompileCache(directory)
    assert cache.store(entry_key("another"), b"code") is not None
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(5):
        path = directory / f"{entry_key('x')}-{'0' * 64}{SUFFIX}"
        if not path.exists():
            make(path)
        with cache.find(entry_key("x")) as found:
            assert found is None
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_good_entry_is_found_beside_one_that_is_no_file(directory: Path, image: GuestImage, loads: Loads) -> None:
    answer(directory)
    (directory / f"{engine_module._cache_key(image)}-{'0' * 64}{SUFFIX}").mkdir()
    assert answer(directory) == 7
    assert loads.compilations == 1
