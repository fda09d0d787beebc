"""A line that is no message is answered with an error, and what comes after it is served."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import httpx2
import pytest

from cli.projects import COMMAND, Project
from serve.http_service import HEADERS, http_service_of, message, open_session
from toolbridge.serve.stdio import refusal_of

HALF = rb'{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"run_code","arguments":{"code":"\"\ud800\""}}}'


def answered(line: bytes) -> tuple[Any, int] | None:
    refused = refusal_of(line)
    return refused and (refused.id, refused.error.code)


@pytest.mark.parametrize(
    ("line", "answer"),
    [
        (HALF, (2, -32700)),
        (b'{"jsonrpc":"2.0","id":"a","method":"x","params":{"a":"\xff"}}', ("a", -32700)),
        (rb'{"jsonrpc":"2.0","id":"\udfff","method":"ping"}', (None, -32700)),
        (b"garbage", (None, -32700)),
        (b"[" * 100_000, (None, -32700)),
        (b"[]", (None, -32600)),
        (b'{"jsonrpc":"2.0","id":7}', (7, -32600)),
        (b'{"jsonrpc":"2.0","id":8,"method":5}', (8, -32600)),
        (b'{"jsonrpc":"2.0","id":true,"method":5}', (None, -32600)),
        (b'{"id":9,"method":"ping"}', (9, -32600)),
        (b'{"jsonrpc":"2.0","method":5}', None),
        (b'{"jsonrpc":"2.0","id":3,"result":5}', None),
        (rb'{"jsonrpc":"2.0","id":3,"error":{"code":1,"message":"\ud800"}}', None),
    ],
    ids=lambda value: ascii(value[:40]) if isinstance(value, bytes) else None,
)
def test_whoever_waits_for_an_answer_gets_one(line: bytes, answer: tuple[Any, int] | None) -> None:
    assert answered(line) == answer


def test_over_stdin_the_next_request_is_served(tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.configure({})
    about = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}}
    lines = [
        message("initialize", about, 1),
        message("notifications/initialized", number=None),
        HALF,
        b"garbage",
        b"x" * (17 * 2**20),
        message("ping", number=3),
    ]
    process = subprocess.Popen(
        [*COMMAND, "serve"],
        cwd=project.directory,
        env=project.environ,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    with process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b"\n".join(lines) + b"\n")
        process.stdin.flush()
        answers = [json.loads(process.stdout.readline()) for _ in range(5)]
        process.stdin.close()
    assert {answer["id"] for answer in answers} == {1, 2, None, 3}
    assert [answer["error"]["code"] for answer in answers if "error" in answer] == [-32700, -32700, -32600]
    assert "surrogate" in next(answer["error"]["message"] for answer in answers if answer["id"] == 2)


@pytest.mark.anyio
async def test_over_http_the_next_request_is_served(tmp_path: Path) -> None:
    async with http_service_of(tmp_path) as service, httpx2.AsyncClient(timeout=30) as http:
        headers = {**HEADERS, "mcp-session-id": await open_session(http, service.url)}
        answer = await http.post(service.url, content=HALF, headers=headers)
        assert answer.status_code == 400
        assert answer.json()["error"]["code"] == -32700
        assert (await http.post(service.url, content=message("ping"), headers=headers)).status_code == 200
