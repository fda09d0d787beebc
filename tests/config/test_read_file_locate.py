"""The places where configuration is looked for."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from toolbridge.config.read_file import PROJECT_FILES, Candidate, home_directory, locate, user_directory
from toolbridge.errors import ConfigError


def write(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text('{"mcpServers": {}}')
    return path


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "project").mkdir()
    return tmp_path / "project"


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    return {"TOOLBRIDGE_CONFIG_DIR": str(tmp_path / "user")}


def used(candidates: tuple[Candidate, ...]) -> list[str]:
    return [candidate.path for candidate in candidates if candidate.used]


def test_the_project_files_are_looked_for_in_this_order() -> None:
    assert PROJECT_FILES == ("toolbridge.json", ".agents/mcp.json", ".vscode/mcp.json", ".mcp.json")


def test_every_place_is_told_even_if_nothing_is_there(project: Path, environ: dict[str, str], tmp_path: Path) -> None:
    found = locate(None, directory=project, environ=environ)
    assert [(each.path, each.origin, each.exists, each.used) for each in found] == [
        *((str(project / name), "project", False, False) for name in PROJECT_FILES),
        (str(tmp_path / "user" / "config.json"), "user", False, False),
    ]


@pytest.mark.parametrize("first", range(len(PROJECT_FILES)))
def test_the_first_project_file_that_exists_is_used_beside_the_users(
    project: Path, environ: dict[str, str], tmp_path: Path, first: int
) -> None:
    paths = [write(project / name) for name in PROJECT_FILES[first:]]
    users = write(tmp_path / "user" / "config.json")
    found = locate(None, directory=project, environ=environ)
    assert used(found) == [str(paths[0]), str(users)]
    assert [each.exists for each in found] == [index >= first for index in range(len(PROJECT_FILES))] + [True]


def test_a_given_file_is_the_only_one_used(project: Path, environ: dict[str, str], tmp_path: Path) -> None:
    write(project / "toolbridge.json")
    write(tmp_path / "user" / "config.json")
    given = write(tmp_path / "elsewhere" / "my.json")
    found = locate(given, directory=project, environ=environ)
    assert used(found) == [str(given)]
    assert [each.exists for each in found] == [True, True, False, False, False, True]
    assert [each.given for each in found] == [True, False, False, False, False, False]


def test_a_given_file_that_is_missing_is_still_the_one_used(project: Path, environ: dict[str, str]) -> None:
    found = locate("my.json", directory=project, environ=environ)
    assert (found[0].path, found[0].exists, found[0].used) == (str(project / "my.json"), False, True)


def test_a_dangling_link_counts_as_there_so_that_it_is_not_passed_over_in_silence(
    project: Path, environ: dict[str, str]
) -> None:
    (project / "toolbridge.json").symlink_to(project / "gone.json")
    write(project / ".mcp.json")
    assert used(locate(None, directory=project, environ=environ)) == [str(project / "toolbridge.json")]


@pytest.mark.parametrize("file", ["", "a\0b"])
def test_what_can_not_be_a_path_is_a_config_error(project: Path, environ: dict[str, str], file: str) -> None:
    with pytest.raises(ConfigError, match="is not the path of a file"):
        locate(file, directory=project, environ=environ)


# ---- origins


@pytest.mark.parametrize("inside", ["config.json", "work/servers.json"])
def test_a_given_file_in_the_users_directory_is_the_users(
    project: Path, environ: dict[str, str], tmp_path: Path, inside: str
) -> None:
    given = write(tmp_path / "user" / inside)
    assert locate(given, directory=project, environ=environ)[0].origin == "user"


def test_a_link_in_the_users_directory_is_the_users_own_doing(
    project: Path, environ: dict[str, str], tmp_path: Path
) -> None:
    target = write(tmp_path / "dotfiles" / "config.json")
    (tmp_path / "user").mkdir()
    (tmp_path / "user" / "config.json").symlink_to(target)
    found = locate(tmp_path / "user" / "config.json", directory=project, environ=environ)
    assert (found[0].origin, found[0].path) == ("user", str(tmp_path / "user" / "config.json"))


def test_a_repository_can_not_pass_for_the_user(project: Path, environ: dict[str, str], tmp_path: Path) -> None:
    users = write(tmp_path / "user" / "config.json")
    write(tmp_path / "users-twin" / "config.json")
    (project / "toolbridge.json").symlink_to(users)
    (tmp_path / "user" / "link").symlink_to(project)
    write(project / "evil.json")
    for path in (
        project / "toolbridge.json",  # leads to the user's file, but it is the repository that says so
        tmp_path / "users-twin" / "config.json",
        tmp_path / "user" / ".." / "project" / "evil.json",
        tmp_path / "user" / "link" / "evil.json",  # in the repository, whichever way it is reached
    ):
        assert locate(path, directory=project, environ=environ)[0].origin == "project", path


def test_a_file_has_one_path_however_its_directory_is_reached(
    project: Path, environ: dict[str, str], tmp_path: Path
) -> None:
    given = write(project / "sub" / "a.json")
    (tmp_path / "link").symlink_to(project)
    for path in (given, tmp_path / "link" / "sub" / "a.json", project / "sub" / ".." / "sub" / "a.json"):
        assert locate(path, directory=tmp_path, environ=environ)[0].path == str(given)
    assert locate("sub/a.json", directory=tmp_path / "link", environ=environ)[0].path == str(given)


# ---- directories


@pytest.mark.parametrize(
    ("file", "base"),
    [("toolbridge.json", "."), (".agents/mcp.json", "."), (".vscode/mcp.json", "."), ("sub/mcp.json", "sub")],
)
def test_a_relative_directory_starts_from_the_project_not_from_a_tools_folder(
    project: Path, environ: dict[str, str], file: str, base: str
) -> None:
    given = write(project / file)
    assert locate(given, directory=project, environ=environ)[0].base == str((project / base).resolve())


@pytest.mark.skipif(sys.platform == "darwin", reason="XDG is Linux's")
def test_the_users_directory_follows_xdg() -> None:
    assert user_directory({"HOME": "/home/me"}) == "/home/me/.config/toolbridge"
    assert user_directory({"HOME": "/home/me", "XDG_CONFIG_HOME": "/etc/me"}) == "/etc/me/toolbridge"
    assert user_directory({"HOME": "/home/me", "XDG_CONFIG_HOME": "relative"}) == "/home/me/.config/toolbridge"
    assert user_directory({"HOME": "/home/me", "TOOLBRIDGE_CONFIG_DIR": "/cfg"}) == "/cfg"


def test_without_a_home_in_the_environment_the_accounts_home_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.path.expanduser", lambda _path: "/home/account")  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
    assert home_directory({}) == "/home/account"


@pytest.mark.parametrize("home", [".", "~", "relative/home"])
def test_a_repository_can_not_be_the_users_home(project: Path, home: str) -> None:
    """Without a home, `~` would be a directory of that name in whichever repository is the current directory."""
    write(project / home / ".config" / "toolbridge" / "config.json")
    environ = {"HOME": home, "APPDATA": home}
    assert user_directory(environ) is None
    assert {each.origin for each in locate(None, directory=project, environ=environ)} == {"project"}


def test_the_users_directory_is_not_relative(project: Path) -> None:
    with pytest.raises(ConfigError, match="TOOLBRIDGE_CONFIG_DIR is not an absolute path"):
        locate(None, directory=project, environ={"TOOLBRIDGE_CONFIG_DIR": "user"})
