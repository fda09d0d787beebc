"""What the documents say is so: README's blocks run, tables and command help match the code."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import shlex
import sys
from pathlib import Path
from typing import Any

import anyio
import click
import pytest

from cli.projects import Project
from registry_packages import NODE_PACKAGES, node_modules
from toolbridge import ApprovalRequest, Config, Limits, Sandbox, ServerConfig, load_config, run_sync
from toolbridge.approval import Approval
from toolbridge.runtime import Language

ROOT = Path(__file__).parents[1]


def blocks(path: str, language: str) -> list[str]:
    text = (ROOT / path).read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def block(path: str, language: str, *, having: str = "") -> str:
    """The one block of a language, or the one with this text in it."""
    (found,) = [text for text in blocks(path, language) if having in text]
    return found


def trimmed(text: str) -> list[str]:
    """Lines as a document has them: without spaces at their ends."""
    return [line.rstrip() for line in text.strip("\n").split("\n")]


# ---- README


@pytest.fixture(scope="module")
def readme_project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """The README's configuration, in use: its server is approved, and its `python` is this one."""
    project = Project(tmp_path_factory.mktemp("readme"))
    project.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), project.environ["PATH"]])
    project.write(block("README.md", "json"), "toolbridge.json")
    project.approve("weather")
    return project


def test_the_program_in_the_readme_gives_what_it_says(readme_project: Project) -> None:
    result, _ = blocks("README.md", "text")
    program = readme_project.write(block("README.md", "javascript"))
    assert readme_project.run("run", program) == (0, result, "")
    program = readme_project.write(block("README.md", "python", having="from host.bridge"), "program.py")
    assert readme_project.run("run", program) == (0, result, "")


def test_the_mistake_in_the_readme_is_explained_as_it_says(readme_project: Project) -> None:
    program = readme_project.write(block("README.md", "javascript").replace("get_forecast", "get_forcast"))
    _, failure = blocks("README.md", "text")
    code, out, err = readme_project.run("run", program)
    assert (code, out) == (1, "")
    assert trimmed(err) == trimmed(failure)


def test_the_stub_in_the_readme_is_what_a_model_sees(readme_project: Project) -> None:
    readme_project.run("run", readme_project.write('import "host:mcp-weather"'))
    code, out, err = readme_project.run("stubs", "--language", "typescript")
    assert (code, err) == (0, "")
    assert block("README.md", "typescript") in out


def test_the_runtime_example_in_the_readme_runs(readme_project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(readme_project.directory)
    for name, value in readme_project.environ.items():
        monkeypatch.setenv(name, value)
    names: dict[str, object] = {}
    exec(block("README.md", "python", having="open_runtime"), names)
    anyio.run(names["main"])  # pyright: ignore[reportArgumentType]
    assert '"tool": "get_forecast"' in (readme_project.directory / "audit.jsonl").read_text(encoding="utf-8")


def test_the_example_of_an_own_function_in_the_readme_runs() -> None:
    exec(compile(block("README.md", "python", having="create_server"), "README.md", "exec", dont_inherit=True), {})


def test_the_readme_quotes_the_measured_sizes_of_what_a_client_sees() -> None:
    table = (ROOT / "docs/serve-to-clients.md").read_text(encoding="utf-8")
    row = re.search(r"^\| five servers \| (\d+) \| [\d,]+ / ([\d,]+) \| [\d,]+ / ([\d,]+) \|", table, re.MULTILINE)
    readme = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    told = re.search(r"Five servers with (\d+) tools cost a client ([\d,]+) tokens .*? and ([\d,]+) through", readme)
    assert row is not None
    assert told is not None
    for one, other in zip(row.groups(), told.groups(), strict=True):
        assert float(one.replace(",", "")) == pytest.approx(float(other.replace(",", "")), rel=0.05)


def test_the_readme_has_the_default_limits() -> None:
    limits = Limits()
    words = (
        f"use {limits.wall_seconds:g} s, {limits.cpu_seconds:g} s of CPU, {limits.memory_bytes // 2**20} MiB, "
        f"{limits.host_calls:,} calls, {limits.calls_in_flight} at once"
    )
    assert words in (ROOT / "README.md").read_text(encoding="utf-8")


SHELL = re.findall(
    r"^ {4}(toolbridge .*?)(?: {2,}#.*)?$", (ROOT / "README.md").read_text(encoding="utf-8"), re.MULTILINE
)


def test_every_command_in_the_readme_works_in_its_order_without_an_activated_environment(tmp_path: Path) -> None:
    """After an install that puts the scripts on the PATH; the system's `python` knows nothing of toolbridge."""
    assert SHELL[0] == "toolbridge demo"
    project = Project(tmp_path)
    scripts = tmp_path / "bin"
    scripts.mkdir()
    for name in ("toolbridge", "toolbridge-demo-weather", "toolbridge-demo-atlas"):
        (scripts / name).symlink_to(Path(sys.executable).with_name(name))
    project.environ["PATH"] = os.pathsep.join([str(scripts), "/usr/bin", "/bin"])
    project.write(block("README.md", "json"), "toolbridge.json")
    program = block("README.md", "javascript")
    project.write(program)
    for line in SHELL:
        words = shlex.split(line)
        answers = [(r"\[y/N", "y\n")] * 2 if line == "toolbridge approve weather" else []
        code, shown = project.at_terminal(*words[1:], answers=answers, command=[str(scripts / words[0])])
        assert code == 0, (line, shown)


# ---- the guides


PROGRAM_AND_VALUE = re.compile(r"^```javascript\n(.*?)^```\n\n```json\n(.*?)^```$", re.MULTILINE | re.DOTALL)
IN_PYTHON = re.compile(r"^```python\n([^`]*?)^```\n\n```json\n(.*?)^```$", re.MULTILINE | re.DOTALL)
GUIDES = ("docs/connect-servers.md", "docs/write-programs.md", "docs/use-the-command-line.md")
GUIDE = "\n".join((ROOT / path).read_text(encoding="utf-8") for path in GUIDES)
PROGRAMS: list[tuple[str, str]] = PROGRAM_AND_VALUE.findall(GUIDE)


class ApproveAll:
    async def approve(self, request: ApprovalRequest) -> Approval:
        return Approval(True)


def value_of(program: str, directory: Path, *servers: ServerConfig, language: Language = "javascript") -> object:
    config = Config.of(*servers)
    result = run_sync(config, program, language=language, approver=ApproveAll(), pins="none", directory=directory)
    assert result.failure is None, str(result.failure)
    return result.value


def test_every_program_in_the_guides_has_its_value() -> None:
    assert len(PROGRAMS) == sum(len(blocks(path, "javascript")) for path in GUIDES)
    assert (
        len(OWN_IN_PYTHON)
        == len([text for text in blocks("docs/write-programs.md", "python") if "from host." in text])
        == 2
    )


OWN = [(*pair, "javascript") for pair in PROGRAMS if "host:mcp-weather" in pair[0]]
OWN_IN_PYTHON = [(*pair, "python") for pair in IN_PYTHON.findall(GUIDE)]


@pytest.mark.parametrize(("program", "value", "language"), [*OWN, *OWN_IN_PYTHON])
def test_a_program_in_the_guides_gives_what_it_says(
    program: str, value: str, language: Language, tmp_path: Path
) -> None:
    from toolbridge.demo import atlas, weather

    servers = (ServerConfig.in_process("weather", weather.server), ServerConfig.in_process("atlas", atlas.server))
    assert value_of(program, tmp_path, *servers, language=language) == json.loads(value)


def node_server(name: str, package: str, *words: str) -> ServerConfig:
    program = node_modules() / "@modelcontextprotocol" / package / "dist" / "index.js"
    return ServerConfig.stdio(name, "node", [str(program), *words], connect_timeout=60)


def test_the_program_for_the_filesystem_server_gives_what_it_says(tmp_path: Path) -> None:
    ((program, value),) = [pair for pair in PROGRAMS if "host:mcp-files" in pair[0]]
    notes = tmp_path / "notes"
    notes.mkdir()
    (notes / "garden.md").write_text("# Garden\n- [ ] water\n- [x] dig\n- [ ] plant\n", encoding="utf-8")
    (notes / "done.md").write_text("- [x] all of it\n", encoding="utf-8")
    (notes / "todo.txt").write_text("- [ ] no note\n", encoding="utf-8")
    here = program.replace("/home/me/notes", str(notes))
    found = value_of(here, tmp_path / "cache", node_server("files", "server-filesystem", str(notes)))
    assert found == json.loads(value)


def test_the_program_for_the_everything_server_gives_what_it_says(tmp_path: Path) -> None:
    ((program, value),) = [pair for pair in PROGRAMS if "host:mcp-everything" in pair[0]]
    assert value_of(program, tmp_path, node_server("everything", "server-everything")) == json.loads(value)


def test_the_packages_in_the_guides_are_those_that_are_tested() -> None:
    named = set(re.findall(r"@modelcontextprotocol/[\w.@-]+", GUIDE))
    assert len(named) == 2
    assert named <= set(NODE_PACKAGES)


JSON_BLOCKS = re.findall(r"^ *```json\n(.*?)^ *```$", GUIDE, re.MULTILINE | re.DOTALL)
CONFIGURATIONS = [text for text in JSON_BLOCKS if "mcpServers" in text]


@pytest.mark.parametrize(
    ("text", "name"), [*zip(CONFIGURATIONS, ["weather", "files", "github", "everything"], strict=True)]
)
def test_a_configuration_in_the_guides_can_be_used(text: str, name: str, tmp_path: Path) -> None:
    file = tmp_path / "toolbridge.json"
    file.write_text(text, encoding="utf-8")
    config = load_config(file)
    assert (list(config.servers), config.warnings) == ([name], ())


def test_the_guides_have_every_command() -> None:
    from toolbridge.cli.commands import toolbridge

    commands = re.findall(r"`(?:toolbridge )?([a-z-]+)(?: [A-Z][^`]*)?`", GUIDE.split("## Commands")[1].split("## ")[0])
    assert set(toolbridge.list_commands(click.Context(toolbridge))) <= set(commands)


def test_every_message_in_the_table_of_problems_is_one_of_ours() -> None:
    table = GUIDE.split("| a message says |")[1].split("\n\n")[0]
    files = [path for part in ("bridge", "guest") for path in (ROOT / part).rglob("*.*") if ".build" not in path.parts]
    source = "\n".join(path.read_text(encoding="utf-8") for path in files if path.suffix in {".py", ".js"})
    quoted = re.findall(r"`([^`]+)`", "".join(row.split("|")[1] for row in table.splitlines()[2:]))
    parts = [part.strip() for message in quoted for part in re.split("[…\"']", message) if len(part.strip()) > 6]
    assert len(parts) > 10
    assert [part for part in parts if part not in source] == []


def test_the_guides_have_every_kind_of_error_and_its_class() -> None:
    from toolbridge_codegen.stubs import bridge_dts

    declared = re.findall(r'class (Tool\w+Error) extends ToolError \{ readonly kind: "(\w+)" \}', bridge_dts())
    assert len(declared) == 6
    for name, kind in declared:
        assert f"| `{kind}` | `{name}` |" in GUIDE


def test_the_permission_example_runs() -> None:
    from toolbridge import ToolUse
    from toolbridge.approval import Decision

    names: dict[str, Any] = {}
    exec(block("docs/set-permissions.md", "python", having="can_use_tool"), names)

    async def answers() -> list[Decision]:
        return [await names["can_use_tool"](ToolUse("weather", tool)) for tool in ("list_stations", "big")]

    assert [answer.allowed for answer in anyio.run(answers)] == [True, False]


# ---- other guides


def test_the_example_of_a_server_manager_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    names: dict[str, object] = {}
    (example,) = blocks("docs/connect-servers.md", "python")
    exec(example, names)
    anyio.run(names["main"])  # pyright: ignore[reportArgumentType]


def test_the_failure_in_the_javascript_guide_is_the_one_a_model_gets() -> None:
    guide = (ROOT / "docs/write-programs-javascript.md").read_text(encoding="utf-8")
    program = 'import * as demo from "host:demo";\nconst city = "Oslo";\ndemo.temprature(city)'
    failure = Sandbox({"host:demo": {"temperature": len}}).run_sync(program).failure
    shown = "\n".join(f"    {line}" for line in str(failure).splitlines())
    assert shown in guide


def test_the_javascript_guide_has_every_limit_with_its_default() -> None:
    guide = (ROOT / "docs/write-programs-javascript.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| `(\w+)`[^|]*\| ([^|]*) \|", guide, re.MULTILINE))
    for field in dataclasses.fields(Limits):
        default = field.default
        assert isinstance(default, int | float)
        expected = f"{default // 2**20} MiB" if field.name.endswith("_bytes") else f"{default:,g}"
        assert rows[field.name] == expected, field.name


DOCUMENTS = [
    "README.md",
    "examples/README.md",
    ".github/CONTRIBUTING.md",
    ".github/SECURITY.md",
    "examples/plugin/README.md",
    "bench/README.md",
    "guest/WIRE.md",
    "CHANGELOG.md",
    *(str(path.relative_to(ROOT)) for path in (ROOT / "docs").rglob("*.md")),
]


def anchors(file: Path) -> set[str]:
    """The anchors that GitHub makes of a page's headings."""
    headings = re.findall(r"^#+ (.*)$", file.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_links_and_paths_in_the_documents_exist() -> None:
    missing: list[str] = []
    for path in DOCUMENTS:
        text = (ROOT / path).read_text(encoding="utf-8")
        for target, anchor in re.findall(r"\]\((?!http)([^)#]*)(?:#([^)]*))?\)", text):
            file = (ROOT / path).parent / target if target else ROOT / path
            if not file.exists() or (anchor and anchor not in anchors(file)):
                missing.append(f"{path}: {target}#{anchor}")
        named = re.findall(r"`((?:bridge|guest|docs|tests|fixtures|bench|examples)/[\w-][\w./-]*)`", text)
        missing += [f"{path}: {target}" for target in named if not (ROOT / target).exists()]
    assert missing == []


def test_every_dependency_has_its_line() -> None:
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    required = [*project["project"]["dependencies"], *project["dependency-groups"]["dev"]]
    table = (ROOT / "docs/DEPENDENCIES.md").read_text(encoding="utf-8")
    for requirement in required:
        name = re.split(r"[=<>!~\[ ]", requirement)[0]
        assert re.search(rf"^\|[^|]*\b{re.escape(name)}\b", table, re.MULTILINE), name


def test_the_glossary_names_the_file_of_each_concept() -> None:
    """The concept's own words are in the file: a reader finds one by the other."""
    glossary = (ROOT / "docs/GLOSSARY.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| ([^|]+) \| `([\w/]+\.py)` \|$", glossary, re.MULTILINE)
    assert len(rows) == 16
    lacking: list[str] = []
    for concept, file in rows:
        text = f"{file} {(ROOT / file).read_text(encoding='utf-8')}".lower()
        lacking += [f"{word} in {file}" for word in concept.replace("`", "").lower().split() if word not in text]
    assert lacking == []
