"""Names of servers: what fits, what is mapped, what is refused."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolbridge.config.values import RESERVED_NAMES, check_name, name_for, twin_key
from toolbridge.errors import ConfigError

VALID = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")


@pytest.mark.parametrize("name", ["a", "0", "weather", "my-db", "my_db", "a" * 64, "9-lives_", "host", "mcp2"])
def test_a_valid_name_stays_as_it_is(name: str) -> None:
    assert (check_name(name), name_for(name)) == (name, name)


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("GitHub", "github"),
        ("file.system", "file_system"),
        ("my server", "my_server"),
        ("@scope/package", "scope_package"),
        ("io.github.someone/weather", "io_github_someone_weather"),
        ("météo", "meteo"),
        ("_private", "private"),
        ("-dash-", "dash"),
        ("a. _b", "a_b"),
        ("Straße 1", "strasse_1"),
        (" padded ", "padded"),
    ],
)
def test_a_name_of_another_tool_is_mapped(written: str, name: str) -> None:
    assert name_for(written) == name


def test_names_without_a_fitting_character_get_distinct_stable_names() -> None:
    assert name_for("天气") == name_for("天气") == "server_4d947325"
    assert name_for("天气") != name_for("新闻")


def test_long_names_that_share_a_beginning_get_distinct_names() -> None:
    one, other = name_for("x" * 80 + "a"), name_for("x" * 80 + "b")
    assert one != other
    assert [VALID.fullmatch(name) is not None for name in (one, other)] == [True, True]


@given(st.text(max_size=300))
def test_whatever_is_written_the_result_is_a_valid_name_or_a_config_error(written: str) -> None:
    try:
        name = name_for(written)
    except ConfigError:
        return
    assert VALID.fullmatch(name)
    assert "__" not in name
    assert twin_key(name) not in {twin_key(reserved) for reserved in RESERVED_NAMES}
    assert name_for(name) == name


@pytest.mark.parametrize(
    "name", ["weather\n", "\nweather", "we\tather", "a\u200bb", "a\u202eb", "a\x1b[31m", "\0", "a\ud800"]
)
def test_a_name_with_characters_that_cannot_be_seen_is_refused_not_mapped(name: str) -> None:
    with pytest.raises(ConfigError, match="can't be seen"):
        name_for(name)
    with pytest.raises(ConfigError):
        check_name(name)


@pytest.mark.parametrize("name", ["", "   ", "x" * 257])
def test_a_name_that_is_empty_or_endless_is_refused(name: str) -> None:
    with pytest.raises(ConfigError):
        name_for(name)


def test_an_error_about_a_name_quotes_it_harmlessly() -> None:
    with pytest.raises(ConfigError) as caught:
        name_for("\x1b]52;c;aGk=\x07" + "y" * 200)
    assert "\x1b" not in str(caught.value)
    assert len(str(caught.value)) < 250


def test_in_code_a_name_is_not_mapped_but_the_error_says_what_would_do() -> None:
    with pytest.raises(ConfigError, match=r"'GitHub' can't be the name of a server\..*'github' would do\.$"):
        check_name("GitHub")


def test_a_name_of_the_wrong_type_is_a_config_error() -> None:
    with pytest.raises(ConfigError, match="of type int"):
        check_name(3)


@pytest.mark.parametrize("name", ["acme__db", "a-b__c_d"])
def test_the_name_of_a_plugins_server_has_the_separator_once(name: str) -> None:
    assert check_name(name, plugin=True) == name


@pytest.mark.parametrize("name", ["db", "__db", "acme__", "a__b__c", "a___b", "Acme__db", "a__b\n"])
def test_other_names_of_plugins_servers_are_refused(name: str) -> None:
    with pytest.raises(ConfigError, match="<plugin>__<server>"):
        check_name(name, plugin=True)
