"""Cases that one test loops over, where each is too small to be a test of its own."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from typing import Any, TypeVar

import pytest

Test = TypeVar("Test", bound=Callable[..., Any])


def each(names: str, cases: Iterable[Any]) -> Callable[[Test], Test]:
    """Runs a test once per case, like `pytest.mark.parametrize`, but as one test that reports every failure.

    For cases of milliseconds. Fixtures are shared by all cases.
    """
    parameters = [name.strip() for name in names.split(",")]
    given = [dict(zip(parameters, case if len(parameters) > 1 else [case], strict=True)) for case in cases]
    assert given

    def decorate(test: Any) -> Any:
        signature = inspect.signature(test)
        others = [each for each in signature.parameters.values() if each.name not in parameters]

        async def looped_async(**fixtures: Any) -> None:
            failures: list[BaseException] = []
            for case in given:
                try:
                    await test(**fixtures, **case)
                except (Exception, pytest.fail.Exception) as error:
                    failures.append(noted(error, case))
            check(failures, len(given))

        def looped(**fixtures: Any) -> None:
            failures: list[BaseException] = []
            for case in given:
                try:
                    test(**fixtures, **case)
                except (Exception, pytest.fail.Exception) as error:
                    failures.append(noted(error, case))
            check(failures, len(given))

        folded: Any = wraps(test)(looped_async if inspect.iscoroutinefunction(test) else looped)
        folded.__signature__ = signature.replace(parameters=others)
        return folded

    return decorate


def noted(error: BaseException, case: Mapping[str, Any]) -> BaseException:
    error.add_note(f"Case: {', '.join(f'{name} = {value!r}'[:300] for name, value in case.items())}")
    return error


def check(failures: list[BaseException], count: int) -> None:
    if failures:
        raise BaseExceptionGroup(f"{len(failures)} of {count} cases failed", failures)
