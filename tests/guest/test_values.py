"""Values of runs beyond plain JSON."""

from __future__ import annotations

import pytest

from toolbridge import Sandbox


@pytest.mark.parametrize(
    ("program", "value"),
    [
        ("const x = 4; export { x as default }", 4),
        ("const x = 4, y = 5; export { y, x as default }; 6", 4),
        ("new Map([['a', 1]])", {"a": 1}),
        ("new Map([[1, 'a'], ['1', 'b']])", [[1, "a"], ["1", "b"]]),
        ("new Set([1, 2])", [1, 2]),
    ],
)
def test_a_value_arrives_whole(program: str, value: object) -> None:
    assert Sandbox().run_sync(program).value == value


@pytest.mark.parametrize(
    ("program", "kind", "text"),
    [
        ("[1].map(async (n) => n)", "raised", "the value contains a promise"),
        ("let a = []; for (let i = 0; i < 5000; i++) a = [a]; a", "limit", "nested too deeply"),
        ("10n", "raised", "Hint: JSON has no BigInt"),
        ("```js\n1\n```", "raised", "Hint: the program begins with a Markdown fence"),
    ],
)
def test_a_value_that_can_not_arrive_says_why(program: str, kind: str, text: str) -> None:
    failure = Sandbox().run_sync(program).failure
    assert failure is not None
    assert (failure.kind, text in str(failure)) == (kind, True)


def test_the_place_of_an_error_class_of_the_program_is_where_it_is_thrown() -> None:
    program = "class MyError extends Error {\n  constructor(m) { super(m) }\n}\n\nthrow new MyError('x')"
    failure = Sandbox().run_sync(program).failure
    assert failure is not None
    assert failure.line == 5
