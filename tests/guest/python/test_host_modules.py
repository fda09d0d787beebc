"""The package `host`: imports, functions, and errors for missing names."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import anyio
import pytest

from growth import patience
from toolbridge import Sandbox


async def slow(seconds: float) -> float:
    await anyio.sleep(seconds)
    return seconds


def add(left: Any, right: Any) -> Any:
    return left + right


def echo(value: Any) -> Any:
    return value


MODULES: dict[str, dict[str, Callable[..., Any]]] = {
    "host:my-demo": {"add": add, "echo": echo, "slow": slow},
    "host:under_score": {"one": lambda: 1},
}


@pytest.fixture(scope="module")
def demo() -> Iterator[Sandbox]:
    with Sandbox(MODULES) as sandbox:
        yield sandbox


def value_of(sandbox: Sandbox, source: str) -> Any:
    result = sandbox.run_sync(source, language="python")
    assert result.failure is None, str(result.failure)
    return result.value


@pytest.mark.parametrize(
    "source",
    [
        "from host.my_demo import add\nadd(1, 2)",
        "import host.my_demo\nhost.my_demo.add(1, 2)",
        "import host\nhost.my_demo.add(1, 2)",
        "import host.my_demo as demo\ndemo.add(1, 2)",
        "from host import my_demo\nmy_demo.add(1, 2)",
        "from host.my_demo import *\nadd(1, 2)",
        "import importlib\nimportlib.import_module('host:my-demo').add(1, 2)",
        "import importlib\nimportlib.import_module('host.my_demo').add(1, 2)",
        "__import__('host.my_demo').my_demo.add(1, 2)",
        "from host.my_demo.aio import add\nawait add(1, 2)",
        "import host\nawait host.my_demo.aio.add(1, 2)",
        "import asyncio\nfrom host.my_demo.aio import add\nasyncio.run(add(1, 2))",
        "import importlib\nawait importlib.import_module('host:my-demo/async').add(1, 2)",
        "class Box:\n    from host.my_demo import add\nBox().add(1, 2)",
        "from functools import partial\nfrom host.my_demo import add\npartial(add, 1)(2)",
    ],
)
def test_a_module_is_imported_in_every_way(demo: Sandbox, source: str) -> None:
    result = demo.run_sync(source, language="python")
    assert result.failure is None, str(result.failure)
    assert result.value == 3
    assert [(call.module, call.function) for call in result.calls] == [("host:my-demo", "add")]


def test_a_dash_and_an_underscore_are_told_apart_by_the_host(demo: Sandbox) -> None:
    assert value_of(demo, "from host.under_score import one\none()") == 1


def test_a_function_has_a_name_and_a_repr(demo: Sandbox) -> None:
    source = """
import host.my_demo, host.my_demo.aio, inspect
add, later = host.my_demo.add, host.my_demo.aio.add
[add.__name__, add.__module__, repr(add), callable(add), repr(later), host.my_demo.__all__]
"""
    assert value_of(demo, source) == [
        "add",
        "host.my_demo",
        "<function host.my_demo.add>",
        True,
        "<coroutine function host.my_demo.aio.add>",
        ["add", "echo", "slow"],
    ]


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("import host.my_dmeo", "There is no module 'host.my_dmeo'. Did you mean 'host.my_demo'?"),
        (
            "import host.weather",
            "There is no module 'host.weather'. There is: host.my_demo, host.under_score, host.bridge.",
        ),
        ("import host\nhost.my_dmeo", "Did you mean 'host.my_demo'?"),
        ("from host.my_demo import ad", "cannot import name 'ad' from 'host.my_demo'. Did you mean: 'add'?"),
        ("from host.my_demo import zzz", "It has: add, echo, slow."),
        (
            "import host.my_demo\nhost.my_demo.ecco(1)",
            "module 'host.my_demo' has no function 'ecco'. Did you mean 'echo'?",
        ),
        ("import host.my_demo.aioo", "Tools are functions of host.my_demo"),
        ("import importlib\nimportlib.import_module('host:my-dmeo')", 'Did you mean "host:my-demo"?'),
        ("import mcp_weather", "from host.mcp_weather import"),
        ("from host.bridge import paralel", "Did you mean: 'parallel'?"),
    ],
)
def test_what_is_missing_is_answered_with_the_nearest_name(demo: Sandbox, source: str, said: str) -> None:
    failure = demo.run_sync(source, language="python").failure
    assert failure is not None
    assert said in failure.message
    assert failure.line is not None


def test_coroutines_overlap_also_in_task_groups(demo: Sandbox) -> None:
    source = """
import asyncio, time
from host.my_demo.aio import slow
began = time.monotonic()
async with asyncio.TaskGroup() as group:
    tasks = [group.create_task(slow(0.2)) for _ in range(5)]
[[task.result() for task in tasks], time.monotonic() - began]
"""
    results, seconds = value_of(demo, source)
    assert results == [0.2] * 5
    assert 0.2 <= seconds < 0.2 + patience(0.15)  # one after the other, 1 s


def test_a_call_that_is_given_up_doesn_t_hold_the_program(demo: Sandbox) -> None:
    source = """
import asyncio
from host.my_demo.aio import slow
try:
    async with asyncio.timeout(0.1):
        await slow(30)
except TimeoutError:
    result = "given up"
"""
    result = demo.run_sync(source, language="python")
    assert result.value == "given up"
    assert [call.outcome for call in result.calls] == ["unfinished"]


def test_timers_and_calls_wait_together(demo: Sandbox) -> None:
    source = """
import asyncio
from host.my_demo.aio import slow
order = []
async def timer(): await asyncio.sleep(0.1); order.append("timer")
async def call(): await slow(0.3); order.append("call")
await asyncio.gather(call(), timer())
order
"""
    assert value_of(demo, source) == ["timer", "call"]


def test_a_synchronous_call_and_parallel_leave_other_replies_to_asyncio(demo: Sandbox) -> None:
    source = """
import asyncio
from host.bridge import parallel
from host.my_demo import add, slow
from host.my_demo.aio import slow as later
task = asyncio.create_task(later(0.05))
await asyncio.sleep(0)
found = [parallel([(slow, 0.2), (add, 1, 2)]), add(3, 4)]
[found, await task]
"""
    assert value_of(demo, source) == [[[0.2, 3], 7], 0.05]


def test_a_session_keeps_imported_modules(demo: Sandbox) -> None:
    with demo.session(language="python") as session:
        assert session.run_sync("from host.my_demo import add\nfrom host.my_demo.aio import slow").ok
        assert session.run_sync("add(2, 3)").value == 5
        assert session.run_sync("await slow(0.01)").value == 0.01
