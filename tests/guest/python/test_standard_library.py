"""The standard library in memory: every listed module can be imported."""

from __future__ import annotations

from toolbridge import Limits, Sandbox

ROOMY = Limits(memory_bytes=512 * 2**20, wall_seconds=60, cpu_seconds=60)
EXPECTED = {
    *(
        "argparse",
        "ast",
        "asyncio",
        "base64",
        "bisect",
        "calendar",
        "collections",
        "configparser",
        "contextlib",
        "copy",
    ),
    *("csv", "dataclasses", "datetime", "decimal", "difflib", "email.message", "enum", "fractions"),
    *("functools", "glob", "graphlib", "gzip", "hashlib", "heapq", "hmac", "html.parser", "http", "inspect", "io"),
    *("ipaddress", "json", "logging.config", "mimetypes", "numbers", "operator", "pathlib", "pickle", "pprint"),
    *(
        "random",
        "re",
        "sched",
        "secrets",
        "shlex",
        "sqlite3",
        "statistics",
        "string",
        "tarfile",
        "tempfile",
        "textwrap",
    ),
    *("timeit", "tomllib", "traceback", "types", "typing", "unittest", "urllib.parse", "uuid", "weakref"),
    *("xml.dom.minidom", "xml.etree.ElementTree", "zipfile", "zoneinfo"),
}


def test_every_module_that_the_image_claims_can_be_imported(sandbox: Sandbox) -> None:
    source = """
import importlib, sys
failed = {}
names = sys.modules["_toolbridge.standard_library"].library_modules()
for name in names:
    try: importlib.import_module(name)
    except BaseException as error: failed[name] = f"{type(error).__name__}: {error}"
[names, failed]
"""
    result = sandbox.run_sync(source, language="python", limits=ROOMY)
    assert result.failure is None, str(result.failure)
    names, failed = result.value
    assert failed == {}
    assert len(names) > 400
    assert set(names) >= EXPECTED


def test_every_time_zone_is_there(sandbox: Sandbox) -> None:
    source = """
import zoneinfo
names = zoneinfo.available_timezones()
for name in sorted(names): zoneinfo.ZoneInfo(name)
[len(names), "Europe/Oslo" in names]
"""
    result = sandbox.run_sync(source, language="python")
    assert result.failure is None, str(result.failure)
    assert result.value[0] > 400
    assert result.value[1] is True


def test_a_zone_that_isn_t_there_is_said_to_be_missing(sandbox: Sandbox) -> None:
    failure = sandbox.run_sync("import zoneinfo\nzoneinfo.ZoneInfo('Mars/Base')", language="python").failure
    assert failure is not None
    assert "No time zone found with key Mars/Base" in failure.message


def test_no_file_of_the_build_is_named(sandbox: Sandbox) -> None:
    source = "import json, sys\n[sys.path, sys.prefix, json.__spec__.origin, sys.argv]"
    value = sandbox.run_sync(source, language="python").value
    assert value[0] == []
    assert value[3] == ["main.py"]
    assert "home" not in str(value)
    assert "build" not in str(value)
