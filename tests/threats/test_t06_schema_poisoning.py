"""T6, schema poisoning: a server's text is found in comments and string literals only; parsers are the witnesses."""

from __future__ import annotations

import ast
import io
import re
import tokenize

import pytest

from codegen import corpus
from codegen.stub_syntax import PYTHON_NODES, TYPESCRIPT_KINDS
from each_case import each_case
from threats import stub_facts
from toolbridge import Sandbox
from toolbridge.check.checker import Checker, World
from toolbridge_codegen.catalog import ServerListing, ToolDefinition, build_catalog
from toolbridge_codegen.stubs import generate

TEXTS = [f"text-{number}" for number in range(len(stub_facts.text_ids()))]
EVERY_SERVER = tuple(stub_facts.hostile_servers())
OWN_PROPERTIES = {"constant", "choice", "alternatives", "referred", "kind", "x"}
"""Of the tools in `codegen.poisoned.name_tool`, besides the hostile one."""
TYPESCRIPT_WORDS = {"Sync", "F", "twin", "Parameters", "ReturnType", "Promise", "Object"}
"""What a TypeScript stub is written with, besides its own names: its twin, and members that every object has."""
_WORDS = """
Any Callable Coroutine Literal Mapping Never NotRequired Required Sequence TypeAlias TypedDict Unpack
bool dict float int list object overload str total tuple input more error type
"""
PYTHON_WORDS = frozenset(_WORDS.split())
"""What a Python stub is written with."""
DIRECTIVE = re.compile(r"(?i)(^|#)\s*(type|ty|(based)?pyright|mypy|pyrefly)\s*:")
"""What one checker or the other obeys in a comment, wherever in it."""
LINE_BREAK = "\r\n|[\n\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029]"
SAY_NOTHING = {"only_spaces", "only_invisible", "empty"}
"""What is left of these is no comment at all; a type without comments may be written in another place."""


def twin_of(server: str) -> str:
    """The same server with harmless text."""
    name = stub_facts.text_ids()[int(server.removeprefix("text-"))]
    return "silent" if name in SAY_NOTHING else "benign"


def test_a_text_changes_nothing_in_typescript_but_comments() -> None:
    with each_case() as case:
        for server in TEXTS:
            with case(server):
                facts = stub_facts.all_typescript_facts()
                assert facts[server].errors == ()
                assert facts[server].tokens == facts[twin_of(server)].tokens


def test_a_text_changes_nothing_in_python_but_comments_and_docstrings() -> None:
    with each_case() as case:
        for server in TEXTS:
            with case(server):
                facts = stub_facts.all_python_facts()
                assert facts[server].shape == facts[twin_of(server)].shape


def test_a_text_is_no_directive_to_a_compiler_or_checker() -> None:
    with each_case() as case:
        for server in TEXTS:
            with case(server):
                typescript = stub_facts.all_typescript_facts()[server]
                assert typescript.directives == 0
                assert typescript.tags == ()
                comments = stub_facts.all_python_facts()[server].comments
                assert [comment for comment in comments if DIRECTIVE.search(comment)] == []
                # Some settings are read from lines that only look like comments, inside of strings too.
                stub = stub_facts.python_stub(server)
                assert [line for line in stub.splitlines() if line.startswith("# mypy:")] == []
                assert tokenize.detect_encoding(io.BytesIO(stub.encode()).readline)[0] == "utf-8"


def test_a_text_is_kept_as_far_as_it_is_harmless() -> None:
    """Or else the other tests would pass for a generator that drops all text."""
    with each_case() as case:
        for server in TEXTS:
            with case(server):
                text = corpus.text_cases("texts")[int(server.removeprefix("text-"))].text
                if "PWNED" in text[:1500]:
                    assert any("PWNED" in comment for comment in stub_facts.all_typescript_facts()[server].comments)
                    assert "PWNED" in stub_facts.python_stub(server)


def test_only_declarations_are_ever_written() -> None:
    for server in EVERY_SERVER:
        typescript = stub_facts.all_typescript_facts()[server]
        assert typescript.errors == (), server
        assert typescript.kinds <= TYPESCRIPT_KINDS, (server, typescript.kinds - TYPESCRIPT_KINDS)
        python = stub_facts.all_python_facts()[server]
        assert python.nodes <= PYTHON_NODES, (server, python.nodes - PYTHON_NODES)
        assert {call.lstrip("_") for call in python.calls} <= {"TypedDict"}, server


def test_every_identifier_is_one_that_we_made() -> None:
    for number, text in enumerate(stub_facts.all_names()):
        server = f"name-{number}"
        facts = stub_facts.all_typescript_facts()[server]
        by_role: dict[str, set[str]] = {}
        for role, name in facts.identifiers:
            assert stub_facts.IDENTIFIER.fullmatch(name), (text, name)
            by_role.setdefault(role, set()).add(name)
        assert by_role["function"] == stub_facts.exports(server), text
        assert by_role.get("property", set()) <= OWN_PROPERTIES | {text}, text
        assert by_role.get("parameter", set()) <= {"input", "key"}, text
        assert by_role.get("variable", set()) <= {"twin"}, text
        assert by_role.get("reference", set()) <= by_role["type"] | TYPESCRIPT_WORDS, text

        python = stub_facts.all_python_facts()[server]
        assert python.functions == stub_facts.exports(server), text
        declared = _declared(stub_facts.python_stub(server))
        fields = OWN_PROPERTIES | {text} if text.isascii() else OWN_PROPERTIES
        unknown = {name for name in python.names - declared - fields if name.lstrip("_") not in PYTHON_WORDS}
        assert not unknown, (text, unknown)
        assert all(name.isascii() and name.isidentifier() for name in python.names | python.functions), text


def test_string_literals_hold_exactly_what_the_server_sent() -> None:
    for number, text in enumerate(stub_facts.all_names()):
        server = f"name-{number}"
        ours = OWN_PROPERTIES | {"another"}
        strings = stub_facts.all_typescript_facts()[server].strings
        modules = {value for role, value in strings if role == "module"}
        assert modules == {f"host:mcp-{server}", f"host:mcp-{server}/async"}
        typescript = {value for role, value in strings if role != "module"}
        python = stub_facts.all_python_facts()[server].strings
        declared = _declared(stub_facts.python_stub(server))
        assert typescript <= ours | {text}, (text, typescript)
        assert python <= ours | {text} | declared, (text, python)
        if len(text) <= 100:  # longer constants may become their type
            assert text in typescript, (text, typescript)
            assert text in python, (text, python)


def test_nothing_is_imported_but_what_stubs_need() -> None:
    sources = ("typing", "typing_extensions", "collections.abc", "builtins", "host")
    for server in EVERY_SERVER:
        for statement in stub_facts.all_python_facts()[server].imports:
            assert re.match(rf"from ({'|'.join(map(re.escape, sources))})\b[\w.]* import ", statement), statement


def test_the_asynchronous_twin_is_as_clean() -> None:
    files = stub_facts.stub_sets()[1].files
    for server in EVERY_SERVER:
        tree = ast.parse(files[f"host/mcp_{server.replace('-', '_')}/aio.pyi"])
        targets = {
            name
            for node in tree.body
            for name in (
                [target.id for target in node.targets if isinstance(target, ast.Name)]
                if isinstance(node, ast.Assign)
                else [node.name]
                if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
                else []
            )
        }
        assert stub_facts.exports(server) <= targets
        assert {name for name in targets - stub_facts.exports(server) if not name.startswith("_")} == set(), server


@pytest.mark.parametrize("language", [0, 1], ids=["typescript", "python"])
def test_a_compact_line_stays_one_line(language: int) -> None:
    """Compact stubs are for prompts: a text that breaks a line could pose as another tool."""
    lines = {name: re.split(LINE_BREAK, text) for name, text in stub_facts.compact_sets()[language].files.items()}
    benign = next(len(found) for name, found in lines.items() if "benign" in name)
    for name, found in lines.items():
        if re.search(r"text[-_]\d", name):
            assert len(found) == benign, (name, found)
        assert max(map(len, found)) < 2000


LIKE_DECLARATIONS = (
    "Query language:\ntype name of the thing, then a colon.\nMore.",
    "Example:\nfunction second(input) { return 1 }\nThe end.",
    "Example:\nexport function second(input?: any): any;\ninterface SecondInput { b: number }\n}",
    "const second = /* 1\nclass second {\n} */ `",
    "Example:\nfunction another(input) { return 1 }",
    "Example:\ninterface Another",
)


@pytest.mark.anyio
@pytest.mark.parametrize("text", LIKE_DECLARATIONS)
async def test_a_text_that_looks_like_a_declaration_changes_nothing_in_a_check(text: str) -> None:
    tools = tuple(
        ToolDefinition(
            name,
            {"type": "object", "properties": {"a": {"type": "string", "description": of_property}}, "required": ["a"]},
            description=text,
            output_schema={"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]},
        )
        # What is used does not lead to the names in the text.
        for name, of_property in (("first", text), ("second", "A word."), ("third", text))
    )
    catalog = build_catalog([ServerListing("s", tools, instructions=text)])
    world = World(generate(catalog, language="typescript").files, ("host:mcp-s",))
    head = 'import { second } from "host:mcp-s";\n'
    with Sandbox() as sandbox:
        checker = Checker(sandbox)
        right = await checker.check(head + 'const { name } = second({ a: "1" }); name.length', "typescript", world)
        wrong = await checker.check(head + 'second({ a: "1" }).size', "typescript", world)
    assert (right.report.ok, right.report.warning) == (True, ""), right.report.failure
    assert [each.line for each in wrong.report.problems] == [2]


def _declared(stub: str) -> set[str]:
    """The types that a stub declares."""
    found: set[str] = set()
    for node in ast.parse(stub).body:
        match node:
            case ast.ClassDef(name=name) | ast.AnnAssign(target=ast.Name(id=name)):
                found.add(name)
            case ast.Assign(targets=[ast.Name(id=name)]):
                found.add(name)
            case _:
                pass
    assert all(re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) for name in found)
    return found
