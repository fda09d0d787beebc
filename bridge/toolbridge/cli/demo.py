"""`toolbridge demo`: the sandbox at work, in a few seconds."""

from __future__ import annotations

import sys
import time

import anyio
import click

from toolbridge import Limits, Sandbox
from toolbridge.cli.terminal import compile_notice, write

_TEMPERATURES = {"Oslo": 4, "Lisbon": 19, "Cairo": 27}


def convert(celsius: float) -> float:
    """A plain function."""
    return celsius * 9 / 5 + 32


async def temperature(city: str) -> int:
    """A coroutine function that takes its time, as a tool on the network would."""
    await anyio.sleep(0.2)
    if city not in _TEMPERATURES:
        raise ValueError(f"no such city: {city}")
    return _TEMPERATURES[city]


_PROGRAMS = (
    (
        "A program calls Python functions as a module, synchronously",
        """\
import { temperature, convert } from "host:demo";
const celsius = temperature("Oslo");
({ city: "Oslo", celsius, fahrenheit: convert(celsius) })""",
    ),
    (
        "… or all at once: three calls of 0.2 s take 0.2 s",
        """\
import { temperature } from "host:demo/async";
const cities = ["Oslo", "Lisbon", "Cairo"];
await Promise.all(cities.map((city) => temperature(city)))""",
    ),
    (
        "A mistake comes back as something to repair",
        """\
import * as demo from "host:demo";
const city = "Oslo";
demo.temprature(city)""",
    ),
    (
        "An endless loop is stopped",
        "while (true) {}",
    ),
    (
        "And there is nothing to steal",
        'require("fs").readFileSync("/etc/passwd")',
    ),
)


@click.command("demo")
def command() -> int:
    """See the sandbox at work: five small programs and what becomes of them."""
    modules = {"host:demo": {"temperature": temperature, "convert": convert}}
    with Sandbox(modules, limits=Limits(wall_seconds=1.0), on_compile=compile_notice) as sandbox:
        sandbox.run_sync("0")  # compiles the engine, the first time
        for title, source in _PROGRAMS:
            began = time.perf_counter()
            result = sandbox.run_sync(source)
            milliseconds = (time.perf_counter() - began) * 1000
            outcome = f"=> {result.value}" if result.failure is None else f"=> {result.failure.kind}: {result.failure}"
            text = "\n".join(f"    {line}" for line in f"{source}\n{outcome}".split("\n"))
            write(sys.stdout, f"{title}\n{text}\n    ({milliseconds:.1f} ms)\n\n")
    return 0
