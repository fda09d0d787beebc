"""T30, boundary abuse: a host function may raise or return anything. The guest gets a typed error; the host goes on."""

from __future__ import annotations

import asyncio
import math
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

import pytest

from threats.demo_functions import add
from toolbridge import Limits, RunResult, Sandbox
from toolbridge.boundary.host_call import CallFailed
from toolbridge.boundary.wire import ErrorFrame

LIMITS = Limits(wall_seconds=1.0, cpu_seconds=1.0)

REPORT = """
try {
  return ["returned", await attempt()];
} catch (error) {
  return [error.name, error.kind, error.message.slice(0, 100)];
}
"""


class SilentError(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text for you")


class MadeOfErrorsError(Exception):
    def __str__(self) -> str:
        return 5  # noqa: PLE0307  # pyright: ignore[reportReturnType]


class HugeError(Exception):
    def __str__(self) -> str:
        return "x" * 10_000_000


class FailingItems(dict[str, int]):
    def items(self) -> NoReturn:
        raise RuntimeError("changed during iteration")


class FailingText(str):
    __slots__ = ()

    def __str__(self) -> NoReturn:
        raise RuntimeError("no text")


class NeverAwaited:
    def __await__(self) -> NoReturn:
        raise KeyboardInterrupt


def cyclic() -> list[Any]:
    cycle: list[Any] = []
    cycle.append(cycle)
    return cycle


def deep() -> list[Any]:
    value: list[Any] = []
    for _ in range(100_000):
        value = [value]
    return value


RAISED: list[BaseException] = [
    *(ValueError("bad"), Exception(), BaseException("base"), SystemExit(3), KeyboardInterrupt(), GeneratorExit()),
    *(StopIteration(1), StopAsyncIteration(), asyncio.CancelledError(), MemoryError(), RecursionError()),
    *(SilentError(), MadeOfErrorsError(), HugeError(), ValueError("\ud800"), ValueError("\0\x1b[2J")),
    ExceptionGroup("several", [ValueError("one")]),
    CallFailed(ErrorFrame("failed", "with data", data=object())),  # pyright: ignore[reportArgumentType]
]

RETURNED: list[tuple[Callable[[], Any], str]] = [
    *((lambda: {1, 2}, "protocol"), (object, "protocol"), (lambda: b"bytes", "protocol"), (cyclic, "protocol")),
    *((lambda: math.nan, "protocol"), (lambda: [math.inf], "protocol"), (deep, "protocol")),
    *((lambda: 10**5000, "protocol"), (lambda: {(1, 2): 3}, "protocol"), (lambda: FailingItems(a=1), "protocol")),
    (lambda: "x" * 10_000_000, "limit"),
    (lambda: ["x" * 10_000] * 1000, "limit"),
]


def run_with(function: Callable[..., Any], suffix: str) -> tuple[RunResult, RunResult]:
    """A run that calls the function, and an innocent one in the same sandbox after it."""
    with Sandbox(modules={"host:demo": {"attempt": function, "add": add}}, limits=Limits()) as sandbox:
        result = sandbox.run_sync(f'import {{ attempt }} from "host:demo{suffix}";{REPORT}')
        following = sandbox.run_sync('import { add } from "host:demo/async"; export default await add(1, 2);')
    return result, following


def as_plain(body: Callable[[], Any]) -> Callable[[], Any]:
    def attempt() -> Any:
        return body()

    return attempt


def as_coroutine(body: Callable[[], Any]) -> Callable[[], Any]:
    async def attempt() -> Any:
        return body()

    return attempt


def as_awaitable(body: Callable[[], Any]) -> Callable[[], Any]:
    async def later() -> Any:
        return body()

    def attempt() -> Any:
        return later()

    return attempt


WAYS = [
    pytest.param(as_plain, "", id="plain"),
    pytest.param(as_plain, "/async", id="plain started"),
    pytest.param(as_coroutine, "", id="coroutine"),
    pytest.param(as_coroutine, "/async", id="coroutine started"),
    pytest.param(as_awaitable, "", id="gives an awaitable"),
]


@pytest.mark.parametrize(("way", "suffix"), WAYS)
@pytest.mark.parametrize("error", RAISED, ids=lambda error: type(error).__name__)
def test_whatever_a_host_function_raises_is_a_tool_error_in_the_guest(
    error: BaseException, way: Callable[[Callable[[], Any]], Callable[[], Any]], suffix: str
) -> None:
    def body() -> NoReturn:
        raise error.with_traceback(None)

    result, following = run_with(way(body), suffix)
    assert result.failure is None, result.failure
    name, kind, message = result.value
    assert (name, kind) == ("ToolFailedError", "failed")
    wrapped = isinstance(error, StopIteration | StopAsyncIteration | CallFailed)
    assert wrapped or message.startswith(type(error).__name__)
    assert "Traceback" not in message
    assert following.value == 3


@pytest.mark.parametrize(("way", "suffix"), WAYS)
@pytest.mark.parametrize(("body", "kind"), RETURNED)
def test_whatever_has_no_json_form_is_a_tool_error_in_the_guest(
    body: Callable[[], Any], kind: str, way: Callable[[Callable[[], Any]], Callable[[], Any]], suffix: str
) -> None:
    result, following = run_with(way(body), suffix)
    assert result.failure is None, result.failure
    assert result.value[:2] == ["ToolLimitError" if kind == "limit" else "ToolError", kind]
    assert following.value == 3


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("\ud800", "\ufffd"),
        ({"\udfff": 1}, {"\ufffd": 1}),
        (FailingText("text"), "text"),
        ((1, 2), [1, 2]),
        ({1: None, 2.5: 2}, {"1": None, "2.5": 2}),
        ("\0\u2028</script>", "\0\u2028</script>"),
        (-0.0, 0),
    ],
)
def test_what_has_a_json_form_arrives_as_it_is(value: Any, expected: Any) -> None:
    result, _ = run_with(lambda: value, "")
    assert result.value == ["returned", expected]


def test_lone_surrogates_reach_the_guest_unchanged() -> None:
    with Sandbox(modules={"host:demo": {"text": lambda: "a\ud800b"}}) as sandbox:
        result = sandbox.run_sync('import { text } from "host:demo"; const t = text(); [t.length, t.charCodeAt(1)]')
    assert result.value == [3, 0xD800]


def test_an_awaitable_that_fails_is_a_tool_error_in_the_guest() -> None:
    result, following = run_with(NeverAwaited, "")
    assert result.failure is None
    assert result.value[:2] == ["ToolFailedError", "failed"]
    assert following.value == 3


BOTTOMLESS = """
from toolbridge import Sandbox

class BottomlessError(BaseException):
    def __str__(self):
        raise BottomlessError

def attempt():
    raise BottomlessError

with Sandbox(modules={"host:demo": {"attempt": attempt}}) as sandbox:
    result = sandbox.run_sync('import { attempt } from "host:demo"; try { attempt() } catch (error) { error.kind }')
    print(result.value, sandbox.run_sync("6 * 7").value)
"""


def test_an_error_whose_text_is_another_error_does_not_crash_the_process() -> None:
    """An exception that leaves a host function would make Wasmtime take garbage for a trap."""
    command = [sys.executable, "-c", BOTTOMLESS]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", timeout=30, check=False)
    assert (done.returncode, done.stdout) == (0, "failed 42\n"), done.stderr[-2000:]


# ---- re-entry


@pytest.fixture
def reentrant() -> Iterator[Sandbox]:
    def again(depth: int) -> Any:
        result = sandbox.run_sync(f'import {{ again }} from "host:demo"; {depth} && again({depth - 1}) + 1')
        return result.value

    with Sandbox(modules={"host:demo": {"again": again}}, limits=LIMITS) as sandbox:
        yield sandbox


def test_a_host_function_may_run_guests_of_its_own(reentrant: Sandbox) -> None:
    assert reentrant.run_sync('import { again } from "host:demo"; again(5)').value == 5


def test_a_host_function_that_runs_its_own_session_gets_an_error_and_the_session_goes_on() -> None:
    def again() -> Any:
        return session.run_sync("1").value

    with Sandbox(modules={"host:demo": {"again": again}}, limits=LIMITS) as sandbox, sandbox.session() as session:
        result = session.run_sync(
            'import { again } from "host:demo"; try { again() } catch (error) { error.message.split(":")[0] }'
        )
        assert result.value == "SessionBusyError"
        assert session.run_sync("2").value == 2


def test_what_a_coroutine_raises_does_not_leave_an_awaited_run() -> None:
    async def attempt() -> None:
        raise SystemExit(3)

    async def main() -> RunResult:
        with Sandbox(modules={"host:demo": {"attempt": attempt}}, limits=LIMITS) as sandbox:
            return await sandbox.run(f'import {{ attempt }} from "host:demo";{REPORT}')

    result = asyncio.run(main())
    assert result.value == ["ToolFailedError", "failed", "SystemExit: 3"]
