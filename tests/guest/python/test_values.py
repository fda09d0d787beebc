"""Python's own types in the value of a run and in arguments."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from toolbridge import Sandbox

IMPORTS = """
import collections, dataclasses, datetime, decimal, enum, fractions, pathlib, types, uuid
class Colour(enum.Enum):
    RED = "red"
class Level(enum.IntEnum):
    HIGH = 3
@dataclasses.dataclass
class Point:
    x: int
    y: object = None
Pair = collections.namedtuple("Pair", "a b")
"""


@pytest.fixture(scope="module")
def echoing() -> Iterator[Sandbox]:
    with Sandbox({"host:demo": {"echo": lambda *values: list(values)}}) as sandbox:
        yield sandbox


def value_of(sandbox: Sandbox, source: str) -> Any:
    result = sandbox.run_sync(source, language="python")
    assert result.failure is None, str(result.failure)
    return result.value


def failure_of(sandbox: Sandbox, source: str) -> str:
    result = sandbox.run_sync(source, language="python")
    assert result.failure is not None
    assert result.value is None
    return str(result.failure)


@pytest.mark.parametrize(
    ("source", "value"),
    [
        ("1\n2", 2),
        ("x = 1", None),
        ("result = 5", 5),
        ("\uff52esult = 5\nNone", 5),  # the same name, as Python reads it
        ("result = 5\n7", 7),
        ("result = 5\nprint('shown')", 5),
        ("result = None\n", None),
        ("for result in range(3): pass", 2),
        ("with __import__('contextlib').nullcontext(4) as result: pass", 4),
        ("def f():\n    global result\n    result = 8\nf()", 8),
        ("def f():\n    result = 8\nf()", None),
        ("class A: result = 1\n", None),
        ("[result for result in [1, 2]]\nx = 1", None),
        ("if True:\n    5", None),
        ('"""only a text"""', "only a text"),
        ("async def f(): return 3\nf()", 3),
        ("async def f(): return 3\nawait f()", 3),
        ("async def f(): return 3\nresult = await f()", 3),
        ("import sys\nsys.exit()", None),
        ("import sys\nsys.exit(0)", None),
        ("# nothing", None),
        ("1 + 1", 2),
        ("1 + 1  # two\n\n", 2),
        ("x = 1; x + 1", 2),
        ("(result := 4)", 4),
        ("await __import__('asyncio').sleep(0, 6)", 6),
        ("if __name__ == '__main__':\n    result = __name__", "__main__"),
    ],
)
def test_the_value_is_the_last_expression_or_the_variable_result(sandbox: Sandbox, source: str, value: Any) -> None:
    assert value_of(sandbox, source) == value


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("(1, 2)", [1, 2]),
        ("{3, 1, 2}", [1, 2, 3]),
        ("frozenset('ba')", ["a", "b"]),
        ("collections.deque([1, 2])", [1, 2]),
        ("range(3)", [0, 1, 2]),
        ("{'a': 1}.keys()", ["a"]),
        ("list({'a': 1}.items())", [["a", 1]]),
        ("collections.Counter('aab')", {"a": 2, "b": 1}),
        ("collections.OrderedDict(b=1, a=2)", {"b": 1, "a": 2}),
        ("types.MappingProxyType({'k': 1})", {"k": 1}),
        ("types.SimpleNamespace(a=1)", {"a": 1}),
        ("{1: 'a', 2.5: 'b', None: 'c', True: 'd'}", {"1": "d", "2.5": "b", "null": "c"}),
        ("{datetime.date(2024, 1, 2): 1}", {"2024-01-02": 1}),
        ("{Colour.RED: 1}", {"red": 1}),
        ("Colour.RED", "red"),
        ("Level.HIGH", 3),
        ("Point(1, Point(2))", {"x": 1, "y": {"x": 2, "y": None}}),
        ("Pair(1, 2)", [1, 2]),
        ("datetime.datetime(2024, 1, 2, 3, 4, 5)", "2024-01-02T03:04:05"),
        ("datetime.date(2024, 1, 2)", "2024-01-02"),
        ("datetime.time(3, 4)", "03:04:00"),
        ("datetime.timedelta(minutes=1.5)", 90.0),
        ("decimal.Decimal('19.99')", 19.99),
        ("decimal.Decimal('5.00')", 5),
        ("decimal.Decimal('NaN')", None),
        ("fractions.Fraction(1, 3)", "1/3"),
        ("uuid.UUID(int=1)", "00000000-0000-0000-0000-000000000001"),
        ("pathlib.PurePosixPath('/a/b')", "/a/b"),
        ("b'hi'", "<application/octet-stream 2 B>"),
        ("bytearray(b'hi')", "<application/octet-stream 2 B>"),
        ("[float('nan'), memoryview(bytes(5000))]", [None, "<application/octet-stream 4.9 KB>"]),
        ("ValueError('no')", {"name": "ValueError", "message": "no"}),
        ("float('nan')", None),
        ("[float('inf'), {'x': -float('inf')}]", [None, {"x": None}]),
        ("10 ** 30", 10**30),
        ("True", True),
        ("'\\x00\\u2028'", "\x00\u2028"),
        ("type('S', (str,), {})('x')", "x"),
        ("[[{'a': ({'b': {1}},)}]]", [[{"a": [{"b": [1]}]}]]),
    ],
)
def test_a_value_comes_back_as_json(sandbox: Sandbox, expression: str, value: Any) -> None:
    assert value_of(sandbox, IMPORTS + expression) == value


@pytest.mark.parametrize(
    ("expression", "said"),
    [
        ("lambda: 1", ("The run's value has a function", "Call it")),
        ("print", ("has a builtin_function_or_method", "Call it")),
        ("Point", ("has a type", "Call it")),
        ("(x for x in [1])", ("has a generator", "list(…)")),
        ("map(str, [1])", ("has a map", "list(…)")),
        ("object()", ("has an object", "Give a dict, list, str, number, bool or None")),
        ("{'rows': [1, object()]}", ("has an object at ['rows'][1]",)),
        ("Point(1, {'z': 1j})", ("has a complex at ['y']['z']",)),
        ("{(1, 2): 3}", ("has a tuple as a key", "str(…)")),
        ("10 ** 5000", ("a number that is too long", "text")),
        ("x = []; x.append(x); [1, x]", ("contains itself at [1][0]",)),
    ],
)
def test_what_has_no_json_form_is_named_with_its_place(
    sandbox: Sandbox, expression: str, said: tuple[str, ...]
) -> None:
    text = failure_of(sandbox, IMPORTS + expression)
    assert all(each in text for each in said), text


def test_a_coroutine_inside_the_value_asks_for_await(sandbox: Sandbox) -> None:
    assert "Write await" in failure_of(sandbox, "async def f(): return 1\n[f()]")


def test_an_exit_with_a_code_is_a_failure(sandbox: Sandbox) -> None:
    assert failure_of(sandbox, "import sys\nsys.exit('not today')").startswith("SystemExit: not today")


@pytest.mark.parametrize(
    ("call", "passed"),
    [
        ("echo()", []),
        ("echo(1, 'a', None)", [1, "a", None]),
        ("echo(location='Oslo', days=3)", [{"location": "Oslo", "days": 3}]),
        ("echo({'location': 'Oslo'})", [{"location": "Oslo"}]),
        ("echo({'location': 'Oslo'}, days=3)", [{"location": "Oslo", "days": 3}]),
        ("echo(collections.OrderedDict(a=(1, 2)))", [{"a": [1, 2]}]),
        ("echo(types.MappingProxyType({'a': range(2)}), b={1})", [{"a": [0, 1], "b": [1]}]),
        ("echo(1, x=2)", [1, {"x": 2}]),
        ("echo(self=1, arguments=2, named=3)", [{"self": 1, "arguments": 2, "named": 3}]),
        ("echo(when=datetime.date(2024, 1, 2), price=decimal.Decimal('1.5'))", [{"when": "2024-01-02", "price": 1.5}]),
        ("echo(n=2 ** 70)", [{"n": 2**70}]),
        (
            "echo(data=b'hi', colour=Colour.RED, at=Point(1))",
            [{"data": "aGk=", "colour": "red", "at": {"x": 1, "y": None}}],
        ),
    ],
)
def test_arguments_are_keywords_or_one_mapping_or_a_list(echoing: Sandbox, call: str, passed: list[Any]) -> None:
    assert value_of(echoing, f"{IMPORTS}\nfrom host.demo import echo\n{call}") == passed


@pytest.mark.parametrize(
    ("call", "said"),
    [
        ("echo(x=float('nan'))", "have nan at [0]['x']"),
        ("echo(x=[object()])", "has an object at [0]['x'][0]"),
        ("echo(lambda: 1)", "has a function at [0]"),
    ],
)
def test_an_argument_without_a_json_form_is_refused_before_the_call(echoing: Sandbox, call: str, said: str) -> None:
    result = echoing.run_sync(f"from host.demo import echo\n{call}", language="python")
    assert said in str(result.failure)
    assert result.failure is not None
    assert result.failure.line == 2
    assert result.calls == ()
