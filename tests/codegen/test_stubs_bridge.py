"""The stubs of `host:bridge`: errors, handles and parallel calls, as the checkers see them."""

from __future__ import annotations

from pathlib import Path

import pytest

from codegen import checkers
from codegen.hand_models import STRING, forecast, function, module
from toolbridge_codegen.emit.dts import emit_dts
from toolbridge_codegen.emit.pyi import emit_aio_pyi, emit_pyi
from toolbridge_codegen.model import ArrayType, MapType
from toolbridge_codegen.stubs import bridge_dts, bridge_pyi

MODEL = forecast()
OTHER = module(
    function("names", returned=ArrayType(STRING)),
    function("echo", MapType(STRING), STRING, optional=True),
    server="other",
)

TYPESCRIPT = """\
import { parallel, ToolError, ToolTimeoutError, ToolDeniedError, Handle } from "host:bridge";
import { get_forecast } from "host:mcp-weather";
import { get_forecast as forecastLater } from "host:mcp-weather/async";
import { names, echo } from "host:mcp-other";
const [weather, list, text] = parallel([[get_forecast, { location: "Oslo" }], [names], [echo, { a: "b" }]]);
export const first: [number[], string[], string] = [weather.celsius, list, text];
const cities = ["Oslo", "Rome"];
export const many: string[] = parallel(cities.map((location) => [get_forecast, { location }])).map((each) => each.text);
const calls = [];
for (const location of cities) calls.push([get_forecast, { location }] as const);
export const later: number = parallel(calls)[0].celsius[0];
export const none: number = parallel([]).length;
export const awaited: number[] = parallel([[forecastLater, { location: "Oslo" }]], { limit: 2 })[0].celsius;
const mixed = parallel([[get_forecast, { location: "Oslo" }], [names]], { errors: "collect", limit: 5 });
export const collected: number[] = mixed[0] instanceof ToolError ? [] : mixed[0].celsius;
try { names(); } catch (error) {
  if (error instanceof ToolError && error.kind === "timeout") console(error.server, error.tool, error.message);
  if (error instanceof ToolTimeoutError || error instanceof ToolDeniedError) console(error.kind, error.tool);
  else if (error instanceof ToolError) console(error.kind, error.server);
}
declare function console(...text: string[]): void;
declare const handle: Handle;
export const bytes: Uint8Array = handle.slice(0, 100).bytes();
export const value: string = handle.json().anything + handle.text() + handle.mime + handle.size + (handle.name ?? "");
parallel([[get_forecast, { locatio: "Oslo" }]]);
parallel([[get_forecast]]);
parallel([[names], [echo]])[2];
parallel([[get_forecast, { location: "Oslo" }]])[0].nothing;
new ToolError("x").kind === "timeouts";
handle.size = 3;
new Handle();
parallel([[names]], { errors: "collect" })[0].length;
parallel([[names]], { concurrency: 3 });
parallel([[names]], { errors: "return" });
"""
TYPESCRIPT_BAD = 25

PYTHON = """\
from host.bridge import Handle, ToolError, ToolTimeoutError, parallel
from host.mcp_other import echo, names
from host.mcp_weather import get_forecast
many: list[str] = [each["text"] for each in parallel([(get_forecast, {"location": city}) for city in ("Oslo", "Rome")])]
mixed = parallel([(get_forecast, {"location": "Oslo"}), (names, {}), (echo, {"a": "b"})])
count = len(mixed)
lists = parallel([[get_forecast, {"location": "Oslo"}], [names, {}]])
lists[0]["text"]
few: list[str] = [each["text"] for each in parallel([(get_forecast, {"location": "Oslo"})], limit=5)]
tried = parallel([(get_forecast, {"location": "Oslo"})], errors="collect")
texts: list[str] = [each.message if isinstance(each, ToolError) else each["text"] for each in tried]
def read(handle: Handle) -> bytes:
    try:
        names()
    except ToolError as error:
        if error.kind == "timeout":
            print(error.server, error.tool, error.message)
        if isinstance(error, ToolTimeoutError):
            raise
    print(handle.json(), handle.text(), handle.mime, handle.size + 1, handle.name or "")
    return handle.slice(0, 100).bytes()
parallel([(get_forecast, {"location": "Oslo"})])[0]["nothing"]
parallel(get_forecast)
parallel([3])
ToolError("x").kinds
parallel([(names, {})], errors="collect")[0].append("x")
parallel([(names, {})], concurrency=3)
"""
PYTHON_BAD = 22


def test_typescript_knows_the_results_of_parallel_calls_in_their_order(tmp_path: Path) -> None:
    specifiers = ["host:mcp-weather", "host:mcp-other"]
    files = {"a.d.ts": emit_dts(MODEL), "b.d.ts": emit_dts(OTHER), "bridge.d.ts": bridge_dts(specifiers)}
    checkers.write_files(tmp_path, {**files, "program.ts": TYPESCRIPT})
    found = [problem.line for problem in checkers.run_tsc(tmp_path)]
    assert found == list(range(TYPESCRIPT_BAD, TYPESCRIPT.count("\n") + 1))


@pytest.mark.parametrize("checker", ["pyright", "mypy"])
def test_python_knows_the_results_of_parallel_calls(tmp_path: Path, checker: str) -> None:
    files = {"host/__init__.pyi": "", "host/bridge.pyi": bridge_pyi(), "program.py": PYTHON}
    for model in (MODEL, OTHER):
        package = f"host/mcp_{model.spec.server}"
        files |= {f"{package}/__init__.pyi": emit_pyi(model), f"{package}/aio.pyi": emit_aio_pyi(model)}
    checkers.write_files(tmp_path, files)
    problems = checkers.run_pyright(tmp_path) if checker == "pyright" else checkers.run_mypy(tmp_path)
    assert sorted({problem.line for problem in problems}) == list(range(PYTHON_BAD, PYTHON.count("\n") + 1))


def test_require_is_typed_for_the_modules_that_there_are() -> None:
    text = bridge_dts(["host:mcp-weather"])
    assert '  (id: "host:mcp-weather"): typeof import("host:mcp-weather");\n' in text
    assert '  (id: "host:mcp-weather/async"): typeof import("host:mcp-weather/async");\n' in text
    assert bridge_dts() == bridge_dts([])
