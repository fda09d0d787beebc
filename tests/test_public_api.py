"""What `import toolbridge` offers, and what it costs."""

from __future__ import annotations

import importlib
import subprocess
import sys

import pytest

import toolbridge

MODULES = ("approval", "errors", "events", "pins", "plugins", "prompt")
HEAVY = ["anyio", "asyncio", "click", "mcp", "pluggy", "pydantic", "rich", "trio", "wasmtime"]

REPORT_IMPORTS = f"print('imported:', *sorted(set(sys.modules) & set({HEAVY!r})), file=sys.stderr)"


def names() -> list[str]:
    return [name for name in getattr(toolbridge, "__all__") if not name.startswith("_")]  # noqa: B009  # the stub has no such name


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
        getattr(toolbridge, "Sandbx")  # noqa: B009  # a type checker would see it


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


def test_the_package_can_be_run() -> None:
    done = subprocess.run([sys.executable, "-m", "toolbridge", "--version"], check=True, capture_output=True, text=True)
    assert done.stdout == f"toolbridge, version {toolbridge.__version__}\n"
