"""Entry point of the Python guest, from which componentize-py makes the image (recipe.py).

Importing this module, when the image is made, does all the work that doesn't depend on a program.
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
"""A reserve, freed when memory runs out: writing the failure takes some."""
_RUN_FIELDS = {"wire": int, "source": str, "file": str, "seed": str, "stack": int}


def _is_run_frame(frame: dict[str, Any]) -> bool:
    """Returns whether a frame has exactly the fields of a run frame, with their types, and this wire version."""
    return (
        type(frame) is dict
        and frame.keys() == _RUN_FIELDS.keys()
        and all(type(frame[name]) is kind for name, kind in _RUN_FIELDS.items())
        and frame["wire"] == wire.WIRE_VERSION
    )


def _outcome(frame: dict[str, Any]) -> str:
    """Runs the program of a run frame and returns the outcome frame; `{"wire":0}` for another frame."""
    if not _is_run_frame(frame):
        return '{"wire":0}'
    file = frame["file"]
    if not _spare:  # freed by the session's last run
        with contextlib.suppress(MemoryError):
            _spare.extend(bytes(_SPARE_BYTES))
    wire.forget_pending_calls()
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
    """Encodes the outcome of a failed run; if memory ran out, frees the reserve first."""
    if isinstance(error, MemoryError):
        _spare.clear()
        kind = kind if program.is_too_deep(error) else "out_of_memory"
    try:
        return wire.dumps({"wire": wire.WIRE_VERSION, "failure": failures.failure(error, file, kind=kind)})
    except BaseException:  # out of memory, or a hostile error: the name alone
        plain = {"kind": kind, "error": {"name": type(error).__name__, "message": "", "stack": ""}}
        return wire.dumps({"wire": wire.WIRE_VERSION, "failure": plain})


class WitWorld(wit_world.WitWorld):
    """The exports of guest.wit."""

    def run(self, frame: str) -> str:
        """Runs the program of a run frame, blocking, and returns the outcome frame, also for its exceptions."""
        try:
            return wire.printable(_outcome(wire.loads(frame)))
        except MemoryError as error:  # for reading the program, or for writing its value
            return _failed(error, "", "out_of_memory")


def _prepare() -> None:
    """Does all work before any program, once, as the image is made: library, denials, warm-up, memory layout."""
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
    """Replaces random.seed for its first call, by the component's start, which would draw 2,500 random bytes in vain.

    Restores random.seed. Each run is seeded by the host.
    """
    random.seed = random._inst.seed  # type: ignore[attr-defined]  # pyright: ignore
    if arguments or named:
        random.seed(*arguments, **named)


def _import_what_programs_use() -> None:
    """Imports common modules while the image is made."""
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
    """Runs a few programs, so that their lazily created objects are in the image.

    Repeatedly, so that the interpreter has specialised the runner's own code (PEP 659), and no run pays for that.
    """
    log, wire.log = wire.log, _keep_silent
    world = WitWorld()
    for source in _PROGRAMS:
        request = {"wire": wire.WIRE_VERSION, "source": source, "file": "main.py", "seed": "5a" * 32, "stack": 1}
        frame = wire.dumps(request)
        for _ in range(_TIMES):
            world.run(frame)
            sys.modules.pop("__main__", None)
        output.begin_anew()
    wire.log = log


def _keep_silent(channel: int, text: str) -> None:
    del channel, text


_prepare()
