"""The Python image is tried before it is used: one that could block its host, or has other clocks, is refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from toolbridge import Failure
from toolbridge.boundary import component_imports
from toolbridge.errors import EngineError
from toolbridge.sandbox import component_instance as component_check
from toolbridge.sandbox.compile_cache import CompileCache
from toolbridge.sandbox.component_instance import ComponentImage, check_component
from toolbridge.sandbox.engine import Engine, shared_engine
from toolbridge.sandbox.outcome import RunResult


def test_the_image_that_we_have_passes() -> None:
    check_component(shared_engine(), shared_engine().python_image())


def answering(monkeypatch: pytest.MonkeyPatch, **answers: RunResult) -> None:
    """As if the image gave these results instead of its own; by the name of the program."""
    run = component_check._run
    programs = {getattr(component_check, name): answer for name, answer in answers.items()}

    def answer(engine: Engine, image: ComponentImage, source: str) -> RunResult:
        return programs[source] if source in programs else run(engine, image, source)

    monkeypatch.setattr(component_check, "_run", answer)


@pytest.mark.parametrize("result", [RunResult(), RunResult(failure=Failure("timeout", "The run took longer."))])
def test_an_image_that_can_block_its_host_is_refused(result: RunResult, monkeypatch: pytest.MonkeyPatch) -> None:
    answering(monkeypatch, _SLEEP=result)
    with pytest.raises(EngineError, match="failed to keep the python guest image from blocking its host"):
        check_component(shared_engine(), shared_engine().python_image())


def test_an_image_that_asks_for_another_version_of_the_system_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = shared_engine()
    component = engine.python_image().component
    other: dict[str, Any] = {
        name.replace("clocks/wall-clock@0.2", "clocks/wall-clock@0.3"): functions
        for name, functions in component_imports._callbacks.items()
    }
    monkeypatch.setattr(component_imports, "_callbacks", other)
    with pytest.raises(EngineError, match=r"clocks and random numbers: .*the system for"):
        check_component(engine, ComponentImage(engine.pointer, component))


def test_code_that_did_not_pass_is_neither_used_nor_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = Engine(CompileCache(tmp_path / "cache"))
    compiled: list[int] = []

    def refuse(component: int) -> None:
        compiled.append(component)
        raise EngineError("try the image", "no")

    def take_the_shared_one(*_arguments: object) -> int:
        return shared_engine().python_image().component

    monkeypatch.setattr(engine, "_compile", take_the_shared_one)
    monkeypatch.setattr(engine, "_check_python", refuse)
    with pytest.raises(EngineError, match="try the image"):
        engine.python_image()
    assert compiled
    assert not engine.is_ready("python")
    assert [path for path in (tmp_path / "cache").iterdir() if path.suffix == ".cwasm"] == []


def test_what_a_run_answered_is_in_the_error(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = replace(RunResult(), value=[0, True, 8])
    answering(monkeypatch, _CLOCKS_AND_RANDOM=wrong)
    with pytest.raises(EngineError, match=r"\[0, True, 8\]"):
        check_component(shared_engine(), shared_engine().python_image())
