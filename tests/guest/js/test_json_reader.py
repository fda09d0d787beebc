"""The guest's own JSON parser for replies gives the same values as JSON.parse."""

from __future__ import annotations

import json
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any, cast

import pytest

from guest.random_json import NUMBERS, RandomJson
from toolbridge import Limits, RunResult, Sandbox
from toolbridge.boundary.host_call import HostFunction, HostSide, Reply

# What a value is, as a text: the kind of every part, the order of members, -0, and whose objects they are.
_DESCRIBE = """\
const demo = require("host:demo"), later = require("host:demo/async");
const { parse, stringify } = JSON, { getPrototypeOf, getOwnPropertyDescriptor } = Object;
function describe(value) {
    if (typeof value === "number") return Object.is(value, -0) ? "-0" : String(value);
    if (typeof value === "string") return `'${Array.from({ length: value.length }, (_, i) => value.charCodeAt(i))}'`;
    if (value === null || typeof value !== "object") return String(value);
    const prototype = getPrototypeOf(value);
    const kind = prototype === Array.prototype ? "A" : prototype === Object.prototype ? "O" : "?";
    return kind + "{" + Reflect.ownKeys(value).map((name) => {
        const { value: member, writable, enumerable, configurable } = getOwnPropertyDescriptor(value, name);
        return describe(name) + [writable, enumerable, configurable].map(Number).join("") + describe(member);
    }).join() + "}";
}
function tried(read) {
    try { return describe(read()); } catch (error) { return `${error.name}: ${error.message}`; }
}
"""
_COMPARE = """\
const wrong = [];
for (let i = 0; i < COUNT; i++) {
    const text = demo.text(i), expected = tried(() => parse(text)), found = tried(() => demo.document(i));
    if (found !== expected) wrong.push([text, found, expected]);
}
return wrong.slice(0, 3);
"""


@contextmanager
def reading(sandbox: Sandbox, documents: list[bytes], **limits: Any) -> Generator[Callable[[str], RunResult]]:
    """Runs programs that fetch documents as values, `demo.document(index)`, and as texts, `demo.text(index)`."""

    def document(index: int) -> Reply:
        return Reply(b'{"ok":%b}' % documents[index])

    def whole(index: int) -> Reply:  # a frame that isn't read by the short way
        return Reply(b'{"handles":[],"ok":%b}' % documents[index])

    def text(index: int) -> str:
        return documents[index].decode()

    functions: dict[str, Callable[..., Any]] = {"document": document, "whole": whole, "text": text}
    side = HostSide({"host:demo": {name: HostFunction(each, is_async=False) for name, each in functions.items()}})
    with sandbox.session(limits=Limits(host_calls=1_000_000, **limits), host=side) as session:
        assert session.run_sync(_DESCRIBE).ok
        yield session.run_sync


def value(result: RunResult) -> Any:
    assert result.failure is None, str(result.failure)
    return result.value


@pytest.mark.parametrize("seed", range(3))
def test_random_documents_are_read_as_json_parse_reads_them(sandbox: Sandbox, seed: int) -> None:
    source = RandomJson(seed)
    documents = [source.text().encode() for _ in range(800)]
    with reading(sandbox, documents) as run:
        assert value(run(_COMPARE.replace("COUNT", "800"))) == []


def test_numbers_of_every_form_are_read_as_json_parse_reads_them(sandbox: Sandbox) -> None:
    source = RandomJson(5)
    numbers = [*NUMBERS, *(source.number() for _ in range(8_000))]
    documents = [f"[{','.join(numbers[at : at + 40])}]".encode() for at in range(0, len(numbers), 40)]
    with reading(sandbox, [*documents, *(number.encode() for number in NUMBERS)]) as run:
        assert value(run(_COMPARE.replace("COUNT", str(len(documents) + len(NUMBERS))))) == []


def test_what_is_almost_json_fails_as_in_json_parse(sandbox: Sandbox) -> None:
    source = RandomJson(6)
    documents = [source.almost().encode() for _ in range(1_500)]
    with reading(sandbox, documents) as run:
        assert value(run(_COMPARE.replace("COUNT", "1500"))) == []


def test_documents_are_read_as_by_python(sandbox: Sandbox) -> None:
    """An oracle independent of the guest's parsers."""
    source = RandomJson(7)
    documents = [source.text().encode() for _ in range(300)]
    expected = [json.loads(document, parse_int=float) for document in documents]
    with reading(sandbox, documents) as run:
        program = (
            "return Array.from({ length: 300 }, (_, i) => [stringify(demo.document(i)), stringify(demo.whole(i))])"
        )
        for (found, whole), document, one in zip(value(run(program)), documents, expected, strict=True):
            assert found == whole
            assert _comparable(json.loads(found, parse_int=float)) == _comparable(one), document


def _comparable(read: Any) -> Any:
    """Normalised as by JSON.stringify: infinities are null, lone surrogates U+FFFD."""
    if isinstance(read, dict):
        return {_comparable(name): _comparable(member) for name, member in cast("dict[str, Any]", read).items()}
    if isinstance(read, list):
        return [_comparable(member) for member in cast("list[Any]", read)]
    if isinstance(read, str):
        return read.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return None if read in (float("inf"), float("-inf")) else read


def test_long_and_wide_strings_are_whole(sandbox: Sandbox) -> None:
    texts = ["x" * 300_000, "é" * 100_000, "€" * 100_000, "😀" * 50_000, 'line "quoted"\n' * 20_000, "a" * 99_999 + "ø"]
    documents = [json.dumps(text, ensure_ascii=escaped).encode() for text in texts for escaped in (False, True)]
    with reading(sandbox, documents) as run:
        for index, text in enumerate(text for text in texts for _ in range(2)):
            assert value(run(f"return demo.document({index})")) == text


def test_members_called_proto_are_own_members_and_change_no_prototype(sandbox: Sandbox) -> None:
    documents = [b'[{"__proto__":{"polluted":1}},{"__proto__":[2]},{"a":1,"__proto__":null}]']
    with reading(sandbox, documents) as run:
        program = """
            const written = (one) => getPrototypeOf(one) === Object.prototype && stringify(one);
            return [{}.polluted === undefined, ...demo.document(0).map(written)];
        """
        assert value(run(program)) == [
            True, '{"__proto__":{"polluted":1}}', '{"__proto__":[2]}', '{"a":1,"__proto__":null}',
        ]  # fmt: skip


def test_reading_runs_no_setter_of_the_program(sandbox: Sandbox) -> None:
    documents = [b'[{"a":1,"0":2},{"a":3,"0":4},[5]]']
    with reading(sandbox, documents) as run:
        program = """
            for (const prototype of [Object.prototype, Array.prototype])
                for (const name of ["a", "0"])
                    Object.defineProperty(prototype, name, { set() { throw new Error("seen"); }, configurable: true });
            const read = demo.document(0);
            for (const prototype of [Object.prototype, Array.prototype]) { delete prototype.a; delete prototype[0]; }
            return stringify(read);
        """
        assert value(run(program)) == '[{"0":2,"a":1},{"0":4,"a":3},[5]]'


def test_objects_that_look_alike_are_independent(sandbox: Sandbox) -> None:
    documents = [json.dumps([{"a": index, "b": [index]} for index in range(5)]).encode()]
    with reading(sandbox, documents) as run:
        program = """
            const [first, second, third, ...rest] = demo.document(0);
            first.c = 1; delete second.a; third.b.push(0); Object.freeze(rest[0]); rest[1].a = "x";
            return stringify([first, second, third, ...rest, demo.document(0)[0]]);
        """
        expected = [{"a": 0, "b": [0], "c": 1}, {"b": [1]}, {"a": 2, "b": [2, 0]}, {"a": 3, "b": [3]}]
        assert json.loads(value(run(program))) == [*expected, {"a": "x", "b": [4]}, {"a": 0, "b": [0]}]


def test_a_name_is_never_taken_for_one_whose_bytes_are_alike(sandbox: Sandbox) -> None:
    """Consecutive records are expected to have the same names, compared as bytes."""
    names = ["a", 'a":1,"b', 'a":"b', "a\\", "a\\\\", "é", "Ã©", "ab", "", "\\u0061", "1", "01", "a\n", "a\x00"]
    rows = [[{first: 1}, {second: "b"}, {first: 2, second: 3}] for first in names for second in names]
    rows += [[{"a": 1, first: "b"}, {"a": 1, second: 2}, {second: 3, "a": 4}] for first in names for second in names]
    documents = [json.dumps(row, ensure_ascii=escaped).encode() for row in rows for escaped in (False, True)]
    with reading(sandbox, documents) as run:
        assert value(run(_COMPARE.replace("COUNT", str(len(documents))))) == []


@pytest.mark.parametrize("stack", [64 * 1024, 2 * 1024 * 1024])
@pytest.mark.parametrize(("opening", "inner", "closing"), [("[", "", "]"), ('{"a":', "1", "}"), ('[{"a":', "1", "}]")])
def test_deep_documents_are_read_or_fail_in_a_way_that_can_be_caught(
    sandbox: Sandbox, stack: int, opening: str, inner: str, closing: str
) -> None:
    documents = [(opening * depth + inner + closing * depth).encode() for depth in (500, 300_000)]
    with reading(sandbox, documents, stack_bytes=stack) as run:
        program = """
            let depth = 0;
            for (let at = demo.document(0); at && typeof at === "object"; at = Object.values(at)[0]) depth++;
            try { demo.document(1); } catch (error) { return [depth, error.name, error.message]; }
        """
        levels = 500 * len(opening.replace('"a":', ""))
        assert value(run(program)) == [levels, "RangeError", "Maximum call stack size exceeded"]


@pytest.mark.parametrize(
    "bad",
    [
        b'"\xff"',
        b'"\xc3"',
        b'"\xe2\x82"',
        b'"a\\n\xf0\x9f\x98"',
        b"\xff",
        b'{"\xc3":1}',
        b'"',
        b'"abcdefg',
        b"[1",
        b"-",
        b"",
    ],
)
def test_broken_bytes_end_in_an_error(sandbox: Sandbox, bad: bytes) -> None:
    with reading(sandbox, [bad, b"[1]"]) as run:
        program = """
            const errors = [];
            for (const read of [demo.document, demo.whole])
                try { errors.push(read(0)); } catch (error) { errors.push(error instanceof Error); }
            return [...errors, demo.document(1)];
        """
        assert value(run(program)) == [True, True, [1]]


def test_running_out_of_memory_can_be_caught_and_leaves_nothing_behind(sandbox: Sandbox) -> None:
    small = [{"name": f"n{index}", "at": [index]} for index in range(10_000)]
    large: list[Any] = [
        [[index, "x"] for index in range(120_000)],
        [{"name": f"n{index}", "at": [index]} for index in range(50_000)],
        [{f"key {index}": index} for index in range(60_000)],
        {f"key {index}": index for index in range(120_000)},
        ["é" * 20 + str(index) for index in range(60_000)],
        ["\n" * 20 + str(index) for index in range(80_000)],
        "€" * 1_400_000,
    ]
    documents = [json.dumps(each, ensure_ascii=False).encode() for each in (small, *large)]
    with reading(sandbox, documents, memory_bytes=12 * 1024 * 1024) as run:
        program = """
            const errors = new Set();
            for (let round = 0; round < 2; round++) {
                for (let i = 1; i <= 7; i++)
                    errors.add(tried(() => demo.document(i).length));
                if (demo.document(0).length !== 10000) return "lost";
            }
            return [...errors];
        """
        assert value(run(program)) == ["InternalError: out of memory"]


def test_parsed_and_malformed_documents_are_freed(sandbox: Sandbox) -> None:
    """Leaks of values, names and shapes of many documents would exceed the memory limit."""
    texts: list[str] = []
    for number in range(12):
        rows = json.dumps([{f"own {index}": index, "same": [str(number)]} for index in range(3_000)])
        wide = json.dumps({f"name {number} {index}": index for index in range(7_000)})
        texts += [rows, wide, rows[:-1] + ",{", wide[:-1] + ","]
    with reading(sandbox, [text.encode() for text in texts], memory_bytes=10 * 1024 * 1024) as run:
        program = """
            for (let i = 0; i < 48; i += 4) {
                const [rows, wide] = [demo.document(i), demo.document(i + 1)];
                if (rows.length !== 3000 || wide[`name ${i / 4} 6999`] !== 6999) return "short";
                const errors = [tried(() => demo.document(i + 2).length), tried(() => demo.document(i + 3).length)];
                if (!errors.every((error) => error.startsWith("SyntaxError"))) return errors;
            }
            return "done";
        """
        assert value(run(program)) == "done"


def test_garbage_is_still_collected_after_a_large_document(sandbox: Sandbox) -> None:
    with reading(sandbox, [json.dumps(list(range(50_000))).encode()], memory_bytes=16 * 1024 * 1024) as run:
        program = """
            for (let i = 0; i < 300; i++) {
                const circle = { kept: i % 10 ? null : demo.document(0) };
                circle.self = circle;
            }
            return "done";
        """
        assert value(run(program)) == "done"
