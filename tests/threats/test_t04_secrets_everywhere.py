"""T4: the whole product is used with servers that repeat every secret they have, and all it wrote is searched.

Commands run as real processes, the library in this one with logging at DEBUG. What they print, log, raise, show in a
`repr` or give to guest code is searched for the secrets as they are and in any encoding that can be undone.
"""

from __future__ import annotations

import json
import logging
import os
import re
import subprocess
import sys
import traceback
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from anyio.abc import SocketStream

from servers.http_servers import Received, raw_server, reply
from threats.planted_secrets import Found, encodings, found_in, found_under, json_lines, plain_secret, secret
from toolbridge import AuditLog, Config, Runtime, ServerError, load_config, open_runtime
from toolbridge.servers.auth.tokens import Credentials, TokenStore, place_of
from toolbridge.servers.lifecycle import prepare
from toolbridge.trust.approval.approvers import StoredApprovals, approval_prompt
from toolbridge.trust.approval.store import ApprovalStore, StoredAnswer
from toolbridge.trust.audit.detector import audit

LEAKING = Path(__file__).resolve().parents[2] / "fixtures" / "hostile" / "servers" / "leaking_secrets.py"
PYTHON = [sys.executable, "-S", "-E"]
SECRETS = {
    "a variable that is referred to": secret("alpha"),
    "a value in the configuration itself": secret("bravo"),
    "a variable that is passed on": secret("charlie"),
    "a header": plain_secret("delta"),
    "a parameter of the URL": plain_secret("echo"),
    "an access token": plain_secret("foxtrot"),
    "a client secret": plain_secret("golf"),
}
WAYS = ["text", "json", "structured", "failure", "link", "resource", "odd block", "refusal", "nonsense", "large"]


class World:
    """A user, a project with a server that leaks, and all that is written there."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.project = directory / "project"
        self.project.mkdir()
        self.environ = {
            "PATH": os.environ["PATH"],
            "HOME": str(directory / "home"),
            "TOOLBRIDGE_CONFIG_DIR": str(directory / "config"),
            "TOOLBRIDGE_STATE_DIR": str(directory / "state"),
            "TOOLBRIDGE_CACHE_DIR": str(directory / "cache"),
            "PLANTED_ALPHA": SECRETS["a variable that is referred to"],
            "LEAK_CHARLIE": SECRETS["a variable that is passed on"],
            "PLANTED_DELTA": SECRETS["a header"],
            "PLANTED_GOLF": SECRETS["a client secret"],
        }
        self.leaky: dict[str, Any] = {
            "command": PYTHON[0],
            "args": [*PYTHON[1:], str(LEAKING)],
            "cwd": str(self.project),
            "env": {
                "LEAK_ALPHA_TOKEN": "${PLANTED_ALPHA}",
                "LEAK_BRAVO_TOKEN": SECRETS["a value in the configuration itself"],
            },
            "envRequired": ["LEAK_CHARLIE"],
        }
        self.configure()

    def configure(self, **servers: dict[str, Any]) -> None:
        document = {"mcpServers": {"leaky": self.leaky, **servers}}
        (self.project / "toolbridge.json").write_text(json.dumps(document), "utf-8")

    def command(self, *words: str) -> tuple[int, str]:
        """What a command prints, on both streams."""
        done = subprocess.run(
            [sys.executable, "-c", "from toolbridge.cli import main; main()", *words],
            cwd=self.project,
            env={**self.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        return done.returncode, done.stdout + done.stderr

    def served(self) -> str:
        """What a client of `serve` is told, and what that prints; every call is answered."""
        about = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}}
        messages: list[dict[str, Any]] = [{"id": 0, "method": "initialize", "params": about}]
        messages.append({"method": "notifications/initialized"})
        for number, (name, given) in enumerate(SERVED, 1):
            messages.append({"id": number, "method": "tools/call", "params": {"name": name, "arguments": given}})
        heard: list[str] = []
        with subprocess.Popen(
            [sys.executable, "-c", "from toolbridge.cli import main; main()", "serve", "--audit-log", "served.jsonl"],
            cwd=self.project,
            env={**self.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            assert process.stderr is not None
            for message in messages:
                process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
                process.stdin.flush()
                while "id" in message:
                    heard.append(process.stdout.readline())
                    if json.loads(heard[-1]).get("id") == message["id"]:
                        assert "result" in json.loads(heard[-1]), heard[-1]
                        break
            process.stdin.close()
            heard += [process.stdout.read(), process.stderr.read()]
        return "\n".join(heard)

    def left_behind(self) -> list[Found]:
        """Secrets in files. The user's own configuration has one, and a sign-in is kept where sign-ins are."""
        return found_under(self.directory, SECRETS, but=("project/toolbridge.json", "state/tokens/*"))


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    world = World(tmp_path)
    for name, value in world.environ.items():
        if name.startswith(("TOOLBRIDGE_", "PLANTED_", "LEAK_")):
            monkeypatch.setenv(name, value)
    return world


# ---- commands

PROGRAM = """
import { faulty, leaky } from "host:mcp-leaky";
const seen = [];
for (const text of WAYS) {
  try { seen.push(faulty({ text })); } catch (error) { seen.push(String(error), error.message, { ...error }); }
}
for (const value of seen) {
  console.log(value);
  console.error(typeof value?.text === "function" ? value.text() : value);
}
try { faulty({ text: "die" }) } catch (error) { seen.push(String(error)) }
export default [seen.map(String), Object.keys(require("host:mcp-leaky"))];
"""
PYTHON_PROGRAM = """
from host.mcp_leaky import faulty
import sys
seen = []
for text in WAYS:
    try:
        seen.append(faulty(text=text))
    except Exception as error:
        seen += [str(error), repr(error), vars(error)]
for value in seen:
    print(value)
    print(value.text() if hasattr(value, "text") else value, file=sys.stderr)
try:
    faulty(text="die")
except Exception as error:
    seen.append(str(error))
[list(map(str, seen)), dir(__import__("host.mcp_leaky"))]
"""
# What is wrong with each is told with lines of the stubs, which are the server's words.
WRONG_PROGRAMS = {
    "wrong.ts": 'import { faulty, leaky, no } from "host:mcp-leaky";\nfaulty({ text: 1 }); leaky({ choice: 2 });\n',
    "wrong.py": "from host.mcp_leaky import faulty, leaky, nobody\nfaulty(text=1)\nleaky(choice=2, no=3)\n",
}
COMMANDS: list[tuple[list[str], int]] = [
    (["list", "--connect"], 0),
    (["info", "leaky", "--connect"], 0),
    (["info", "leaky", "--json"], 0),
    (["doctor"], 0),
    (["stubs", "--language", "python", "--out", "types"], 0),
    (["audit", "--json", "--fail-on", "never"], 0),
    (["audit", "--sarif", "--fail-on", "never"], 0),
    (["lock"], 0),
    (["search", "echo"], 0),
    (["run", "--json", "--audit-log", "audit.jsonl", "program.js"], 0),
    (["run", "--json", "--audit-log", "audit.jsonl", "program.py"], 0),
    (["run", "wrong.py"], 1),
    (["check", "wrong.ts"], 1),
    (["check", "--json", "wrong.ts"], 1),
    (["check", "wrong.py"], 1),
    (["check", "--json", "program.py"], 0),
    (["lock", "--check"], 0),
    (["revoke", "leaky"], 0),
]


SERVED: list[tuple[str, dict[str, Any]]] = [
    ("search_tools", {"query": "token secret name leaky"}),
    ("describe", {"names": ["leaky", "faulty", "no such tool"]}),
    ("run_code", {"code": PROGRAM.replace("WAYS", json.dumps(WAYS))}),
    ("run_code", {"code": PYTHON_PROGRAM.replace("WAYS", json.dumps(WAYS)), "language": "python"}),
    ("run_code", {"code": WRONG_PROGRAMS["wrong.ts"], "language": "typescript"}),
    ("list_mcp_servers", {}),
    ("mcp_server_info", {"name": "leaky"}),
    ("manage_mcp", {"name": "leaky", "action": "disable"}),
]


def write_programs(world: World) -> None:
    programs = {"program.js": PROGRAM, "program.py": PYTHON_PROGRAM, **WRONG_PROGRAMS}
    for name, text in programs.items():
        (world.project / name).write_text(text.replace("WAYS", json.dumps(WAYS)), "utf-8")


def test_no_command_prints_or_keeps_a_secret(world: World) -> None:
    write_programs(world)
    code, shown = world.command("approve", "leaky")  # nobody is there to ask
    assert code != 0
    digest = re.search(r"sha256:[0-9a-f]{64}", shown)
    assert digest is not None
    found = found_in(shown, "approve", SECRETS)
    for words, expected in [(["approve", "leaky", "--hash", digest[0], "--yes"], 0), *COMMANDS]:
        code, shown = world.command(*words)
        assert code == expected, (words, re.findall(r'"failure".{0,300}', shown) or shown)
        assert "Traceback" not in shown
        found += found_in(shown, " ".join(words), SECRETS)
        if words[0] == "info" or "program.js" in words or words[:2] == ["run", "--json"]:
            assert "***" in shown, "the server did not repeat its secret: nothing was tested"
        if words == ["lock", "--check"]:
            shown = world.served()
            assert shown.count("***") > 10
            found += found_in(shown, "serve", SECRETS)
    assert found == []
    assert world.left_behind() == []
    written = {path.name for path in world.directory.rglob("*") if path.is_file()}
    assert {"approved-mcp.json", "toolbridge.lock", "audit.jsonl", "served.jsonl"} <= written
    assert any(path.parent.name == "listings" for path in world.directory.rglob("*.json"))


# ---- the library


def everything_said_of(runtime: Runtime) -> Iterator[str]:
    """What a host can show of a runtime."""
    manager = runtime.servers
    yield repr(runtime.config)
    yield repr(manager.statuses())
    for server in runtime.config.servers.values():
        yield repr(server)
        yield str(manager.exposed(server.name))
        yield repr(manager.listing(server.name))
        yield repr(manager.admission(server.name))
    yield repr(runtime.catalog)
    for language in ("typescript", "python"):
        for detail in ("full", "compact"):
            yield repr(runtime.stub_set(language, detail=detail))
    yield repr(runtime.list_modules())
    for module in runtime.catalog.modules:
        yield repr(runtime.module_info(module.specifier))
    yield repr(runtime.search("token secret name leaky"))
    for form in ("full", "compact", "search"):
        yield repr(runtime.system_prompt(form=form))
    for module in runtime.catalog.modules:
        yield repr(audit(module.server, [tool.definition for tool in module.tools], module.instructions))


async def every_answer(runtime: Runtime, server: str) -> AsyncGenerator[str]:
    """What guest code, and a host that calls tools itself, get to see."""
    for text in [*WAYS, "die"]:
        program = f"""
            const found = [];
            try {{ found.push(require("host:mcp-{server}").faulty({{ text: {json.dumps(text)} }})); }}
            catch (error) {{ found.push(String(error), error.stack, JSON.stringify(error)); }}
            console.log(found[0]); if (typeof found[0]?.text === "function") console.log(found[0].text()); found
        """
        result = await runtime.run(program)
        yield repr(result)
        yield str(result.failure)
        for fail in (
            f'require("host:mcp-{server}").faulty({{ text: "failure" }})',
            f'require("host:mcp-{server}").no()',
        ):
            yield str((await runtime.run(fail)).failure)
    for text in ("refusal", "nonsense", "die"):
        try:
            await runtime.servers.call(server, "faulty", {"text": text})
        except ServerError as error:
            yield "".join(traceback.format_exception(error)) + repr(error)


class Logged(logging.Handler):
    """Everything that anybody logs."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.lines: list[str] = []
        self.setFormatter(logging.Formatter("%(name)s %(message)s"))

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(self.format(record))


@pytest.fixture
def logged() -> Iterator[Logged]:
    handler, root = Logged(), logging.getLogger()
    before = root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    yield handler
    root.setLevel(before)
    root.removeHandler(handler)


@asynccontextmanager
async def opened(world: World, logged: Logged, seen: list[str]) -> AsyncGenerator[Runtime]:
    """A runtime with an audit log that has arguments, whose servers are approved, and whose events are kept."""
    config: Config = load_config(directory=world.project)
    store = ApprovalStore()
    for server in config.servers.values():
        request, environment = prepare(server, os.environ)
        seen += [repr(request), repr(environment), approval_prompt(request, StoredAnswer("unknown"))]
        store.approve(request)
    with AuditLog(world.directory / "audit.jsonl", arguments=True) as log:
        observers: list[Callable[[Any], object]] = [log, lambda event: seen.append(repr(event))]
        async with open_runtime(config, approver=StoredApprovals(store), observers=observers) as runtime:
            yield runtime
    seen += logged.lines


def test_the_library_shows_logs_and_keeps_no_secret(world: World, logged: Logged) -> None:
    seen: list[str] = []

    async def main() -> None:
        async with opened(world, logged, seen) as runtime:
            await runtime.start_all()
            assert len(runtime.catalog.tools) == 3
            seen.extend(everything_said_of(runtime))
            # As arguments of its own, a program's text is the program's; that of the configuration is masked.
            given = json.dumps(SECRETS["a variable that is referred to"])
            await runtime.run(f'require("host:mcp-leaky").echo({{ text: {given} }}); 0')
            seen.extend([text async for text in every_answer(runtime, "leaky")])

    anyio.run(main)
    assert [found for number, text in enumerate(seen) for found in found_in(text, f"seen {number}", SECRETS)] == []
    assert world.left_behind() == []
    assert any("arguments" in line for line in json_lines(world.directory / "audit.jsonl"))
    assert any("***" in text for text in seen)


def leak_of(request: Received) -> str:
    """All that an HTTP server was told in confidence, in every encoding."""
    told = [value for name, value in request.headers.items() if name in ("authorization", "x-planted")]
    told += [request.target, *(part.partition(" ")[2] for part in told if " " in part)]
    return " | ".join(form for each in told for form in encodings(each))


async def leak_over_http(request: Received, stream: SocketStream) -> None:
    """Repeat it in every answer: the handshake, the tools, results, failures, refusals."""
    leak, message = leak_of(request), request.message
    if "id" not in message:
        await stream.send(reply(status="202 Accepted", headers={"x-echo": "x"}))
        return
    match message["method"]:
        case "initialize":
            info = {"name": leak, "version": "1"}
            result: dict[str, Any] = {
                "protocolVersion": "2025-06-18",
                "capabilities": {"tools": {}},
                "serverInfo": info,
            }
            result["instructions"] = leak
        case "tools/list":
            schema = {"type": "object", "properties": {"text": {"type": "string", "description": leak}}}
            result = {"tools": [{"name": "faulty", "description": leak, "inputSchema": schema}]}
        case "tools/call":
            word = message["params"]["arguments"]["text"]
            result = {"content": [{"type": "text", "text": leak}], "isError": word == "failure"}
            if word == "refusal":
                error = {"code": -32000, "message": leak, "data": leak}
                await stream.send(reply({"jsonrpc": "2.0", "id": message["id"], "error": error}))
                return
            if word == "nonsense":
                await stream.send(reply(leak, status="500 Broken", kind="text/plain"))
                return
        case _:
            error = {"code": -32601, "message": leak}
            await stream.send(reply({"jsonrpc": "2.0", "id": message["id"], "error": error}))
            return
    await stream.send(reply({"jsonrpc": "2.0", "id": message["id"], "result": result}))


@pytest.mark.parametrize("how", ["by header", "by sign-in"])
def test_a_server_that_is_reached_by_http_gives_no_secret_away(
    world: World, logged: Logged, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(TokenStore, "_keyring_answers", False)
    seen: list[str] = []

    async def main() -> None:
        async with raw_server(leak_over_http) as server:
            entry: dict[str, Any] = {"url": f"{server.url()}?api_key={SECRETS['a parameter of the URL']}"}
            if how == "by header":
                entry["headers"] = {"Authorization": "Bearer ${PLANTED_DELTA}", "X-Planted": "${PLANTED_DELTA}"}
            else:
                entry["url"] = server.url()
                entry["oauth"] = {"clientId": "me", "clientSecret": "${PLANTED_GOLF}"}
            world.leaky = {"command": "true", "disabled": True}
            world.configure(web=entry)
            async with opened(world, logged, seen) as runtime:
                if how == "by sign-in":
                    tokens = {"access_token": SECRETS["an access token"], "token_type": "Bearer"}
                    place = place_of(runtime.config.servers["web"], httpx2.URL(server.url()))
                    await TokenStore().save("web", place, Credentials(tokens=tokens))
                await runtime.servers.connect("web")
                sent = [each.headers.get("authorization", "") for each in server.received]
                used = SECRETS["a header" if how == "by header" else "an access token"]
                assert any(used in each for each in sent), "the server never got the secret: nothing was tested"
                seen.extend(everything_said_of(runtime))
                seen.extend([text async for text in every_answer(runtime, "web")])

    anyio.run(main)
    assert [found for number, text in enumerate(seen) for found in found_in(text, f"seen {number}", SECRETS)] == []
    assert world.left_behind() == []
    assert any("***" in text for text in seen)


# ---- each encoding and each place by itself, where a failure is easier to read


@pytest.mark.parametrize("name", SECRETS)
def test_the_search_finds_what_it_looks_for(name: str) -> None:
    """Else the tests above would show nothing."""
    for form in encodings(SECRETS[name]):
        assert {found.secret for found in found_in(f"before {form} after", "here", SECRETS)} == {name}, form
        assert found_in(json.dumps({"x": form}), "here", SECRETS), form


def test_the_search_finds_a_part_and_a_file(tmp_path: Path) -> None:
    name = "a header"
    half = SECRETS[name][4:]
    assert found_in(f"…{half}", "here", SECRETS)
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "file").write_text(f"x{SECRETS[name]}")
    assert [found.where for found in found_under(tmp_path, SECRETS)][:1] == ["a/file"]
    assert found_under(tmp_path, SECRETS, but=("a/file",)) == []
    assert found_in("nothing at all, QUJDREVGR0hJSktMTU5P", "here", SECRETS) == []
