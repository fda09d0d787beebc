"""What is the same in every language: one suite of behaviours, each written in both."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import anyio
import pytest

from growth import patience
from toolbridge import Limits, RunResult, Sandbox
from toolbridge.sandbox.outcome import SandboxLanguage

LANGUAGES: tuple[SandboxLanguage, ...] = ("javascript", "python")


def add(left: Any, right: Any) -> Any:
    return left + right


def echo(value: Any = None) -> Any:
    return value


def fail(text: str) -> None:
    raise ValueError(text)


async def slow(seconds: float) -> float:
    await anyio.sleep(seconds)
    return seconds


def text(length: int) -> str:
    return "x" * length


FUNCTIONS: dict[str, Callable[..., Any]] = {"add": add, "echo": echo, "fail": fail, "slow": slow, "text": text}


@pytest.fixture(scope="module")
def demo() -> Iterator[Sandbox]:
    with Sandbox({"host:demo": FUNCTIONS}, clock=lambda: 1_700_000_000.0) as sandbox:
        yield sandbox


@dataclass(frozen=True)
class Behaviour:
    """One behaviour: a program in each language, and what must come of both."""

    name: str
    javascript: str
    python: str
    value: Any = None
    kind: str | None = None
    says: tuple[str, ...] = ()
    """What the failure's text contains."""
    stdout: str = ""
    line: int | None = None
    calls: tuple[tuple[str, str], ...] = ()
    limits: dict[str, float] = field(default_factory=dict[str, float])

    def source(self, language: SandboxLanguage) -> str:
        return self.javascript if language == "javascript" else self.python


BEHAVIOURS = [
    Behaviour("the value is the last expression", "1 + 1", "1 + 1", value=2),
    Behaviour("nothing is no value", "", ""),
    Behaviour(
        "containers come back",
        '({ a: [1, 2.5, "x", true, null] })',
        '{"a": [1, 2.5, "x", True, None]}',
        value={"a": [1, 2.5, "x", True, None]},
    ),
    Behaviour("text of any script comes back", '"Zürich 東京 🎉"', '"Zürich 東京 🎉"', value="Zürich 東京 🎉"),
    Behaviour("printing", 'console.log("a", 1); undefined', 'print("a", 1)', stdout="a 1\n"),
    Behaviour("numbers that are none become null", "[NaN, 1 / 0]", '[float("nan"), float("inf")]', value=[None, None]),
    Behaviour(
        "a call",
        'import { add } from "host:demo"; add(1, 2)',
        "from host.demo import add\nadd(1, 2)",
        value=3,
        calls=(("add", "ok"),),
    ),
    Behaviour(
        "values pass through a call unharmed",
        'import { echo } from "host:demo"; echo({ a: [1, "ü", null, true, 1.5], "": {} })',
        'from host.demo import echo\necho({"a": [1, "ü", None, True, 1.5], "": {}})',
        value={"a": [1, "ü", None, True, 1.5], "": {}},
        calls=(("echo", "ok"),),
    ),
    Behaviour(
        "an error of the host can be caught",
        'import { fail } from "host:demo"; let t; try { fail("no") } catch (e) { t = [e.kind, e.message] }; t',
        "from host.demo import fail\ntry: fail('no')\nexcept Exception as e: t = [e.kind, e.message]\nt",
        value=["failed", "ValueError: no"],
        calls=(("fail", "failed"),),
    ),
    Behaviour(
        "an error of the host that isn't caught",
        'import { fail } from "host:demo";\nfail("no")',
        'from host.demo import fail\nfail("no")',
        kind="raised",
        says=("ToolFailedError: ValueError: no", "Calls already made", "host:demo fail: failed"),
        line=2,
        calls=(("fail", "failed"),),
    ),
    Behaviour(
        "a module that isn't there",
        'import "host:dmeo"',
        "import host.dmeo",
        kind="raised",
        says=("There is no module", "Did you mean", "demo"),
    ),
    Behaviour(
        "a function that isn't there",
        'import * as demo from "host:demo";\ndemo.ecco(1)',
        "import host.demo as demo\ndemo.ecco(1)",
        kind="raised",
        says=("Did you mean", "echo"),
        line=2,
    ),
    Behaviour("an error", '\nthrow new Error("no")', '\nraise ValueError("no")', kind="raised", says=("no",), line=2),
    Behaviour("a mistake in the syntax", "\nlet = = 1", "\nx = = 1", kind="syntax", line=2),
    Behaviour("an endless loop", "for (;;);", "while True: pass", kind="timeout", limits={"wall_seconds": 0.2}),
    Behaviour(
        "computing for too long",
        "for (;;);",
        "while True: pass",
        kind="timeout",
        says=("CPU time",),
        limits={"cpu_seconds": 0.1},
    ),
    Behaviour(
        "waiting for too long",
        'import { slow } from "host:demo"; slow(60)',
        "from host.demo import slow\nslow(60)",
        kind="timeout",
        calls=(("slow", "unfinished"),),
        limits={"wall_seconds": 0.3},
    ),
    Behaviour(
        "a call that takes too long",
        'import { slow } from "host:demo"; let t; try { slow(60) } catch (e) { t = e.kind }; t',
        "from host.demo import slow\ntry: slow(60)\nexcept Exception as e: t = e.kind\nt",
        value="timeout",
        calls=(("slow", "timeout"),),
        limits={"call_seconds": 0.2},
    ),
    Behaviour(
        "too much memory",
        "const a = []; for (;;) a.push(new Array(10000).fill(1.5))",
        "a = []\nwhile True: a.append([1.5] * 10000)",
        kind="out_of_memory",
        says=("MiB of memory",),
    ),
    Behaviour(
        "too many calls",
        'import { add } from "host:demo"; for (;;) add(1, 1)',
        "from host.demo import add\nwhile True: add(1, 1)",
        kind="limit",
        says=("more than 3 host calls",),
        calls=(("add", "ok"),) * 3,
        limits={"host_calls": 3},
    ),
    Behaviour(
        "too much output",
        'for (let i = 0; i < 1000; i++) console.log("x".repeat(100)); "done"',
        'for i in range(1000): print("x" * 100)\n"done"',
        value="done",
        stdout="x" * 100 + "\n\n[output limit reached: 100899 more bytes were dropped]\n",
        limits={"output_bytes": 101},
    ),
    Behaviour(
        "a value that is too large",
        '"x".repeat(5000)',
        '"x" * 5000',
        kind="limit",
        says=("more than the limit of 4096",),
        limits={"frame_bytes": 4096},
    ),
    Behaviour(
        "a result that is too large",
        'import { text } from "host:demo"; let t; try { text(5000) } catch (e) { t = e.kind }; t',
        "from host.demo import text\ntry: text(5000)\nexcept Exception as e: t = e.kind\nt",
        value="limit",
        calls=(("text", "limit"),),
        limits={"frame_bytes": 4096},
    ),
    Behaviour(
        "calls overlap",
        'import { slow } from "host:demo/async"; await Promise.all([slow(0.3), slow(0.3), slow(0.3)])',
        "import asyncio\nfrom host.demo.aio import slow\nawait asyncio.gather(slow(0.3), slow(0.3), slow(0.3))",
        value=[0.3, 0.3, 0.3],
        calls=(("slow", "ok"),) * 3,
        limits={"wall_seconds": 0.85},
    ),
    Behaviour(
        "parallel() keeps the order",
        'import { slow } from "host:demo"; import { parallel } from "host:bridge";'
        "parallel([[slow, 0.2], [slow, 0.1], [slow, 0]])",
        "from host.demo import slow\nfrom host.bridge import parallel\nparallel([(slow, 0.2), (slow, 0.1), (slow, 0)])",
        value=[0.2, 0.1, 0],
        calls=(("slow", "ok"),) * 3,
    ),
    Behaviour("the clock is granted", "Date.now()", "import time\nint(time.time() * 1000)", value=1_700_000_000_000),
]


def run(demo: Sandbox, behaviour: Behaviour, language: SandboxLanguage) -> RunResult:
    return demo.run_sync(behaviour.source(language), language=language, limits=Limits().with_(**behaviour.limits))


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("behaviour", BEHAVIOURS, ids=lambda each: each.name)
def test_both_languages_behave_the_same(demo: Sandbox, behaviour: Behaviour, language: SandboxLanguage) -> None:
    demo.run_sync("1", language=language)  # it is compiled, and not on this run's time
    result = run(demo, behaviour, language)
    failure = result.failure
    assert (failure.kind if failure else None) == behaviour.kind, str(failure)
    assert result.value == behaviour.value
    assert result.stdout == behaviour.stdout
    assert result.stderr == ""
    assert [(call.function, call.outcome) for call in result.calls] == list(behaviour.calls)
    if failure is not None:
        assert all(said in str(failure) for said in behaviour.says), str(failure)
        if behaviour.line is not None:
            assert failure.line == behaviour.line


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_session_keeps_its_state_and_loses_it_with_a_run_that_is_stopped(
    demo: Sandbox, language: SandboxLanguage
) -> None:
    declare = {"javascript": "var kept = 41", "python": "kept = 41"}[language]
    endless = {"javascript": "for (;;);", "python": "while True: pass"}[language]
    with demo.session(language=language, limits=Limits(wall_seconds=0.5)) as session:
        assert session.run_sync(declare).ok
        assert session.run_sync("kept + 1").value == 42
        stopped = session.run_sync(endless).failure
        assert stopped is not None
        assert stopped.kind == "timeout"
        assert "The session's state is lost" in str(stopped)
        assert session.run_sync("kept + 1").failure is not None


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_same_seed_gives_the_same_random_numbers(demo: Sandbox, language: SandboxLanguage) -> None:
    source = {
        "javascript": "[Math.random(), crypto.randomUUID()]",
        "python": "import random, uuid, secrets, os\n"
        "[random.random(), str(uuid.uuid4()), secrets.token_hex(8), os.urandom(4).hex(), random.Random().random()]",
    }[language]
    runs = [demo.run_sync(source, language=language, seed=seed).value for seed in (b"a" * 32, b"a" * 32, b"b" * 32)]
    unseeded = [demo.run_sync(source, language=language).value for _ in range(2)]
    assert runs[0] == runs[1]
    assert all(one != other for one, other in zip(runs[0], runs[2], strict=True))
    assert all(one != other for one, other in zip(*unseeded, strict=True))


@pytest.mark.anyio
@pytest.mark.parametrize("language", LANGUAGES)
async def test_cancelling_ends_the_guest(demo: Sandbox, language: SandboxLanguage) -> None:
    endless = {"javascript": "for (;;);", "python": "while True: pass"}[language]
    await demo.run("1", language=language)
    began = time.perf_counter()
    with anyio.move_on_after(0.2):
        await demo.run(endless, language=language)
    assert time.perf_counter() - began < patience(2)  # and not the half minute that the run may take


@pytest.mark.parametrize("language", LANGUAGES)
def test_runs_on_many_threads_get_their_own_results(demo: Sandbox, language: SandboxLanguage) -> None:
    head = {"javascript": 'import { add } from "host:demo";\n', "python": "from host.demo import add\n"}[language]
    found: dict[int, Any] = {}

    def work(number: int) -> None:
        found[number] = [demo.run_sync(f"{head}add({number}, {step})", language=language).value for step in range(5)]

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {number: [number + step for step in range(5)] for number in range(6)}
