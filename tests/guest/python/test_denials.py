"""Denials: missing modules and functions raise errors with advice."""

from __future__ import annotations

import pytest

from toolbridge import Sandbox


def message_of(sandbox: Sandbox, source: str) -> str:
    failure = sandbox.run_sync(source, language="python").failure
    assert failure is not None
    assert failure.kind == "raised", str(failure)
    return failure.message


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("import requests", "There is no network here: call a tool of a host module"),
        ("import httpx", "There is no network here"),
        ("from bs4 import BeautifulSoup", "Use html.parser"),
        ("import typing_extensions", "Use typing"),
        ("import numpy as np", "Only the standard library is here: use statistics"),
        ("import pandas", "Only the standard library is here"),
        ("import yaml", "use json, csv, tomllib or configparser"),
        ("import pytz", "zoneinfo.ZoneInfo"),
        ("from dateutil import parser", "datetime.fromisoformat()"),
        ("import multiprocessing", "There are no processes here"),
        ("import ctypes", "can't be reached from here"),
        ("import tkinter", "There is no user"),
        ("import lzma", "there is zlib"),
        ("import left_pad", "no other package"),
        ("import ssl", "There is no network here"),
        ("open('x.txt')", "PermissionError: There are no files here"),
        ("open('x.txt', 'w')", "There are no files here"),
        ("import pathlib\npathlib.Path('x').write_text('y')", "There are no files here"),
        ("import pathlib\npathlib.Path('x').read_text()", "There are no files here"),
        ("import os\nos.makedirs('a/b')", "PermissionError: There are no files here"),
        ("import pathlib\npathlib.Path('a').mkdir(exist_ok=True)", "There are no files here"),
        ("import os\nos.remove('x')", "There are no files here: keep data in variables"),
        ("import os\nos.rename('x', 'y')", "There are no files here"),
        ("import os\nos.listdir()", "There are no files here"),
        ("import os\nos.stat('x')", "use io.StringIO and io.BytesIO: 'x'"),
        ("import pathlib\nlist(pathlib.Path('.').iterdir())", "There are no files here"),
        ("import tempfile\ntempfile.NamedTemporaryFile()", "PermissionError: There are no files here"),
        ("import tempfile\ntempfile.TemporaryDirectory()", "There are no files here"),
        (
            "import sqlite3\nsqlite3.connect('a.db')",
            "OperationalError: unable to open database file. There is no database",
        ),
        ("import http.client\nhttp.client.HTTPSConnection('x')", "There is no network here: call a tool"),
        ("import os\nos.environ['HOME']", "KeyError: 'HOME'. There are no environment variables here: put the value"),
        ("input('name? ')", "There is no user inside a run"),
        ("breakpoint()", "There is no user"),
        ("help(print)", "dir(module) lists its names"),
        ("import os\nos.system('ls')", "There are no processes here"),
        ("import subprocess\nsubprocess.check_output(['ls'])", "There are no processes here"),
        ("import threading\nthreading.Thread(target=print).start()", "use parallel() from host.bridge"),
        (
            "from concurrent.futures import ThreadPoolExecutor\nlist(ThreadPoolExecutor().map(str, [1]))",
            "use parallel() from host.bridge",
        ),
        ("from concurrent.futures import ProcessPoolExecutor", "There are no threads here"),
        ("import socket\nsocket.create_connection(('example.org', 80))", "There is no network here"),
        ("import urllib.request\nurllib.request.urlopen('http://example.org')", "There is no network here"),
        ("import urllib.request\nurllib.request.urlopen('https://example.org')", "There is no network here"),
        ("import asyncio\nawait asyncio.create_subprocess_exec('ls')", "There are no processes here"),
        (
            "import http.client\nhttp.client.HTTPConnection('example.org').request('GET', '/')",
            "There is no network here",
        ),
        ("import asyncio\nawait asyncio.open_connection('example.org', 80)", "There is no network here"),
        ("import threading\nthreading.Event().wait()", "deadlock: "),
        ("import queue\nqueue.Queue().get()", "deadlock: "),
        ("import os\nos.write(1, b'x')", "There are no files here"),
    ],
)
def test_the_message_names_an_alternative(sandbox: Sandbox, source: str, said: str) -> None:
    assert said in message_of(sandbox, source)


def test_locks_and_queues_that_needn_t_wait_work(sandbox: Sandbox) -> None:
    source = """
import queue, threading
lock, again, event, q = threading.Lock(), threading.RLock(), threading.Event(), queue.Queue()
with lock: found = [lock.locked(), lock.acquire(blocking=False), lock.acquire(timeout=0.01)]
with again, again: pass
event.set(); q.put(1); q.put(2)
[*found, lock.locked(), event.wait(), q.get(), q.get(timeout=1), q.empty(), threading.Event().wait(0.01)]
"""
    result = sandbox.run_sync(source, language="python")
    assert result.failure is None, str(result.failure)
    assert result.value == [True, False, False, False, True, 1, 2, True, False]


def test_standard_input_is_empty(sandbox: Sandbox) -> None:
    assert sandbox.run_sync("import sys\n[sys.stdin.read(), list(sys.stdin)]", language="python").value == ["", []]


@pytest.mark.parametrize(
    ("source", "value"),
    [
        (
            "import os\n[os.path.exists('x'), os.path.isdir('/'), os.access('x', os.R_OK), os.getenv('HOME', 'none')]",
            [False, False, False, "none"],
        ),
        ("import os\ntry:\n    os.remove('x')\nexcept FileNotFoundError:\n    result = 'gone'", "gone"),
        ("import glob, os\nlen(glob.glob('*')) + len(list(os.walk('.')))", 0),
        ("import sqlite3\nsqlite3.connect(':memory:').execute('select 1').fetchall()", [[1]]),
        ("import tempfile\nwith tempfile.SpooledTemporaryFile() as file:\n    result = file.write(b'abc')", 3),
        ("import http.client\n[hasattr(http.client, 'HTTPSConnection'), hasattr(http.client, 'OK')]", [False, True]),
    ],
)
def test_a_program_that_only_looks_goes_on(source: str, value: object, sandbox: Sandbox) -> None:
    result = sandbox.run_sync(source, language="python")
    assert result.value == value, str(result.failure)
