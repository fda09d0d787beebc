"""TypeScript in the sandbox: what its types leave, where its errors are, and what is refused."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from growth import patience
from toolbridge import Failure, Limits, Sandbox
from toolbridge.errors import GuestImageError, LanguageError
from toolbridge.sandbox import engine
from toolbridge.sandbox.outcome import RunResult
from toolbridge.sandbox.typescript import Answer, read_answer, request
from toolbridge_guest import GuestImage

SYNTAX = Path(__file__).resolve().parents[2] / "fixtures" / "programs" / "syntax.txt"
PROGRAMS = {
    title: (code, json.loads(value))
    for title, code, value in re.findall(r"^== (.*)\n((?:.*\n)*?)=> (.*)$", SYNTAX.read_text("utf-8"), re.MULTILINE)
}


@pytest.fixture(scope="module")
def typescript() -> Iterator[Sandbox]:
    def add(a: int, b: int) -> int:
        return a + b

    with Sandbox({"host:demo": {"add": add}}) as sandbox:
        yield sandbox


def run(sandbox: Sandbox, source: str) -> RunResult:
    return sandbox.run_sync(source, language="typescript")


@pytest.mark.parametrize("title", PROGRAMS)
def test_a_program_runs_without_its_types_and_with_its_lines(title: str, typescript: Sandbox) -> None:
    source, value = PROGRAMS[title]
    result = run(typescript, source)
    assert result.failure is None, str(result.failure)
    assert result.value == value


SLOW_TO_READ = "let a = {" + ",".join(f"k{i}: (x: number) => x" for i in range(12000)) + "};\n1"


def test_removing_the_types_takes_no_longer_than_the_program_may(typescript: Sandbox) -> None:
    run(typescript, "1")
    result = typescript.run_sync(SLOW_TO_READ, language="typescript", limits=Limits(wall_seconds=20, cpu_seconds=0.1))
    assert result.failure is not None
    assert result.failure.kind == "timeout"
    assert "nothing was run" in result.failure.message
    assert 0.1 < result.usage.cpu_seconds < patience(1.0)


@pytest.mark.anyio
async def test_removing_the_types_is_part_of_what_the_run_used(typescript: Sandbox) -> None:
    source = "const a: number[] = [];\n" + "a.push(1 as number);\n" * 3000 + "a.length"
    limits = Limits(memory_bytes=32 * 2**20)
    for result in (
        typescript.run_sync(source, language="typescript", limits=limits),
        await typescript.run(source, language="typescript", limits=limits),
    ):
        plain = typescript.run_sync(source.replace(": number[]", "").replace(" as number", ""), limits=limits)
        assert result.value == plain.value == 3000
        assert result.usage.cpu_seconds > plain.usage.cpu_seconds + 0.02
        assert result.usage.wall_seconds > plain.usage.wall_seconds + 0.02


def test_every_line_and_nearly_every_column_stays_where_it_is(typescript: Sandbox) -> None:
    source = "interface A {\n  x: number;\n}\nenum E {\n  A,\n  B,\n}\nconst a: A = { x: E.B };\nnull!.boom"
    failure = run(typescript, source).failure
    assert failure is not None
    assert (failure.line, failure.column) == (9, 1)
    assert "> 9 | null!.boom" in failure.excerpt


def test_an_error_points_into_the_authors_own_line(typescript: Sandbox) -> None:
    source = "type T = string;\nconst f = (x: T): never => { throw new Error(x as string) };\nf('no')"
    failure = run(typescript, source).failure
    assert failure is not None
    assert failure.line == 2
    assert failure.trace[0].startswith("f (line 2, column 40")
    assert "const f = (x: T): never =>" in failure.excerpt


@pytest.mark.parametrize(
    ("source", "line", "column", "words"),
    [
        ("const a: number = ;", 1, 19, "Expression expected."),
        ("let x = 1;\nconst y: = 2;", 2, 10, "Type expected."),
        ("class A {\n  @log m() {}\n}", 2, 3, "Decorators are not supported"),
        ("const a = 1;\nexport = a;", 2, 1, "`export =` is not supported"),
        ("enum E { [`a${1}`] = 1 }", 1, 1, "An enum's members have plain names"),
        ("class A {\n  accessor x = 1;\n}", 2, 3, "`accessor` is not supported"),
        ("const é = '😀'; const b: number = ;", 1, 34, "Expression expected."),
    ],
)
def test_what_can_not_be_read_or_written_as_javascript_is_a_syntax_failure(
    source: str, line: int, column: int, words: str, typescript: Sandbox
) -> None:
    failure = run(typescript, source).failure
    assert failure is not None
    assert (failure.kind, failure.line, failure.column) == ("syntax", line, column), str(failure)
    assert words in failure.message


def test_a_session_keeps_enums_and_classes(typescript: Sandbox) -> None:
    with typescript.session(language="typescript") as session:
        assert session.run_sync("enum Size { Small = 3 } const n: number = 4;").failure is None
        assert session.run_sync("(Size.Small as number) + n").value == 7


@pytest.mark.anyio
async def test_it_runs_in_an_event_loop(typescript: Sandbox) -> None:
    result = await typescript.run("import { add } from 'host:demo'; add(1, 2) as number", language="typescript")
    assert result.value == 3
    async with typescript.session(language="typescript") as session:
        assert (await session.run("type A = 1; const a: A = 1; a")).value == 1


def test_javascript_stays_as_it_is(typescript: Sandbox) -> None:
    failure = typescript.run_sync("const a: number = 1").failure
    assert failure is not None
    assert failure.kind == "syntax"


def test_without_the_image_only_typescript_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    find = engine.guest_image

    def guest_image(language: str) -> GuestImage | None:
        return None if language == "typescript" else find(language)

    monkeypatch.setattr(engine, "guest_image", guest_image)
    monkeypatch.setattr(engine, "_shared", None)
    with Sandbox() as sandbox:
        assert sandbox.run_sync("1 + 1").value == 2
        with pytest.raises(GuestImageError, match="has not been built"):
            sandbox.run_sync("1 as number", language="typescript")


def test_an_unknown_language_is_answered_with_the_known_ones(typescript: Sandbox) -> None:
    with pytest.raises(LanguageError, match="javascript or typescript or python"):
        typescript.run_sync("1", language="cobol")  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize(
    "value",
    [
        "null",
        "1",
        "{}",
        '{"syntax": [], "problems": [{}]}',
        '{"syntax": [], "problems": [], "code": 1}',
        '{"syntax": 1}',
    ],
)
def test_an_answer_that_is_none_is_refused(value: str) -> None:
    with pytest.raises(ValueError, match="the compiler's answer"):
        read_answer(RunResult(json.loads(value)))


@pytest.mark.anyio
async def test_text_that_looks_like_a_request_stays_text(typescript: Sandbox) -> None:
    source = '1 }) ; answer({"source": "` + "${" + \'"\u2028\\'
    answer = read_answer(await typescript.ask_compiler(request(source, "typescript")))
    assert isinstance(answer, Answer | Failure)
    assert not (isinstance(answer, Answer) and answer.code.startswith("1 })  ; answer"))
