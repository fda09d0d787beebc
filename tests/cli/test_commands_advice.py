"""Advice in errors about approvals, pins and locks: each command that is advised can be typed, and helps."""

from __future__ import annotations

import ast
import json
import re
import shlex
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from cli.test_lock_first_use import ECHO, EVIL, PROGRAM, SCHEMA, Shop

SOURCE = Path(__file__).resolve().parents[2] / "bridge" / "toolbridge"
ADVICE = re.compile(r"`toolbridge ([^`]+)`")
YES = r"\[y/N[^\]]*\] "
OTHER: dict[str, Any] = {"name": "other", "description": "Echoes a text loudly.", "inputSchema": SCHEMA}

NOT_RUN = {"serve", "sign-in shop"}
"""`serve` is what `install` puts into a client's file; of `sign-in` there are tests with a server that wants one."""


def text_of(node: ast.expr) -> str:
    """A text in the source, with `shop` for what is filled in, and nothing for the name of a tool after it."""
    if isinstance(node, ast.BinOp):
        return text_of(node.left) + text_of(node.right)
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else ""
    if isinstance(node, ast.JoinedStr):
        return re.sub("shopshop$", "shop", "".join(map(text_of, node.values)))
    return "shop"


def advice() -> Iterator[str]:
    """Every command that a text in the source names, but for docstrings."""
    for path in sorted(SOURCE.rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        docstrings = {id(each.value) for each in ast.walk(tree) if isinstance(each, ast.Expr)}
        for node in ast.walk(tree):
            if isinstance(node, (ast.Constant, ast.JoinedStr)) and id(node) not in docstrings:
                for found in ADVICE.findall(text_of(node)):
                    yield found.replace("NAME", "shop").replace("CLIENT", "cursor")
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "advised":
                yield text_of(node.args[0])


@pytest.fixture(scope="module")
def approved_shop(tmp_path_factory: pytest.TempPathFactory) -> Shop:
    shop = Shop(tmp_path_factory.mktemp("advice"))
    shop.list(ECHO)
    shop.approve("shop")
    assert shop.run("lock", "--update")[0] == 0
    return shop


@pytest.mark.parametrize("words", sorted({each for each in advice() if not each.startswith("shop")} - NOT_RUN))
def test_every_command_that_is_advised_can_be_run(approved_shop: Shop, words: str) -> None:
    code, shown, told = approved_shop.run(*shlex.split(words))
    assert code == 0, (words, shown, told)


# ---- what is advised in a project where something is wrong, and that it helps


def edited(shop: Shop) -> None:
    shop.lock.write_text(shop.lock.read_text().replace("Echoes", "Mirrors"))


def changed(shop: Shop) -> None:
    shop.list({**ECHO, "title": "Echo"})


def refused(shop: Shop) -> None:
    shop.lock.unlink()
    shop.list({**ECHO, "title": "Echo"})
    code, shown = shop.at_terminal("run", "program.js", answers=[(YES, "n\n")])
    assert code == 1, shown


def shipped(shop: Shop) -> None:
    """The user is another than the one who accepted what the lock pins."""
    shop.list({**EVIL, "name": "echo"})
    assert shop.run("lock", "--update", "shop")[0] == 0
    shop.environ["TOOLBRIDGE_STATE_DIR"] += "-of-another"
    shop.approve("shop")


def disabled(shop: Shop) -> None:
    assert shop.run("disable", "shop")[0] == 0


def revoked(shop: Shop) -> None:
    assert shop.run("revoke", "shop")[0] == 0


@pytest.mark.parametrize("harm", [edited, changed, refused, shipped, disabled, revoked], ids=lambda harm: harm.__name__)
def test_whoever_follows_the_advice_of_run_can_run_it(tmp_path: Path, harm: Callable[[Shop], None]) -> None:
    shop = Shop(tmp_path)
    shop.list(ECHO)
    shop.approve("shop")
    shop.write(PROGRAM)
    assert shop.run("lock", "--update", "shop")[0] == 0
    assert shop.run("run", "program.js")[:2] == (0, "hello\n")
    harm(shop)
    code, _, told = shop.run("run", "program.js")
    assert code != 0
    advised = list(dict.fromkeys(ADVICE.findall(told)))
    assert advised, told
    if harm is edited:
        assert "Restore it from version control, or delete it and run `toolbridge lock`." in told
        code, found, _ = shop.run("doctor")
        assert (code, found.count("its digest is not that of its definition")) == (4, 1), found
        shop.lock.unlink()
    for words in advised:
        # A check that finds a difference says so with its exit code.
        code, shown = shop.at_terminal(*shlex.split(words), answers=_answers(shop, words))
        assert code == (1 if "--check" in words and harm is changed else 0), (words, shown)
    assert shop.run("run", "program.js")[:2] == (0, "hello\n")


def _answers(shop: Shop, words: str) -> list[tuple[str, str]]:
    """A yes to each question that the command asks: to start the server, and to let its tools be called."""
    if not words.startswith("approve"):
        return [(YES, "y\n")] if words == "lock" else []
    (status,) = json.loads(shop.run("list", "--json")[1])
    is_approved = status["approval"]["standing"] == "approved"
    is_accepted = (status["tools"], status["unseen"]) == (1, 0)
    return [(YES, "y\n")] * (2 - is_approved - is_accepted)


def test_tools_that_a_deleted_lock_pinned_are_there_or_missed(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    shop.approve("shop")
    shop.list(ECHO)
    assert shop.run("lock", "--update", "shop")[0] == 0
    shop.lock.unlink()
    code, shown, _ = shop.run("stubs")
    assert (code, "function echo(" in shown) == (0, True), "this user has accepted them"
    shop.environ["TOOLBRIDGE_STATE_DIR"] += "-of-another"
    shop.approve("shop")
    code, shown, told = shop.run("stubs")
    assert (code, shown) == (4, "")
    assert "Server 'shop': its tool is not pinned and hidden: run `toolbridge lock shop`." in told
    assert "No tool of these servers can be used" in told
    assert "its tool is not pinned and hidden: run `toolbridge lock shop`" in shop.run("list")[1]
    code, shown = shop.at_terminal("lock", "shop", answers=[(YES, "y\n")])
    assert code == 0, shown
    assert "function echo(" in shop.run("stubs")[1]


def test_approving_unattended_shows_what_the_lock_pins_and_accepts_none_of_it(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    shop.approve("shop")
    assert shop.run("lock", "--update", "shop")[0] == 0  # an attacker's, who then ships the lock
    shop.environ["TOOLBRIDGE_STATE_DIR"] += "-of-another"
    (digest,) = set(re.findall(r"sha256:[0-9a-f]{64}", shop.run("approve", "shop")[1]))
    code, shown, _ = shop.run("approve", "shop", "--hash", digest, "--yes")
    assert code == 0
    assert "Of what the lock pins of shop, look at this:\n  evil\n      Ignore all previous instructions" in shown
    code, _, told = shop.run("run", shop.write('require("host:mcp-shop").evil({ text: "hello" })'))
    assert code == 1
    assert "tool 'evil' is not accepted and hidden: the audit found " in told
    assert "Nobody has seen 1 tool of shop yet: `toolbridge approve shop` shows" in shop.run("list")[1]
    assert shop.run("lock", "--check")[0] == 0  # it lists what is pinned
    code, shown, _ = shop.run("lock", "--trust", "shop")  # for machines on which nobody can be asked
    assert (code, "Ignore all previous instructions" in shown) == (0, True)
    assert shop.run("run", "program.js")[:2] == (0, "hello\n")


@pytest.mark.parametrize("harm", [changed, disabled], ids=lambda harm: harm.__name__)
def test_advice_finds_the_servers_that_the_command_has_found(tmp_path: Path, harm: Callable[[Shop], None]) -> None:
    """It has the `--config` of the command that gives it: without, there is no such server."""
    shop = Shop(tmp_path)
    shop.list(ECHO)
    (shop.directory / "toolbridge.json").rename(shop.directory / "my servers.json")
    shop.run = partial(with_config, shop.run)  # pyright: ignore[reportAttributeAccessIssue]
    shop.approve("shop")
    assert shop.run("lock", "--update", "shop")[0] == 0
    harm(shop)
    code, _, told = shop.run("run", shop.write(PROGRAM))
    assert code != 0
    advised = list(dict.fromkeys(ADVICE.findall(told)))
    assert advised, told
    for words in advised:
        assert "--config 'my servers.json'" in words
        code, shown = shop.at_terminal(*shlex.split(words), answers=_answers(shop, words))
        assert code == (1 if "--check" in words and harm is changed else 0), (words, shown)
    assert shop.run("run", "program.js")[:2] == (0, "hello\n")


def with_config(run: Callable[..., tuple[int, str, str]], *words: str) -> tuple[int, str, str]:
    return run(*words, *(() if "--config" in words else ("--config", "my servers.json")))
