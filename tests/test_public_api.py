"""What `import toolbridge` offers, and what it costs."""

from __future__ import annotations

import copy
import importlib
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
from docs import python_api

import toolbridge
from toolbridge.errors import reports_misuse

api: Any = toolbridge
"""Without types, for calls that a type checker would refuse."""

MODULES = ("approval", "errors", "events", "pins", "plugins", "prompt")
HEAVY = ["anyio", "asyncio", "click", "mcp", "pluggy", "pydantic", "rich", "trio", "wasmtime"]

REPORT_IMPORTS = f"print('imported:', *sorted(set(sys.modules) & set({HEAVY!r})), file=sys.stderr)"


def names() -> list[str]:
    return [name for name in api.__all__ if not name.startswith("_")]


def imported_by(statements: str, standard_input: str = "") -> tuple[set[str], str]:
    """Which of the heavy modules a new interpreter has imported after some statements, and their output."""
    script = f"import sys\n{statements}\n{REPORT_IMPORTS}"
    done = subprocess.run(
        [sys.executable, "-c", script], input=standard_input, capture_output=True, encoding="utf-8", check=True
    )
    report = [line for line in done.stderr.splitlines() if line.startswith("imported:")]
    assert len(report) == 1
    return set(report[0].split()[1:]), done.stdout


def test_every_public_name_can_be_imported() -> None:
    assert 30 < len(names()) <= 40
    found = {name: getattr(toolbridge, name) for name in names()}
    assert [name for name, it in found.items() if getattr(it, "__name__", name) != name] == []


def test_every_public_name_is_listed_by_dir_and_imported_by_a_star() -> None:
    assert {*names(), "__version__"} <= set(dir(toolbridge))
    star: dict[str, object] = {}
    exec("from toolbridge import *", star)
    assert set(names()) <= set(star)


def test_a_name_is_the_same_object_in_each_public_module() -> None:
    modules = [importlib.import_module(f"toolbridge.{module}") for module in MODULES]
    shared = [(name, module) for module in modules for name in names() if hasattr(module, name)]
    assert [name for name, module in shared if getattr(module, name) is not getattr(toolbridge, name)] == []


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match=r"^module 'toolbridge' has no attribute 'Sandbx'$"):
        _ = api.Sandbx


def test_a_name_of_another_public_module_is_an_attribute_error_that_says_which() -> None:
    for module, name in (("events", "CallEnded"), ("pins", "audit"), ("errors", "SeedError"), ("prompt", "render")):
        with pytest.raises(AttributeError, match=rf"has no attribute '{name}': it is toolbridge\.{module}\.{name}$"):
            getattr(toolbridge, name)


def test_every_error_is_a_toolbridge_error() -> None:
    modules = [toolbridge, *(importlib.import_module(f"toolbridge.{module}") for module in MODULES)]
    errors = [getattr(module, name) for module in modules for name in dir(module) if name.endswith("Error")]
    assert len(errors) > 30
    assert [error for error in errors if not issubclass(error, toolbridge.ToolbridgeError)] == []


def test_the_version_is_that_of_the_distribution() -> None:
    from importlib.metadata import version

    assert toolbridge.__version__ == version("toolbridge")


def test_importing_toolbridge_imports_nothing_heavy() -> None:
    assert imported_by("import toolbridge") == (set(), "")


def test_help_imports_click_and_nothing_else_heavy() -> None:
    statements = "from toolbridge.cli import _run\nsys.argv = ['toolbridge', '--help']\nassert _run() == 0"
    imported, output = imported_by(statements)
    assert imported == {"click"}
    assert "Usage: toolbridge [OPTIONS] COMMAND [ARGS]..." in output


def test_running_a_program_imports_click_and_nothing_else_heavy() -> None:
    statements = "from toolbridge.cli import _run\nsys.argv = ['toolbridge', 'run', '-']\nassert _run() == 0"
    imported, output = imported_by(statements, standard_input="1+1")
    assert imported == {"click"}
    assert output == "2\n"


MISUSES: list[tuple[Callable[[], object], str]] = [
    (
        lambda: api.ServerConfig("x"),
        "ServerConfig: missing a required argument: 'transport'. Write ServerConfig(name,",
    ),
    (lambda: api.ServerConfig("x", "stdio", comand="y"), "unknown argument 'comand'. Did you mean 'command'?"),
    (lambda: api.ServerConfig("x", "stdio", command=5), "field 'command': expected text, found a number."),
    (lambda: api.ServerConfig.stdio("x"), "ServerConfig.stdio: missing a required argument: 'command'."),
    (lambda: api.ServerConfig.http("x", "https://a.example", env={"A": "b"}), "env"),
    (lambda: api.ServerLimits(server=1), "ServerLimits: unknown argument 'server'. Did you mean 'servers'?"),
    (lambda: api.OAuth(client=""), "OAuth: unknown argument 'client'. Did you mean 'client_id'?"),
    (lambda: api.Limits(wall_secs=1), "Limits: unknown argument 'wall_secs'. Did you mean 'wall_seconds'?"),
    (lambda: api.Limits(*range(20)), "Limits: too many positional arguments."),
    (lambda: api.Limits(wall_seconds="1"), "Limits.wall_seconds is '1': expected a number"),
    (lambda: api.Config(serves={}), "Config: unknown argument 'serves'. Did you mean 'servers'?"),
    (lambda: api.Config(5), "servers is of type int: expected servers by name"),
    (lambda: api.Config(files=5), "files is of type int: expected a tuple, each item a str"),
    (lambda: api.Config(profiles=("x",)), "profiles[0] is of type str: expected a Profile"),
    (lambda: api.Config.of(5), "servers[0] is of type int: expected a ServerConfig"),
    (lambda: api.Config.of(flows=5), "field 'flows': expected an object"),
    (lambda: api.Permissions(alow=[]), "Permissions: unknown argument 'alow'. Did you mean 'allow'?"),
    (lambda: api.Section("x"), "Section: missing a required argument: 'key'. Write Section(title, key, …)."),
    (lambda: api.Section("x", "x", 5), "Section 'x': template is of type int: expected text"),
    (lambda: api.tool(nmae="x"), "tool: unknown argument 'nmae'. Did you mean 'name'?"),
    (lambda: api.tool(5), "Tool 5: it is of type int, neither a function nor a name."),
    (lambda: api.create_server("x"), "create_server: missing a required argument: 'tools'."),
    (lambda: api.create_server("x", 5), "tools is of type int: expected a list of functions"),
    (lambda: api.Sandbox(limts=5), "Sandbox: unknown argument 'limts'. Did you mean 'limits'?"),
    (lambda: api.run_sync(None), "run_sync: missing a required argument: 'code'. Write run_sync(config, code, …)."),
    (lambda: api.run_sync(None, "1", limts=5), "unknown argument 'limts'. Did you mean 'limits'?"),
    (lambda: api.open_runtime(5), "config is of type int: expected a Config, the path of a file, or None"),
    *(
        (lambda name=name: api.open_runtime(api.Config.of(), **{name: 5}), words)
        for name, words in {
            "limits": "limits is of type int: expected Limits(…)",
            "pins": 'pins is of type int: expected "lock", "none", or',
            "profiles": "profiles is of type int: expected a list of names",
            "directory": "directory is of type int: expected a path",
            "errors": "field 'errors': expected 'raise' or 'return', found a number.",
            "strict_results": "strict_results is of type int: expected a bool",
            "on_compile": "on_compile is of type int: expected a plain or async function",
            "prompt": "prompt is of type int: expected a RenderedPrompt",
            "observers": "observers is of type int: expected a list of functions",
        }.items()
    ),
]


def test_a_wrong_argument_is_an_error_of_toolbridge_that_says_what_to_write() -> None:
    for make, words in MISUSES:
        with pytest.raises(toolbridge.ToolbridgeError) as caught:
            make()
        assert words in str(caught.value)


def test_a_type_error_of_a_body_is_raised_as_it_is() -> None:
    def body() -> None:
        raise TypeError("mine")

    with pytest.raises(TypeError, match=r"^mine$"):
        reports_misuse(body)()


def test_a_configuration_can_be_copied() -> None:
    server = toolbridge.ServerConfig.stdio("x", "y", env={"A": "b"}, output_schemas={"t": {"type": "object"}})
    copied = copy.deepcopy(server)
    assert copied == server
    assert copied.output_schemas["t"] is not server.output_schemas["t"]
    config = toolbridge.Config.of(server)
    assert copy.deepcopy(config) == config


def test_every_public_name_has_a_docstring() -> None:
    named = [(module, name) for module in python_api.PUBLIC for name in python_api.public_names(module)]
    assert len(named) > 100
    assert [(module, name) for module, name in named if not python_api.find(module, name).doc] == []


def test_the_reference_is_generated_from_this_code() -> None:
    assert python_api.PAGE.read_text(encoding="utf-8") == python_api.reference(), "make reference"


def test_the_package_can_be_run() -> None:
    done = subprocess.run([sys.executable, "-m", "toolbridge", "--version"], check=True, capture_output=True, text=True)
    assert done.stdout == f"toolbridge, version {toolbridge.__version__}\n"
