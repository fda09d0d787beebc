"""`host.bridge` in Python: errors of calls, handles, and parallel()."""

from __future__ import annotations

import ast
from typing import Any

import pytest

from guest.handle_host import HandleHost
from toolbridge import RunResult, Sandbox
from toolbridge.boundary.host_call import CallFailed
from toolbridge.boundary.wire import ErrorFrame
from toolbridge_codegen.stubs import bridge_pyi

HEAD = """\
from host import bridge
from host.bridge import Handle, ToolError, parallel
import host.demo as demo
import host.demo.aio as later
"""

CLASSES = {
    "timeout": "ToolTimeoutError",
    "denied": "ToolDeniedError",
    "disconnected": "ToolDisconnectedError",
    "invalid_arguments": "ToolArgumentsError",
    "limit": "ToolLimitError",
    "failed": "ToolFailedError",
}


def run(sandbox: Sandbox, host: HandleHost, program: str) -> RunResult:
    with sandbox.session(language="python", host=host.side()) as session:
        return session.run_sync(HEAD + program)


def value_of(sandbox: Sandbox, host: HandleHost, program: str) -> Any:
    result = run(sandbox, host, program)
    assert result.failure is None, str(result.failure)
    return result.value


def host_that_fails(error: ErrorFrame) -> HandleHost:
    host = HandleHost()

    def refuse() -> None:
        raise CallFailed(error)

    host.offer("refuse", refuse)
    return host


# ---- errors


@pytest.mark.parametrize("call", ["demo.refuse()", "await later.refuse()", "parallel([(demo.refuse,)])"])
@pytest.mark.parametrize("kind", CLASSES)
def test_each_kind_of_failure_has_its_class(sandbox: Sandbox, kind: str, call: str) -> None:
    host = host_that_fails(ErrorFrame(kind, "no", server="weather", tool="get-forecast", data={"a": 1}))
    program = f"""
try: {call}
except ToolError as error:
    found = [type(error).__name__, isinstance(error, getattr(bridge, "{CLASSES[kind]}")), str(error), error.message,
             error.kind, error.server, error.tool, error.module, error.function, error.data]
found
"""
    assert value_of(sandbox, host, program) == [
        *(CLASSES[kind], True, "no", "no", kind, "weather", "get-forecast", "host:demo", "refuse", {"a": 1}),
    ]


def test_a_function_of_no_server_says_its_own_name(sandbox: Sandbox) -> None:
    host = host_that_fails(ErrorFrame("failed", "no"))
    program = "try: demo.refuse()\nexcept ToolError as error: found = [error.server, error.tool]\nfound"
    assert value_of(sandbox, host, program) == ["", "refuse"]


def test_another_kind_is_a_tool_error_itself(sandbox: Sandbox) -> None:
    host = host_that_fails(ErrorFrame("unknown", "no"))
    program = "try: demo.refuse()\nexcept ToolError as error: found = type(error).__name__\nfound"
    assert value_of(sandbox, host, program) == "ToolError"


def test_a_denied_call_that_isn_t_caught_is_a_denied_run(sandbox: Sandbox) -> None:
    failure = run(sandbox, host_that_fails(ErrorFrame("denied", "not you")), "demo.refuse()").failure
    assert failure is not None
    assert (failure.kind, failure.message, failure.line) == ("denied", "ToolDeniedError: not you", 5)


# ---- handles


def test_a_handle_is_put_where_it_belongs_and_can_be_read(sandbox: Sandbox) -> None:
    program = """
result = demo.image()
picture = result["images"][1]
[isinstance(picture, Handle), picture.mime, picture.size, picture.name, repr(picture), str(picture),
 len(picture.bytes()), list(picture.bytes()[:3]), result["title"]]
"""
    assert value_of(sandbox, HandleHost(), program) == [
        *(True, "image/png", 34560, "chart.png", '<image/png 34 KB "chart.png">', '<image/png 34 KB "chart.png">'),
        *(34560, [0, 1, 2], "t"),
    ]


def test_a_large_result_is_read_whole_or_in_parts(sandbox: Sandbox) -> None:
    program = """
big = demo.big()
[big.name, len(big.json()), big.json()[7], big.text()[:12], big.slice(0, 9).text(), big.slice(-2).text()]
"""
    assert value_of(sandbox, HandleHost(), program) == [
        *(None, 100_000, {"city": "Zürich", "row": 7}, '[{"city": "Z', '[{"city":', "}]"),
    ]


def test_a_handle_in_the_value_is_shown_and_in_arguments_stands_for_its_content(sandbox: Sandbox) -> None:
    host = HandleHost()
    program = 'big = demo.big()\ndemo.echo(big, {"in": [big]}, keyword=big)\n{"it": big}'
    value = value_of(sandbox, host, program)
    assert list(value) == ["it"]
    assert value["it"].startswith("<application/json ")
    mark = {"\0handle": 1000}
    assert host.passed == [[mark, {"in": [mark]}, {"keyword": mark}]]


@pytest.mark.parametrize(
    ("use", "error"),
    [
        ("big['rows']", "TypeError"),
        ("big[0]", "TypeError"),
        ("for row in big: pass", "TypeError"),
        ("len(big)", "TypeError"),
        ("'x' in big", "TypeError"),
        ("big.rows", "AttributeError"),
    ],
)
def test_a_handle_used_as_its_content_raises_with_advice(sandbox: Sandbox, use: str, error: str) -> None:
    failure = run(sandbox, HandleHost(), f"big = demo.big()\n{use}").failure
    assert failure is not None
    assert failure.message.startswith(f"{error}: This result is a Handle (application/json, ")
    assert "use .json(), .text(), .slice() or .bytes() to read it, or pass it to a tool." in failure.message


@pytest.mark.parametrize(
    "use", ["Handle()", "Handle(1, 2)", "import copy; copy.copy(big)", "big.size = 1", "del big.mime"]
)
def test_a_handle_can_t_be_made_copied_or_changed(sandbox: Sandbox, use: str) -> None:
    failure = run(sandbox, HandleHost(), f"big = demo.big()\n{use}").failure
    assert failure is not None
    assert failure.kind == "raised"
    assert "Handle can't be" in failure.message


def test_a_handle_is_true_and_equal_to_itself_only(sandbox: Sandbox) -> None:
    program = "a, b = demo.big(), demo.big()\n[bool(a), a == a, a == b, hash(a) == hash(a), {a: 1}[a]]"
    assert value_of(sandbox, HandleHost(), program) == [True, True, False, True, 1]


# ---- parallel


def test_results_come_in_the_order_of_the_list(sandbox: Sandbox) -> None:
    program = "parallel([(demo.check, 1), [later.check, 2], (demo.echo, 3, 4), (demo.echo, {'a': 5})])"
    assert value_of(sandbox, HandleHost(), program) == [10, 20, [3, 4], [{"a": 5}]]


def test_any_iterable_will_do(sandbox: Sandbox) -> None:
    assert value_of(sandbox, HandleHost(), "parallel((demo.check, n) for n in range(200))") == list(range(0, 2000, 10))
    assert value_of(sandbox, HandleHost(), "parallel([])") == []


def test_the_first_error_of_the_list_is_raised(sandbox: Sandbox) -> None:
    failure = run(sandbox, HandleHost(), "parallel([(demo.check, 1), (demo.check, -2), (demo.check, -3)])").failure
    assert failure is not None
    assert failure.message == "ToolFailedError: no -2"


def test_after_an_error_no_more_are_started(sandbox: Sandbox) -> None:
    result = run(sandbox, HandleHost(), "parallel([(demo.check, -1)] + [(demo.check, 1)] * 50, limit=1)")
    assert len(result.calls) == 1


def test_errors_are_collected_if_so_wished(sandbox: Sandbox) -> None:
    program = """
found = parallel([(demo.check, 1), (demo.check, -2)], errors="collect", limit=5)
[found[0], isinstance(found[1], ToolError), found[1].message]
"""
    assert value_of(sandbox, HandleHost(), program) == [10, True, "no -2"]


@pytest.mark.parametrize(
    ("call", "said"),
    [
        ("parallel([demo.check(1)])", "element [0] of the list is of type int"),
        ("parallel([(demo.check, 1), demo.check])", "element [1] of the list is of type HostFunction"),
        ("parallel([(print, 1)])", "only functions of host modules can be called in parallel"),
        ("parallel([()])", "write (function, input)"),
        ("parallel(5)", "takes a list of (function, input)"),
        ("parallel('abc')", "takes a list of (function, input)"),
        ("parallel({demo.check: 1})", "takes a list of (function, input)"),
        ("parallel([], limit=0)", "a whole number from 1"),
        ("parallel([], limit=True)", "a whole number from 1"),
        ("parallel([], errors='ignore')", '"throw" or "collect"'),
        ("parallel([(demo.echo, object())])", "has no JSON form"),
        ("parallel([later.check(1)])", "of type coroutine"),
    ],
)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_mistake_in_the_list_is_found_before_any_call(sandbox: Sandbox, call: str, said: str) -> None:
    result = run(sandbox, HandleHost(), call)
    assert result.failure is not None
    assert said in result.failure.message
    assert [each for each in result.calls if each.function == "echo"] == []


# ---- what the stub promises


def member_names(declared: ast.ClassDef) -> set[str]:
    names = {member.name for member in declared.body if isinstance(member, ast.FunctionDef)}
    targets = [member.target for member in declared.body if isinstance(member, ast.AnnAssign)]
    return names | {target.id for target in targets if isinstance(target, ast.Name)}


def test_the_stub_of_the_bridge_matches_the_guest(sandbox: Sandbox) -> None:
    declared = ast.parse(bridge_pyi()).body
    classes = {node.name: node for node in declared if isinstance(node, ast.ClassDef)}
    functions = {node.name for node in declared if isinstance(node, ast.FunctionDef)}
    source = """
import host.bridge as bridge
public = {name: value for name, value in vars(bridge).items() if not name.startswith("_")}
error = bridge.ToolError("x")
members = lambda kind: sorted({*dir(kind), *(vars(error) if issubclass(kind, Exception) else ())})
[
    [name for name, value in public.items() if not isinstance(value, type)],
    {name: [kind.__base__.__name__, members(kind)] for name, kind in public.items() if isinstance(kind, type)},
]
"""
    result = sandbox.run_sync(source, language="python")
    assert result.failure is None, str(result.failure)
    there_functions, there_classes = result.value
    assert set(there_functions) == functions
    assert set(there_classes) == set(classes)
    for name, node in classes.items():
        base, members = there_classes[name]
        assert [base] == ([each.id for each in node.bases if isinstance(each, ast.Name)] or ["object"])
        assert member_names(node) <= set(members), name
