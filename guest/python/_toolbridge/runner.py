"""The Python guest's entry: what componentize-py makes the image from (recipe.py).

All that can be done before a program is known is done while this module is imported, when the image is made.
"""

from __future__ import annotations

import _random
import contextlib
import gc
import importlib.machinery
import os
import random
import sys
from typing import Any

import wit_world

from . import denials, event_loop, failures, host_modules, image_memory, output, program, standard_library, values, wire

_SPARE_BYTES = 512 * 1024
_spare = bytearray(_SPARE_BYTES)
"""Given back when memory runs out, because telling the host of that takes some."""
_RUN_FIELDS = {"wire": int, "source": str, "file": str, "seed": str, "stack": int}


def _is_run_frame(frame: dict[str, Any]) -> bool:
    return (
        type(frame) is dict
        and frame.keys() == _RUN_FIELDS.keys()
        and all(type(frame[name]) is kind for name, kind in _RUN_FIELDS.items())
        and frame["wire"] == wire.WIRE_VERSION
    )


def _outcome(frame: dict[str, Any]) -> str:
    """Runs the program of a run frame: the outcome frame."""
    if not _is_run_frame(frame):
        return '{"wire":0}'
    file = frame["file"]
    if not _spare:  # the session's last run gave it back
        with contextlib.suppress(MemoryError):
            _spare.extend(bytes(_SPARE_BYTES))
    wire.forget_started()
    output.renew()
    if not sys.argv:  # the component's own start has cleared it
        sys.argv.append(file)
    _random.Random.seed(random._inst, int(frame["seed"], 16))  # type: ignore[attr-defined]  # pyright: ignore
    kind = "syntax"
    try:
        ready = program.compiled(frame["source"], file)
        kind = "raised"
        value = program.run(ready)
        return _succeeded(None if value is program.NoValue else values.value_text(value))
    except SystemExit as error:
        return _failed(error, file, kind) if error.code else _succeeded(None)
    except BaseException as error:
        return _failed(error, file, kind)
    finally:
        output.flush()


def _succeeded(value: str | None) -> str:
    return f'{{"wire":{wire.WIRE_VERSION}}}' if value is None else f'{{"wire":{wire.WIRE_VERSION},"value":{value}}}'


def _failed(error: BaseException, file: str, kind: str) -> str:
    if isinstance(error, MemoryError):
        _spare.clear()
        kind = kind if program.is_too_deep(error) else "out_of_memory"
    try:
        return wire.dumps({"wire": wire.WIRE_VERSION, "failure": failures.failure(error, file, kind=kind)})
    except BaseException:  # there is no memory, or a hostile error: the name alone
        plain = {"kind": kind, "error": {"name": type(error).__name__, "message": "", "stack": ""}}
        return wire.dumps({"wire": wire.WIRE_VERSION, "failure": plain})


class WitWorld(wit_world.WitWorld):
    """The world of guest.wit."""

    def run(self, frame: str) -> str:
        """Runs a program."""
        try:
            return wire.printable(_outcome(wire.loads(frame)))
        except MemoryError as error:  # for reading the program, or for writing its value
            return _failed(error, "", "out_of_memory")


def _prepare() -> None:
    standard_library.read_library()
    zones = next((path for path in sys.path if os.path.isdir(f"{path}/tzdata/zoneinfo")), None)
    if zones is None:
        raise RuntimeError("the tzdata package is not there")
    standard_library.read_zones(f"{zones}/tzdata/zoneinfo")
    _import_what_programs_use()
    sys.meta_path.insert(0, host_modules.HostFinder())
    sys.meta_path.insert(0, standard_library.MemoryFinder())
    sys.meta_path[:] = [each for each in sys.meta_path if each is not importlib.machinery.PathFinder]
    sys.meta_path.append(denials.MissingModules())
    event_loop.install()
    denials.install()
    sys.addaudithook(program.BlockGuard())
    _warm_up()
    sys.path[:] = []
    sys.path_importer_cache.clear()
    sys.path_hooks.clear()
    random.seed = _first_seed
    gc.collect()
    image_memory.list_objects()
    gc.freeze()
    image_memory.fill_holes()


def _first_seed(*arguments: Any, **named: Any) -> None:
    """In place of random.seed until it is called: the component's own start does so, for 2,500 random bytes.

    Each run is seeded by the host, so they would be for nothing.
    """
    random.seed = random._inst.seed  # type: ignore[attr-defined]  # pyright: ignore
    if arguments or named:
        random.seed(*arguments, **named)


def _import_what_programs_use() -> None:
    """Paid once, when the image is made."""
    for name in (
        *("base64", "bisect", "calendar", "collections", "contextlib", "copy", "csv", "dataclasses", "datetime"),
        *("decimal", "difflib", "enum", "fractions", "functools", "hashlib", "heapq", "html", "inspect", "io"),
        *("itertools", "json", "logging", "math", "operator", "pathlib", "pprint", "random", "re", "secrets"),
        *("statistics", "string", "struct", "textwrap", "time", "traceback", "types", "typing", "unicodedata"),
        *("urllib.parse", "uuid", "zoneinfo", "asyncio", "threading", "socket", "select", "signal", "subprocess"),
        *("collections.abc", "warnings", "weakref", "queue", "abc", "numbers", "hmac", "binascii", "zlib"),
    ):
        __import__(name)


_PROGRAMS = (
    "import json\nx = [i * i for i in range(10)]\nprint(json.dumps(x), f'{x[0]:>5}')\nx",
    "def f():\n  raise ValueError('x')\nf()",
    "import re\nfrom datetime import date\n[f'{date(2026, 1, int(n))}' for n in re.findall('[0-9]+', '1 2')]",
    "from dataclasses import dataclass\n@dataclass\nclass C:\n  x: int\nsorted([C(2), C(1)], key=lambda c: c.x)",
    "import asyncio\nasync def m():\n  await asyncio.sleep(0)\n  return 1\nawait m()",
    "1 +* 2",
    "undefined_name",
    "1 + 1",
)
_TIMES = 50


def _warm_up() -> None:
    """Runs a few programs, so that what they make on their first run is in the image.

    Often, so that the interpreter has adapted to our own code, and no run pays for that.
    """
    log, wire.log = wire.log, _keep_silent
    world = WitWorld()
    for source in _PROGRAMS:
        told = {"wire": wire.WIRE_VERSION, "source": source, "file": "main.py", "seed": "5a" * 32, "stack": 1}
        frame = wire.dumps(told)
        for _ in range(_TIMES):
            world.run(frame)
            sys.modules.pop("__main__", None)
        output.begin_anew()
    wire.log = log


def _keep_silent(channel: int, text: str) -> None:
    del channel, text


_prepare()
