"""The prelude: console, URL, TextEncoder, structuredClone and Intl, compared with Node's answers.

`fixtures/js/prelude/*.json` hold the cases, with the answers of Node 20; a case with "differs" has a reason for another
answer.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from toolbridge import Sandbox

CASES = Path(__file__).resolve().parents[3] / "fixtures" / "js" / "prelude"
VALUE_TOPICS = ("url", "encoding", "clone", "locale")
DECLARATIONS = Path(__file__).resolve().parents[3] / "guest" / "typescript" / "globals.d.ts"

# Overwrites the builtins that a prelude could rely on.
POLLUTION = """
const refuse = () => { throw new TypeError("polluted"); };
const { ownKeys, getOwnPropertyDescriptor, defineProperty } = Reflect;
const victims = [
  String.prototype, Array.prototype, RegExp.prototype, Map.prototype, Set.prototype, Function.prototype,
  Number.prototype, Uint8Array.prototype, Reflect.getPrototypeOf(Uint8Array.prototype), Object, Reflect, JSON, Math,
  Reflect.getPrototypeOf([][Symbol.iterator]()), Reflect.getPrototypeOf(new Map().entries()),
];
for (let i = 0; i < victims.length; i++) {
  const keys = ownKeys(victims[i]);
  for (let k = 0; k < keys.length; k++) {
    const key = keys[k];
    if (key === "constructor" || key === "prototype" || key === "length" || key === "name") continue;
    const property = getOwnPropertyDescriptor(victims[i], key);
    if (!property.configurable) continue;
    const changed = { __proto__: null, configurable: true };
    if (property.get) changed.get = refuse; else changed.value = refuse;
    defineProperty(victims[i], key, changed);
  }
}
defineProperty(Array.prototype, 0, { __proto__: null, set: refuse, configurable: true });
defineProperty(Object.prototype, "get", { __proto__: null, get: refuse, configurable: true });
"""


def cases(topic: str) -> list[dict[str, Any]]:
    return json.loads((CASES / f"{topic}.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("topic", VALUE_TOPICS)
def test_values_are_those_of_node(sandbox: Sandbox, topic: str) -> None:
    for case in cases(topic):
        result = sandbox.run_sync(case["code"])
        assert (case["name"], result.failure, result.value) == (case["name"], None, case["expected"])


def test_the_console_prints_like_node(sandbox: Sandbox) -> None:
    for case in cases("console"):
        result = sandbox.run_sync(case["code"])
        printed = result.stderr if case.get("stream") == "stderr" else result.stdout
        if case.get("begins"):
            printed = printed[: len(case["expected"])]
        assert (case["name"], result.failure, printed) == (case["name"], None, case["expected"])


def test_members_of_declared_globals_exist(sandbox: Sandbox) -> None:
    text = DECLARATIONS.read_text(encoding="utf-8")
    members: list[list[str]] = []
    for name, body in re.findall(
        r"^interface (Console|Text\w+|URL\w*) .*?\{\n(.*?)^\}", text, re.DOTALL | re.MULTILINE
    ):
        members += [[name, member] for member in re.findall(r"^  (?:readonly )?(\w+)", body, re.MULTILINE)]
    program = f"""
        const objects = {{ Console: console, TextEncoder: new TextEncoder(), TextDecoder: new TextDecoder(),
            URL: new URL("http://a"), URLSearchParams: new URLSearchParams() }};
        {json.dumps(members)}.filter(([name, member]) => !(member in objects[name]));
    """
    assert len(members) > 40
    assert sandbox.run_sync(program).value == []


def test_a_trace_shows_the_program_and_nothing_of_the_prelude(sandbox: Sandbox) -> None:
    result = sandbox.run_sync("function outer() { console.trace('here'); } outer();")
    first, *frames = result.stderr.splitlines()
    assert first == "Trace: here"
    assert frames[0].startswith("    at outer ")
    assert not any("prelude" in frame for frame in frames)


@pytest.mark.parametrize(
    "argument",
    [
        "'x'.repeat(1_000_000)",
        "Object.fromEntries(Array.from({ length: 100_000 }, (_, i) => ['key' + i, i]))",
        "Array.from({ length: 100 }, () => Array.from({ length: 100 }, () => 'y'.repeat(100)))",
        "{ [Symbol.for('nodejs.util.inspect.custom')]() { return 'z'.repeat(1_000_000); } }",
    ],
)
def test_one_console_call_prints_a_bounded_text_and_says_that_it_was_cut(sandbox: Sandbox, argument: str) -> None:
    result = sandbox.run_sync(f"console.log({argument})")
    assert result.failure is None
    assert len(result.stdout) <= 65536 + 1
    assert "\n... [cut: " in result.stdout or "\n... too much to show\n" in result.stdout


@pytest.mark.parametrize(
    "argument",
    [
        "new Proxy({}, { getPrototypeOf() { return new Proxy({}, this); } })",
        "new Proxy({}, { ownKeys: () => Array.from({ length: 2000 }, (_, i) => 'k' + i), getOwnPropertyDescriptor() {"
        " return { value: new Proxy({}, this), enumerable: true, configurable: true }; } })",
        "{ [Symbol.for('nodejs.util.inspect.custom')](depth, options, inspect) { return inspect(this); } }",
        "new Array(4_000_000_000)",
        "new Uint8Array(10_000_000)",
    ],
)
def test_an_object_that_goes_on_forever_is_printed_and_the_program_goes_on(sandbox: Sandbox, argument: str) -> None:
    result = sandbox.run_sync(f"console.log({argument}); 'went on'")
    assert (result.failure, result.value) == (None, "went on")


def test_the_console_works_after_the_program_has_overwritten_the_builtins(sandbox: Sandbox) -> None:
    program = (
        "const { log } = console; const map = new Map([['k', { a: 1 }]]); const list = [1, 'two', [3]];\n"
        + POLLUTION
        + "log('%s is %d', 'x', 1, map, list, { get a() { return 1; } }); console.table([{ a: 1 }]);"
    )
    result = sandbox.run_sync(program)
    assert result.stdout == (
        "x is 1 Map(1) { 'k' => { a: 1 } } [ 1, 'two', [ 3 ] ] { a: [Getter] }\n"
        "┌─────────┬───┐\n│ (index) │ a │\n├─────────┼───┤\n│ 0       │ 1 │\n└─────────┴───┘\n"
    )


def test_text_can_be_encoded_after_the_program_has_overwritten_the_builtins(sandbox: Sandbox) -> None:
    program = POLLUTION + "console.log(new TextDecoder().decode(new TextEncoder().encode('aé☃😀')));"
    assert sandbox.run_sync(program).stdout == "aé☃😀\n"


@pytest.mark.parametrize(
    "expression",
    [
        "new URL('http://a/' + 'x'.repeat(1_000_000)).href.length",
        "new URL('http://a/' + '/..'.repeat(300_000)).href.length",
        "new URL('http://' + '@'.repeat(1_000_000) + 'h').href.length",
        "URL.canParse('http://' + 'é'.repeat(1_000_000))",
        "URL.canParse(' '.repeat(1_000_000) + 'x' + ' '.repeat(1_000_000) + 'x')",
        "new URLSearchParams('%ff%'.repeat(100_000)).size",
        "'a'.repeat(1_000_000).localeCompare('a'.repeat(1_000_000) + 'b')",
        "(10n ** 20_000n).toLocaleString().length",
        "new TextDecoder().decode(new Uint8Array(300_000).fill(0xff)).length",
    ],
)
def test_a_large_input_takes_time_in_proportion_to_its_size(sandbox: Sandbox, expression: str) -> None:
    # What took quadratic time would run into the CPU limit by far.
    assert sandbox.run_sync(expression).failure is None


def test_globals_of_the_prelude_are_not_enumerable(sandbox: Sandbox) -> None:
    names = ["console", "URL", "URLSearchParams", "TextEncoder", "TextDecoder", "structuredClone", "Intl"]
    program = f"{json.dumps(names)}.map(name => [typeof globalThis[name], name in {{ ...globalThis }}])"
    value = sandbox.run_sync(program).value
    assert value == [["object" if name in {"console", "Intl"} else "function", False] for name in names]
