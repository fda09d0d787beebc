"""Frames that a guest must not take: of another version, with a field too many, too few or of another type."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from toolbridge import Sandbox
from toolbridge.boundary.host_call import Reply
from toolbridge.sandbox import execution
from toolbridge.sandbox.outcome import SandboxLanguage

RUN = Path(__file__).resolve().parent.parent.parent / "fixtures" / "wire" / "run.json"
LANGUAGES: tuple[SandboxLanguage, ...] = ("javascript", "python")
ODD_FIELDS: dict[str, dict[str, Any]] = {
    "another version": {"wire": 2},
    "a version in words": {"wire": "1"},
    "no version": {"wire": None},
    "an unknown field": {"surprise": 1},
    "a source that is no text": {"source": 5},
    "no source": {"source": None},
    "a seed that is no text": {"seed": 5},
    "a file that is no text": {"file": []},
    "a stack in words": {"stack": "much"},
}


def use_run_frames(monkeypatch: pytest.MonkeyPatch, changes: dict[str, Any]) -> None:
    """Runs begin with the golden run frame, with another program and some fields changed; None takes one away."""
    golden = json.loads(json.loads(RUN.read_text(encoding="utf-8"))["frame"])
    fields = {**golden, "source": "1 + 1", **changes}
    frame = json.dumps({name: value for name, value in fields.items() if value is not None}).replace(" ", "")

    def encode(_frame: object) -> bytes:
        return frame.encode()

    monkeypatch.setattr(execution, "encode_run", encode)


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_golden_run_frame_is_taken(
    language: SandboxLanguage, sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    sandbox.run_sync("1", language=language)  # an image that has to be compiled is tried with frames, too
    use_run_frames(monkeypatch, {})
    assert sandbox.run_sync("", language=language).value == 2


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("odd", ODD_FIELDS)
def test_a_run_frame_that_the_wire_does_not_allow_is_refused(
    odd: str, language: SandboxLanguage, sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    sandbox.run_sync("1", language=language)
    with monkeypatch.context() as patches:
        use_run_frames(patches, ODD_FIELDS[odd])
        failure = sandbox.run_sync("", language=language).failure
    assert failure is not None
    assert failure.kind == "protocol"
    assert sandbox.run_sync("6 * 7", language=language).value == 42


IMPORTS: dict[SandboxLanguage, str] = {
    "javascript": 'import { odd } from "host:demo"; odd()',
    "python": "from host.demo import odd\nodd()",
}
IMPORTS_TO_AWAIT: dict[SandboxLanguage, str] = {
    "javascript": 'import { odd } from "host:demo/async"; await odd()',
    "python": "from host.demo.aio import odd\nawait odd()",
}


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("program", [IMPORTS, IMPORTS_TO_AWAIT], ids=["waited for", "started"])
@pytest.mark.parametrize(
    "frame", [b'{"error":{"kind":"failed","message":"x"},"more":1}', b'{"handles":[],"ok":1,"more":1}']
)
def test_a_reply_with_an_unknown_field_is_refused(
    frame: bytes, program: dict[SandboxLanguage, str], language: SandboxLanguage
) -> None:
    with Sandbox({"host:demo": {"odd": lambda: Reply(frame)}}) as sandbox:
        failure = sandbox.run_sync(program[language], language=language).failure
    assert failure is not None
    assert "the host's reply has unknown fields" in failure.message
