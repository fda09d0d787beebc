"""`modules=`: what can be offered to guest code, and what is refused by name."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import pytest

from toolbridge import Sandbox
from toolbridge.boundary.host_call import HostFunction
from toolbridge.errors import HostModuleError
from toolbridge.sandbox.sandbox import host_modules


def plain() -> int:
    return 1


async def coroutine() -> int:
    return 2


class Service:
    def plain(self) -> int:
        return 3

    async def coroutine(self) -> int:
        return 4

    @staticmethod
    async def static() -> int:
        return 5

    @classmethod
    async def of_class(cls) -> int:
        return 6


class CallableObject:
    def __call__(self) -> int:
        return 7


class AsyncCallable:
    async def __call__(self) -> int:
        return 8


@functools.wraps(coroutine)
def wrapped() -> Any:
    return coroutine()


def test_modules_that_have_one_name_in_python_are_refused() -> None:
    with pytest.raises(HostModuleError, match=r"it has the same name as host:a-b: host\.a_b"):
        host_modules({"host:a-b": {"plain": plain}, "host:a_b": {"plain": plain}})


CASES: list[tuple[str, Callable[..., Any], bool]] = [
    ("plain", plain, False),
    ("coroutine", coroutine, True),
    ("method", Service().plain, False),
    ("coroutine_method", Service().coroutine, True),
    ("static_method", Service.static, True),
    ("class_method", Service.of_class, True),
    ("partial", functools.partial(plain), False),
    ("partial_coroutine", functools.partial(functools.partial(coroutine)), True),
    ("callable_object", CallableObject(), False),
    ("async_callable", AsyncCallable(), True),
    ("builtin", len, False),
    ("builtin_method", "abc".upper, False),
    ("type", dict, False),
    ("function_that_gives_a_coroutine", wrapped, False),
]


@pytest.mark.parametrize(("function", "is_async"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_a_coroutine_function_is_recognised_in_whatever_form(function: Callable[..., Any], is_async: bool) -> None:
    assert host_modules({"host:demo": {"f": function}}) == {"host:demo": {"f": HostFunction(function, is_async)}}


@pytest.mark.parametrize(
    ("function", "value"),
    [(function, function()) for _, function, is_async in CASES if not is_async and function not in (len, wrapped)],
)
def test_every_form_of_plain_function_can_be_called(function: Callable[..., Any], value: object) -> None:
    with Sandbox({"host:demo": {"f": function}}) as sandbox:
        assert sandbox.run_sync('require("host:demo").f()').value == value


@pytest.mark.parametrize(
    ("function", "value"),
    [
        (coroutine, 2),
        (Service().coroutine, 4),
        (Service.static, 5),
        (functools.partial(coroutine), 2),
        (AsyncCallable(), 8),
        (wrapped, 2),
    ],
)
def test_every_form_of_coroutine_function_can_be_called(function: Callable[..., Any], value: object) -> None:
    with Sandbox({"host:demo": {"f": function}}) as sandbox:
        program = (
            'import * as now from "host:demo"; import * as later from "host:demo/async"; [now.f(), await later.f()]'
        )
        assert sandbox.run_sync(program).value == [value, value]


def test_a_module_may_be_empty() -> None:
    assert host_modules({"host:demo": {}}) == {"host:demo": {}}


@pytest.mark.parametrize("specifier", ["host:a", "host:mcp-weather", "host:a_b-9", "host:9", "host:" + "a" * 128])
def test_a_specifier_of_this_form_is_allowed(specifier: str) -> None:
    assert host_modules({specifier: {}}) == {specifier: {}}


@pytest.mark.parametrize(
    "specifier",
    [
        *(
            "demo",
            "host:",
            "host:Demo",
            "host:-a",
            "host:a/async",
            "host:a b",
            "HOST:a",
            "host:é",
            "host:a\n",
            " host:a",
        ),
        *("host:" + "a" * 129, "node:fs", "", 5, None, b"host:a"),
    ],
)
def test_any_other_specifier_is_refused(specifier: Any) -> None:
    with pytest.raises(HostModuleError) as caught:
        host_modules({specifier: {}})
    assert caught.value.specifier == specifier
    assert str(caught.value) == (
        f'Module {specifier!r}: a specifier is "host:" and lower-case letters, digits, "-" or "_", such as "host:demo"'
    )


def test_the_module_of_the_bridge_itself_is_refused() -> None:
    with pytest.raises(HostModuleError, match=r"^Module 'host:bridge': this name is reserved by toolbridge$"):
        host_modules({"host:bridge": {"ToolError": plain}})


@pytest.mark.parametrize(
    "name",
    [
        *(
            "",
            "1a",
            "a-b",
            "a.b",
            "a b",
            "a\n",
            "é",
            "__proto__",
            "constructor",
            "prototype",
            "then",
            "toJSON",
            "default",
        ),
        *("__esModule", "toString", "valueOf", "hasOwnProperty", 5, None),
    ],
)
def test_a_name_that_can_not_be_an_export_is_refused(name: Any) -> None:
    with pytest.raises(HostModuleError) as caught:
        host_modules({"host:demo": {name: plain}})
    assert str(caught.value) == f"Module 'host:demo': {name!r} can't be the name of an export"


@pytest.mark.parametrize("name", ["a", "_", "$", "get_forecast", "getForecast", "A1$_", "delete", "class"])
def test_a_name_that_can_be_an_export_is_allowed_and_callable(name: str) -> None:
    with Sandbox({"host:demo": {name: plain}}) as sandbox:
        assert sandbox.run_sync(f'require("host:demo").{name}()').value == 1


@pytest.mark.parametrize("value", [5, None, "text", {"a": 1}])
def test_an_export_that_can_not_be_called_is_refused(value: Any) -> None:
    with pytest.raises(HostModuleError) as caught:
        host_modules({"host:demo": {"f": value}})
    assert str(caught.value) == f"Module 'host:demo': export 'f' is {value!r}, which can't be called"


def test_a_module_that_is_changed_later_stays_as_it_was() -> None:
    functions: dict[str, Callable[..., Any]] = {"f": plain}
    with Sandbox({"host:demo": functions}) as sandbox:
        functions["g"] = plain
        del functions["f"]
        assert sandbox.run_sync('Object.keys(require("host:demo"))').value == ["f"]


def test_a_host_module_error_is_also_a_value_error() -> None:
    with pytest.raises(ValueError, match=r"^Module 'demo'"):
        Sandbox({"demo": {}})


@pytest.mark.parametrize("functions", [5, None, ["f"], functools])
def test_a_module_that_is_no_mapping_of_functions_is_refused(functions: Any) -> None:
    with pytest.raises(HostModuleError, match=r"^Module 'host:demo': "):
        host_modules({"host:demo": functions})
