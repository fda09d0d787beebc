"""Prompt sections: text, and the servers of what is shown of it, in its order."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import FrozenInstanceError, dataclass
from typing import Any, NamedTuple, assert_type, cast

import pytest

from toolbridge import Section, ServerConfig, tool
from toolbridge.errors import MisuseError, SectionError, ToolbridgeError
from toolbridge.prompt import RenderedPrompt, Visibility, render


@dataclass(frozen=True, slots=True)
class Database:
    path: str
    writable: bool = False


def server(name: str, command: str = "x") -> ServerConfig:
    return ServerConfig.stdio(name, command)


def sqlite(params: Database) -> ServerConfig:
    return ServerConfig.uvx("sqlite", "mcp-server-sqlite", ["--db", params.path])


DATABASE = Section[Database](
    title="Database",
    key="database",
    template="The database is at $path; writing: $writable.",
    params=Database("/data/app.db"),
    enabled=lambda params: bool(params.path),
    mcps=[sqlite],
)
ADVANCED = Section[None](
    title="Advanced",
    key="advanced",
    template="Everything.",
    summary="There is more.",
    visibility=Visibility.SUMMARY,
    mcps=[server("fs")],
    children=[Section("Deep", "deep", "Deeper.", mcps=[server("deep")])],
)
GIT = Section[None]("Git", "git", "Use git for $5.", mcps=[server("git"), server("hub")])


def names(prompt: RenderedPrompt) -> list[str]:
    return [each.name for each in prompt.mcps]


def test_rendering_gives_text_and_servers_in_the_order_of_the_text() -> None:
    prompt = render([GIT, DATABASE])
    assert prompt.text == (
        "## Git\n\nUse git for $5.\n\n## Database\n\nThe database is at /data/app.db; writing: False."
    )
    assert names(prompt) == ["git", "hub", "sqlite"]
    assert (prompt.opened, prompt.closed, prompt.warnings) == (("git", "database"), (), ())
    assert prompt.sections == {"git": "git", "hub": "git", "sqlite": "database"}


def test_a_summary_hides_servers_and_children_and_opening_shows_them() -> None:
    closed = render([ADVANCED, GIT])
    assert names(closed) == ["git", "hub"]
    assert "There is more." in closed.text
    assert 'open_sections(["advanced"])' in closed.text
    assert "Everything." not in closed.text
    assert (closed.opened, closed.closed) == (("git",), ("advanced",))
    opened = closed.open_sections(["advanced"])
    assert names(opened) == ["fs", "deep", "git", "hub"]
    assert "### Deep\n\nDeeper." in opened.text
    assert (opened.opened, opened.closed) == (("advanced", "advanced.deep", "git"), ())
    assert names(closed) == ["git", "hub"]  # what was rendered does not change
    assert names(opened.open_sections(["advanced"])) == names(opened)


def test_what_was_opened_stays_open_and_parents_are_opened_with_their_children() -> None:
    inner = ADVANCED.clone(key="inner", mcps=[server("inner")], children=())
    outer = ADVANCED.clone(key="outer", children=[inner])
    prompt = render([outer, ADVANCED])
    opened = prompt.open_sections(["outer.inner"])
    assert (opened.opened, opened.closed) == (("outer", "outer.inner"), ("advanced",))
    assert opened.open_sections(["advanced"]).closed == ()


@pytest.mark.parametrize("path", ["nowhere", "advanced.nowhere", "git.x", ""])
def test_opening_what_is_not_there_is_an_error_that_names_what_is(path: str) -> None:
    with pytest.raises(SectionError, match=r"no such section\. Closed sections: "):
        render([ADVANCED, GIT]).open_sections([path])


def test_what_is_not_enabled_is_not_there_nor_is_what_is_in_it() -> None:
    off = GIT.clone(enabled=False, children=[Section("In", "in", mcps=[server("in")])])
    assert render([off]) == render([])
    assert names(render([DATABASE.clone(params=Database(""))])) == []
    assert names(render([DATABASE], {"database": Database("")})) == []


def test_a_factory_gets_the_parameters() -> None:
    prompt = render([DATABASE], {"database": Database("/other.db", writable=True)})
    assert prompt.mcps[0].args == ("mcp-server-sqlite", "--db", "/other.db")
    assert "writing: True" in prompt.text


def test_a_section_without_parameters_has_its_parents() -> None:
    child = Section[Database]("Copy", "copy", "Copy of $path.", mcps=[lambda given: server("copy", given.path)])
    prompt = render([DATABASE.clone(children=[child])])
    assert "Copy of /data/app.db." in prompt.text
    assert prompt.mcps[1].command == "/data/app.db"


def test_parameters_may_be_a_mapping_or_any_object() -> None:
    class Plain:
        def __init__(self) -> None:
            self.path = "p"

    class Named(NamedTuple):
        path: str

    for params in ({"path": "p"}, Plain(), Named("p")):
        assert render([Section("A", "a", "at $path and $$5", params=params)]).text.endswith("at p and $5")


def test_a_clone_keeps_the_servers() -> None:
    assert GIT.clone(title="Other").mcps == GIT.mcps
    assert GIT.clone(mcps=[]).mcps == ()
    with pytest.raises(FrozenInstanceError):
        GIT.title = "x"  # pyright: ignore[reportAttributeAccessIssue]


def test_of_a_name_in_two_sections_the_first_holds_with_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "toolbridge"):
        prompt = render([GIT, Section("Other", "other", mcps=[server("git", "other"), server("tea")])])
    assert [(each.name, each.command) for each in prompt.mcps] == [("git", "x"), ("hub", "x"), ("tea", "x")]
    assert prompt.warnings == ("section 'other' declares server 'git', as section 'git' did first.",)
    assert prompt.warnings[0] in caplog.text
    assert [(each.server, each.origin, each.kept) for each in prompt.collisions] == [
        ("git", "section (other)", "section (git)")
    ]


@pytest.mark.parametrize(
    "make",
    [
        lambda: Section("A", "a", mcps=[server("x"), server("x")]),
        lambda: Section("A", "a", mcps=[server("x-y"), server("x_y")]),
        lambda: Section("A", "a", mcps=[GIT.mcps[0], GIT.mcps[0]]),
        lambda: render([Section("A", "a", mcps=[GIT.mcps[0], lambda _: cast("ServerConfig", GIT.mcps[0])])]),
        lambda: render([Section("A", "a", mcps=[server("x"), lambda _: server("x")])]),
    ],
)
def test_of_a_name_twice_in_one_section_nothing_holds(make: Callable[[], object]) -> None:
    with pytest.raises(SectionError, match=r"Rename one of them\.$"):
        make()


def test_the_same_server_in_two_sections_is_the_firsts() -> None:
    prompt = render([GIT, GIT.clone(key="again", mcps=GIT.mcps[:1])])
    assert prompt.sections["git"] == "git"
    assert prompt.warnings == ("section 'again' declares server 'git', as section 'git' did first.",)
    assert prompt.collisions == ()


def test_a_section_without_parameters_has_a_type_that_checkers_know() -> None:
    assert_type(Section("T", "t", "x"), Section[None])
    assert_type(Section("T", "t", "x", params=Database("a")), Section[Database])


def test_a_prompt_is_rendered_again_from_whatever_its_sections_came_in() -> None:
    closed = Section("A", "a", "All.", visibility=Visibility.SUMMARY, summary="?")
    assert render(iter([closed])).open_sections(["a"]).text == "## A\n\nAll."  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize(
    "make",
    [
        lambda: Section("A", "a", mcps=["git"]),  # pyright: ignore[reportArgumentType]
        lambda: Section("A", "a", mcps=[{"command": "x"}]),  # pyright: ignore[reportArgumentType]
        lambda: Section("A", "a", mcps=server("x")),  # pyright: ignore[reportArgumentType]
        lambda: Section("A", "a", mcps="x"),  # pyright: ignore[reportArgumentType]
        lambda: Section[None]("A", "a", children=[server("x")]),  # pyright: ignore[reportArgumentType]
        lambda: render([Section("A", "a", mcps=[lambda _: "git"])]),  # pyright: ignore[reportArgumentType]
        lambda: Section("A", "a", 5),  # pyright: ignore[reportArgumentType]
        lambda: Section("A", "a", summary=None),  # pyright: ignore[reportArgumentType]
        lambda: Section(5, "a"),  # pyright: ignore[reportArgumentType]
        lambda: Section("A", "a", mcps=[tool(answer)]),  # pyright: ignore[reportArgumentType]
        lambda: Section("A", "a", enabled="no"),  # pyright: ignore[reportArgumentType]
        lambda: Section("A", "a", enabled=None),  # pyright: ignore[reportArgumentType]
    ],
)
def test_something_else_than_a_server_is_a_type_error(make: Callable[[], object]) -> None:
    with pytest.raises(TypeError, match="Section 'a'"):
        make()


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: render(["x"]), r"sections\[0\] is of type str: expected a Section"),  # pyright: ignore[reportArgumentType]
        (lambda: render(GIT), "sections is of type Section: expected a list"),  # pyright: ignore[reportArgumentType]
        (lambda: render("x"), "sections is of type str"),  # pyright: ignore[reportArgumentType]
        (lambda: render([GIT], 5), "params is of type int"),  # pyright: ignore[reportArgumentType]
        (lambda: render([GIT]).open_sections([5]), r"paths\[0\] is of type int"),  # pyright: ignore[reportArgumentType]
        (lambda: render([GIT]).open_sections(5), "paths is of type int"),  # pyright: ignore[reportArgumentType]
    ],
)
def test_what_is_no_section_or_path_is_told_by_its_type(make: Callable[[], object], words: str) -> None:
    with pytest.raises(MisuseError, match=words):
        make()


def test_parameters_may_be_for_what_is_not_shown_yet() -> None:
    hidden = Section("In", "in", "$path", params=Database("a"))
    closed = Section("A", "a", visibility=Visibility.SUMMARY, summary="?", children=[hidden])
    prompt = render([closed], {"a.in": Database("other")})
    assert "other" in prompt.open_sections(["a.in"]).text


def answer() -> int:
    return 42


async def never(_params: Any) -> bool:
    return False


def failing(_params: Any) -> Any:
    raise ValueError("no such thing")


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Section[None]("A", "Not A Key"), "a key is"),
        (lambda: Section[None]("A", "a.b"), "a key is"),
        (lambda: render([GIT, GIT]), "another section of this path"),
        (lambda: render([Section("A", "a", enabled=failing)]), "its condition failed: ValueError: no such thing"),
        (lambda: render([Section("A", "a", enabled=cast("Any", never))]), "it is async; expected a plain function"),
        (lambda: render([Section("A", "a", "$path", params=3)]), r"its template has \$path.* They have: none"),
        (lambda: render([Section("A", "a", mcps=[failing])]), "a function in mcps failed: ValueError"),
        (lambda: render([DATABASE.clone(template="$nowhere")]), r"its template has \$nowhere"),
        (lambda: render([DATABASE.clone(template="100$")]), "begins no parameter"),
        (lambda: render([GIT], {"nowhere": 1}), "there is no such section"),
        (lambda: render([GIT, Section("A", "a", enabled=False)], {"nowhere": 1}), "there is no such section"),
        (lambda: render([ADVANCED], {"advanced.nowhere": 1}), "there is no such section"),
        (lambda: Section("A", "a", visibility=cast("Visibility", "some")), "visibility is 'some'; expected"),
    ],
)
def test_a_section_that_can_not_be_rendered_says_why(make: Callable[[], object], words: str) -> None:
    with pytest.raises(SectionError, match=words) as caught:
        make()
    assert isinstance(caught.value, ToolbridgeError)


def test_a_section_that_contains_itself_is_found_out() -> None:
    inner = Section[None]("Inner", "inner")
    outer = Section[None]("Outer", "outer", children=[inner])
    object.__setattr__(inner, "children", (outer,))  # nothing frozen can do this; what is forced is found out
    with pytest.raises(SectionError, match="it contains itself"):
        render([outer])


def test_sections_are_nested_only_so_deeply() -> None:
    section = Section[None]("S", "s")
    for _ in range(30):
        section = Section[None]("S", "s", children=[section])
    with pytest.raises(SectionError, match="nested too deeply"):
        render([section])


def test_none_is_not_given() -> None:
    nothing: Any = None
    assert Section("Data", "data", mcps=nothing, children=nothing) == Section("Data", "data")
