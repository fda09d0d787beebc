"""The end of a server's stderr: bounded, and the line that tells most."""

from __future__ import annotations

import pytest

from toolbridge.servers.inbound import LineProblems
from toolbridge.servers.stdio.process import StderrTail


def last_words(*chunks: bytes) -> str:
    tail = StderrTail()
    for chunk in chunks:
        tail.add(chunk)
    return tail.last_words()


NODE = b"""node:internal/modules/cjs/loader:1228
  throw err;
  ^

Error: Cannot find module '/srv/index.js'
    at Module._resolveFilename (node:internal/modules/cjs/loader:1225:15)
    at handleError (node:internal/modules/cjs/error:1:1)
    at node:internal/main/run_main_module:36:49 {
  code: 'MODULE_NOT_FOUND',
  requireStack: []
}

Node.js v22.12.0
"""
NPM = b"""npm error code E404
npm error 404 Not Found - GET https://registry/server-wether
npm error A complete log of this run can be found in: /home/me/.npm/_logs/debug-0.log
"""
NPM_404 = b"""npm warn Unknown user config "x". See `npm help npmrc` for supported config options.
npm error code E404
npm error 404 Not Found - GET https://registry/server-wether
npm error 404
npm error 404  The requested resource 'server-wether@*' could not be found or you do not have permission to access it.
npm error 404
npm error 404 Note that you can also install from a
npm error 404 tarball, folder, http url, or git url.
npm error A complete log of this run can be found in: /home/me/.npm/_logs/debug-0.log
"""
NPM_VERSION = b"""npm error code ETARGET
npm error notarget No matching version found for server-weather@99.
npm error notarget In most cases you or one of your dependencies are requesting a package version that doesn't exist.
npm error A complete log of this run can be found in: /home/me/.npm/_logs/debug-0.log
"""
PYTHON = b"""Traceback (most recent call last):
  File "server.py", line 1, in <module>
    import wether
ModuleNotFoundError: No module named 'wether'
"""


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"", ""),
        (b"\n \r\n", ""),
        (b"one\ntwo\n", "two"),
        (b"unended", "unended"),
        (NODE, "Error: Cannot find module '/srv/index.js'"),
        (NPM, "npm error 404 Not Found - GET https://registry/server-wether"),
        (NPM_404, next(line for line in NPM_404.decode().splitlines() if "could not be found" in line)),
        (NPM_VERSION, "npm error notarget No matching version found for server-weather@99."),
        (PYTHON, "ModuleNotFoundError: No module named 'wether'"),
        (b"caf\xe9 \xff error\n", "caf\ufffd \ufffd error"),
    ],
)
def test_the_line_that_tells_most_is_the_last_that_speaks_of_an_error(text: bytes, words: str) -> None:
    assert last_words(text) == words


def test_chunks_may_be_cut_anywhere() -> None:
    assert last_words(*(PYTHON[at : at + 1] for at in range(len(PYTHON)))) == last_words(PYTHON)


def test_a_flood_leaves_a_few_kilobytes() -> None:
    tail = StderrTail()
    for _ in range(1_000):
        tail.add(b"x" * 65_536)
    assert len(tail._tail) == 8192
    tail.add(b"\nthe end\n")
    assert tail.last_words() == "the end"


def test_a_secret_is_known_by_its_last_line_and_by_its_end() -> None:
    secret = "ghp_16C7e42F292c6912E7710c838347Ae178B4a"
    tail = StderrTail()
    tail.add(f"starting\nbad token {secret}\n".encode())
    assert tail.last_words(frozenset([secret])) == "bad token ***"
    tail.add((secret + "x" * 4090).encode())
    assert secret[-10:] not in tail.last_words(frozenset([secret]))


def test_a_secret_is_known_by_the_last_line_that_is_no_message() -> None:
    secret = "ghp_16C7e42F292c6912E7710c838347Ae178B4a"
    problems = LineProblems()
    problems.add_line(b"starting")
    problems.add_line(f"token: {secret}".encode())
    assert problems.summary(frozenset([secret])).endswith("the last: token: ***")
    for _ in range(1000):
        problems.add_line(b"x" * 5000)
    assert len(problems.recent) <= 3000
