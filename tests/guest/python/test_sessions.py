"""Sessions in Python: state kept between programs, and state reset for each run."""

from __future__ import annotations

from toolbridge import Sandbox


def test_names_functions_classes_and_imports_are_kept(sandbox: Sandbox) -> None:
    with sandbox.session(language="python") as session:
        assert session.run_sync("import math\nclass A:\n    n = 1\ndef f(x): return math.sqrt(x) + A.n").ok
        assert session.run_sync("f(9)").value == 4.0
        assert session.run_sync("A.n = 5\nA.n").value == 5
        assert session.run_sync("f(9)").value == 8.0


def test_a_failure_keeps_the_state(sandbox: Sandbox) -> None:
    with sandbox.session(language="python") as session:
        assert session.run_sync("x = 1").ok
        assert not session.run_sync("x = 2\n1 / 0").ok
        assert not session.run_sync("x = ").ok
        assert session.run_sync("x").value == 2


def test_an_old_result_is_not_the_next_run_s_value(sandbox: Sandbox) -> None:
    with sandbox.session(language="python") as session:
        assert session.run_sync("result = 1").value == 1
        assert session.run_sync("y = 2").value is None
        assert session.run_sync("print(result)").value is None


def test_streams_that_were_closed_or_replaced_are_there_again(sandbox: Sandbox) -> None:
    with sandbox.session(language="python") as session:
        for harm in (
            "sys.stdout.close()",
            "sys.stdout = None",
            "sys.stdout = open",
            "del sys.stdout",
            "sys.stdout.detach()",
        ):
            session.run_sync(f"import sys\n{harm}")
            assert session.run_sync("print('here')").stdout == "here\n", harm


def test_each_run_has_its_own_output_and_seed(sandbox: Sandbox) -> None:
    with sandbox.session(language="python") as session:
        assert session.run_sync("print('one', end='')").stdout == "one"
        second = session.run_sync("import random\nprint('two')\nrandom.random()", seed=b"s" * 32)
        assert second.stdout == "two\n"
        assert session.run_sync("random.random()", seed=b"s" * 32).value == second.value


def test_asyncio_can_be_used_in_every_run(sandbox: Sandbox) -> None:
    with sandbox.session(language="python") as session:
        assert session.run_sync("import asyncio\nasync def f(): await asyncio.sleep(0); return 1\nawait f()").value == 1
        assert session.run_sync("asyncio.run(f())").value == 1
        assert session.run_sync("await asyncio.gather(f(), f())").value == [1, 1]


def test_another_session_sees_nothing_of_it(sandbox: Sandbox) -> None:
    with sandbox.session(language="python") as one, sandbox.session(language="python") as other:
        one.run_sync("import builtins\nbuiltins.leaked = x = 1")
        assert other.run_sync("import builtins\n[hasattr(builtins, 'leaked'), 'x' in globals()]").value == [
            False,
            False,
        ]
