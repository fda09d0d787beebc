"""The stub cache: hits, invalidation, damaged entries, permissions and eviction."""

from __future__ import annotations

import json
import os
import stat
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from codegen.schema_bombs import nested
from toolbridge_codegen import stubs as stubs_module
from toolbridge_codegen.cache import ModuleStubs, StubCache
from toolbridge_codegen.catalog import Catalog, ServerListing, ToolDefinition, build_catalog
from toolbridge_codegen.model import Diagnostic
from toolbridge_codegen.read.kinds import Bounds
from toolbridge_codegen.stubs import generate

KEY = "a" * 64
ENTRY = ModuleStubs(
    {"mcp-a.d.ts": 'declare module "a\u2028\ud800" {}'},
    {"f": "mapping"},
    (Diagnostic("a", "f", "/inputSchema", "odd"),),
)
STRING = {"type": "string"}


def catalog(*tools: ToolDefinition) -> Catalog:
    return build_catalog([ServerListing("server", tools)])


SIMPLE = ToolDefinition("tool", {"type": "object", "properties": {"a": STRING}, "required": 5})


@pytest.fixture
def writes(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The servers that were written anew."""
    written: list[str] = []
    write = stubs_module._write_module

    def counted(module: Any, options: Any) -> ModuleStubs:
        written.append(module.server)
        return write(module, options)

    monkeypatch.setattr(stubs_module, "_write_module", counted)
    return written


def test_an_entry_is_returned_unchanged(tmp_path: Path) -> None:
    cache = StubCache(tmp_path / "cache")
    assert cache.find(KEY) is None
    cache.store(KEY, ENTRY)
    assert cache.find(KEY) == ENTRY
    assert StubCache(tmp_path / "cache").find(KEY) == ENTRY
    assert StubCache().find(KEY) is None


def test_entries_are_for_this_user_only(tmp_path: Path) -> None:
    StubCache(tmp_path / "new" / "cache").store(KEY, ENTRY)
    directory = tmp_path / "new" / "cache"
    (entry,) = directory.iterdir()
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    assert stat.S_IMODE(entry.stat().st_mode) == 0o600


def test_a_second_generation_comes_from_the_cache_and_is_the_same(tmp_path: Path, writes: list[str]) -> None:
    expected = generate(catalog(SIMPLE), language="typescript")
    for cache in (StubCache(), StubCache(tmp_path)):
        writes.clear()
        assert generate(catalog(SIMPLE), language="typescript", cache=cache) == expected
        assert generate(catalog(SIMPLE), language="typescript", cache=cache) == expected
        assert writes == ["server"]
    assert generate(catalog(SIMPLE), language="typescript", cache=StubCache(tmp_path)) == expected
    assert writes == ["server"]
    assert [item.path for item in expected.diagnostics] == ["/inputSchema/required"]


@pytest.mark.parametrize(
    ("tool", "options"),
    [
        (replace(SIMPLE, name="other"), {}),
        (replace(SIMPLE, description="x"), {}),
        (replace(SIMPLE, title="x"), {}),
        (replace(SIMPLE, input_schema={"type": "object"}), {}),
        (replace(SIMPLE, output_schema={"type": "object"}), {}),
        (SIMPLE, {"language": "python"}),
        (SIMPLE, {"detail": "compact"}),
        (SIMPLE, {"errors": "return"}),
        (SIMPLE, {"bounds": Bounds(depth=3)}),
    ],
)
def test_any_change_is_a_cache_miss(tool: ToolDefinition, options: dict[str, Any], writes: list[str]) -> None:
    cache = StubCache()
    generate(catalog(SIMPLE), language="typescript", cache=cache)
    arguments: dict[str, Any] = {"language": "typescript", **options}
    changed = generate(catalog(tool), **arguments, cache=cache)
    assert writes == ["server", "server"]
    assert changed == generate(catalog(tool), **arguments)


def test_the_order_of_properties_is_part_of_what_was_written(writes: list[str]) -> None:
    cache = StubCache()
    for names in ("ab", "ba"):
        tool = ToolDefinition("tool", {"type": "object", "properties": dict.fromkeys(names, STRING)})
        assert generate(catalog(tool), language="typescript", cache=cache) == generate(
            catalog(tool), language="typescript"
        )


@pytest.mark.parametrize("change", [{"reading": "literal"}, {"output_schemas": {"tool": {"type": "object"}}}])
def test_how_a_server_is_configured_is_part_of_what_was_written(change: dict[str, Any], writes: list[str]) -> None:
    cache = StubCache()
    generate(catalog(SIMPLE), language="typescript", cache=cache)
    generate(build_catalog([ServerListing("server", (SIMPLE,), **change)]), language="typescript", cache=cache)
    assert writes == ["server", "server"]


def test_another_version_of_the_generator_is_a_cache_miss(monkeypatch: pytest.MonkeyPatch, writes: list[str]) -> None:
    cache = StubCache()
    generate(catalog(SIMPLE), language="typescript", cache=cache)
    monkeypatch.setattr(stubs_module, "generator_version", lambda: "another")
    generate(catalog(SIMPLE), language="typescript", cache=cache)
    assert writes == ["server", "server"]


def test_schemas_too_deep_for_json_are_not_cached(writes: list[str]) -> None:
    cache = StubCache()
    tool = ToolDefinition("tool", nested(100_000, lambda inner: {"not": inner}))
    for _ in range(2):
        generate(catalog(tool), language="typescript", cache=cache)
    assert writes == ["server", "server"]


def test_types_cut_short_by_time_are_not_cached(writes: list[str]) -> None:
    cache = StubCache()
    schema = {"type": "object", "properties": {f"p{index}": {"type": "array"} for index in range(900)}}
    for _ in range(2):
        generate(catalog(ToolDefinition("tool", schema)), language="typescript", cache=cache, bounds=Bounds(seconds=-1))
    assert writes == ["server", "server"]


def document(**changes: Any) -> bytes:
    return json.dumps({"files": {}, "styles": {}, "diagnostics": [], **changes}).encode()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"nonsense",
        b"[]",
        b"\xff",
        b"[" * 100_000,
        document(files=[]),
        document(files={"a": 5}),
        document(styles={"f": "other"}),
        document(styles={"f": ["mapping"]}),
        document(diagnostics=[["a", "b", "c"]]),
        document(diagnostics=[["a", "b", "c", 5]]),
        document(diagnostics=5),
    ],
)
def test_a_damaged_entry_is_a_cache_miss(tmp_path: Path, content: bytes) -> None:
    import hashlib

    StubCache(tmp_path).store(KEY, ENTRY)
    (path,) = tmp_path.iterdir()
    path.write_bytes(hashlib.sha256(content).hexdigest().encode() + content)
    assert StubCache(tmp_path).find(KEY) is None


def test_a_changed_bit_is_noticed_and_the_entry_rebuilt(tmp_path: Path, writes: list[str]) -> None:
    expected = generate(catalog(SIMPLE), language="typescript", cache=StubCache(tmp_path))
    (path,) = tmp_path.iterdir()
    intact = path.read_bytes()
    path.write_bytes(intact.replace(b"string", b"strinG"))
    assert generate(catalog(SIMPLE), language="typescript", cache=StubCache(tmp_path)) == expected
    assert writes == ["server", "server"]
    assert path.read_bytes() == intact


def test_an_entry_for_other_functions_is_not_used(writes: list[str]) -> None:
    class Wrong(StubCache):
        def find(self, key: str) -> ModuleStubs | None:
            return ENTRY

    stubs = generate(catalog(SIMPLE), language="typescript", cache=Wrong())
    assert writes == ["server"]
    assert stubs == generate(catalog(SIMPLE), language="typescript")


@pytest.mark.skipif(os.name != "posix", reason="modes and links of POSIX")
@pytest.mark.parametrize("kind", ["others may write", "link", "pipe", "directory"])
def test_only_a_plain_file_of_this_user_is_read(tmp_path: Path, kind: str) -> None:
    StubCache(tmp_path).store(KEY, ENTRY)
    (path,) = tmp_path.iterdir()
    if kind == "others may write":
        path.chmod(0o666)
    else:
        elsewhere = tmp_path / "elsewhere"
        path.rename(elsewhere)
        if kind == "link":
            path.symlink_to(elsewhere)
        elif kind == "pipe":
            os.mkfifo(path)
        else:
            path.mkdir()
    assert StubCache(tmp_path).find(KEY) is None


@pytest.mark.skipif(os.name != "posix", reason="modes of POSIX")
def test_a_directory_that_others_can_read_is_not_written_to(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    cache = StubCache(tmp_path)
    cache.store(KEY, ENTRY)
    assert list(tmp_path.iterdir()) == []
    assert cache.find(KEY) == ENTRY  # from memory


def test_an_unusable_directory_only_disables_the_cache(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    cache = StubCache(tmp_path / "file" / "cache")
    cache.store(KEY, ENTRY)
    assert cache.find(KEY) == ENTRY
    assert StubCache(tmp_path / "file" / "cache").find(KEY) is None


def entry_of(size: int) -> ModuleStubs:
    return ModuleStubs({"f": "x" * size}, {}, ())


def test_memory_is_bounded_by_lru_eviction() -> None:
    cache = StubCache(most_memory=3500)
    for key in "abc":
        cache.store(key, entry_of(1000))
    assert cache.find("a") == entry_of(1000)
    cache.store("d", entry_of(1000))
    assert [key for key in "abcd" if cache.find(key) is not None] == ["a", "c", "d"]
    cache.store("large", entry_of(10_000))
    assert cache.find("large") is None


def test_the_disk_is_bounded_by_eviction_of_the_oldest_entries(tmp_path: Path) -> None:
    long_ago = time.time() - 1000
    keys = [letter * 64 for letter in "abcd"]
    for index, key in enumerate(keys):
        StubCache(tmp_path, most_disk=3500).store(key, entry_of(1000))
        os.utime(tmp_path / f"{key}.stubs", (long_ago + index, long_ago + index))
    (tmp_path / "foreign").write_text("x" * 5000)
    StubCache(tmp_path, most_disk=3500).store(keys[0], entry_of(1000))
    assert sorted(path.name[:1] for path in tmp_path.glob("*.stubs")) == ["a", "c", "d"]
    assert (tmp_path / "foreign").exists()
    StubCache(tmp_path, most_disk=3500).store("e" * 64, entry_of(10_000))
    assert not (tmp_path / f"{'e' * 64}.stubs").exists()


def test_threads_may_share_a_cache(tmp_path: Path) -> None:
    cache = StubCache(tmp_path, most_memory=5000)
    wrong: list[str] = []

    def work(name: str) -> None:
        for index in range(50):
            key = f"{index % 7:064x}"
            cache.store(key, ENTRY)
            found = cache.find(key)
            if found not in (None, ENTRY):
                wrong.append(name)

    threads = [threading.Thread(target=work, args=(str(number),)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


@pytest.mark.skipif(os.name != "posix", reason="there are no mode bits")
def test_directories_that_are_missing_are_made_for_this_user_only(tmp_path: Path) -> None:
    """Also those above: what else is kept there, such as compiled code, must be private."""
    before = os.umask(0o022)
    try:
        StubCache(tmp_path / "cache" / "toolbridge" / "stubs").store(KEY, ENTRY)
    finally:
        os.umask(before)
    for made in ("cache", "cache/toolbridge", "cache/toolbridge/stubs"):
        assert stat.S_IMODE((tmp_path / made).stat().st_mode) == 0o700
