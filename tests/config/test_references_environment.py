"""What a server is given: references resolved once, little else of our environment, and known secrets."""

from __future__ import annotations

import base64
import contextlib
import json
import subprocess
import sys
import tracemalloc
from typing import Any

import pytest

from growth import linear
from toolbridge.config.references import ResolvedEnvironment, resolve_environment
from toolbridge.config.server_config import OAuth, ServerConfig
from toolbridge.errors import ServerEnvironmentError

TOKEN = "tok-5c1d9e77"
BASE = {
    "PATH": "/bin",
    "HOME": "/home/me",
    "LANG": "C.UTF-8",
    "LC_TIME": "C",
    "USER": "me",
    "TZ": "UTC",
    "TERM": "xterm",
}
HOST = {
    **BASE,
    "TOKEN": TOKEN,
    "EMPTY": "",
    "NESTED": "${TOKEN}",
    "AWS_SECRET_ACCESS_KEY": "host-secret-1",
    "MODE": "fast",
}


def process(**options: Any) -> ServerConfig:
    return ServerConfig.stdio("one", "x", **options)


def remote(**options: Any) -> ServerConfig:
    return ServerConfig.http("one", "https://example.com/mcp", **options)


def refusal(server: ServerConfig, environ: dict[str, str] | None = None) -> str:
    with pytest.raises(ServerEnvironmentError) as caught:
        resolve_environment(server, HOST if environ is None else environ)
    assert caught.value.server == "one"
    assert TOKEN not in str(caught.value)
    return str(caught.value)


# ---- references


def test_references_in_env_are_filled_in() -> None:
    env = {"A": "${TOKEN}", "B": "x-${env:TOKEN}-${MODE}", "C": "literal", "D": "$${TOKEN}", "E": "${EMPTY}"}
    resolved = resolve_environment(process(env=env), HOST)
    assert {name: resolved.env[name] for name in env} == {
        "A": TOKEN,
        "B": f"x-{TOKEN}-fast",
        "C": "literal",
        "D": "${TOKEN}",
        "E": "",
    }
    assert resolved.warnings == ()


def test_references_in_headers_are_filled_in() -> None:
    resolved = resolve_environment(remote(headers={"Authorization": "Bearer ${TOKEN}", "X-Mode": "${env:MODE}"}), HOST)
    assert dict(resolved.headers) == {"Authorization": f"Bearer {TOKEN}", "X-Mode": "fast"}
    assert dict(resolved.env) == {}


def test_a_value_that_looks_like_a_reference_is_not_expanded_again() -> None:
    assert resolve_environment(process(env={"A": "${NESTED}"}), HOST).env["A"] == "${TOKEN}"


def test_references_see_our_environment_not_the_servers() -> None:
    assert "not set" in refusal(process(env={"A": "1", "B": "${A}"}))


def test_an_unset_variable_is_an_error_that_names_it_and_its_place() -> None:
    assert refusal(process(env={"A": "${MISSING}"})) == (
        "Server 'one' can't be started: the variable 'MISSING' is not set (used in env.A). "
        'Set what is missing, or write "unsetEnv": "empty" to let it be empty.'
    )
    assert "'MISSING' is not set (used in headers.A)" in refusal(remote(headers={"A": "${MISSING}"}))


def test_all_unset_variables_are_named_at_once() -> None:
    message = refusal(process(env={"A": "${M1}", "B": "${M2} ${M1}"}, env_required=["M3"]))
    assert "the variables 'M1', 'M2' and 'M3' are not set (used in env.A, env.B, envRequired)" in message


def test_an_unset_variable_can_be_empty_with_a_warning() -> None:
    resolved = resolve_environment(process(env={"A": "<${MISSING}>"}, unset_env="empty"), HOST)
    assert resolved.env["A"] == "<>"
    assert resolved.warnings == ("Server 'one': the variable 'MISSING' is not set; 'env.A' is left empty there.",)


def test_a_header_that_is_left_empty_has_no_space_at_its_end() -> None:
    """A header can't end in a space: the request would fail in the HTTP library with an error of its own."""
    resolved = resolve_environment(remote(headers={"Authorization": "Bearer ${MISSING}"}, unset_env="empty"), HOST)
    assert resolved.headers["Authorization"] == "Bearer"
    assert resolved.secrets == frozenset()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("${input:api-key}", "has '${input:api-key}' in 'env.A', which only VS Code can ask for."),
        ("${VAR:-hidden-default}", "has '${VAR…' in 'env.A', which is no reference."),
        ("pa${ss", "has '${…' in 'env.A', which is no reference."),
    ],
)
def test_another_form_of_reference_stops_that_server(text: str, message: str) -> None:
    found = refusal(process(env={"A": text}))
    assert message in found
    assert "hidden-default" not in found


@pytest.mark.parametrize(
    "server",
    [
        ServerConfig.stdio("one", "${input:bin}"),
        ServerConfig.stdio("one", "x", ["--key=${input:key}"]),
        ServerConfig.http("one", "https://example.com/${input:path}"),
    ],
)
def test_an_input_in_a_command_or_url_stops_that_server(server: ServerConfig) -> None:
    assert "which only VS Code can ask for" in refusal(server)


def test_references_in_command_args_and_url_are_never_filled_in() -> None:
    server = ServerConfig.stdio("one", "${TOKEN}", ["${TOKEN}"])
    resolved = resolve_environment(server, HOST)
    assert (server.command, server.args) == ("${TOKEN}", ("${TOKEN}",))
    assert TOKEN not in str(dict(resolved.env))


# ---- the child's environment


def test_a_child_gets_the_base_and_nothing_else() -> None:
    assert dict(resolve_environment(process(), HOST).env) == BASE


def test_a_shell_function_in_the_environment_is_not_passed_on() -> None:
    assert "LC_X" not in resolve_environment(process(), {**BASE, "LC_X": "() { :; }; evil"}).env


def test_the_whole_environment_is_passed_only_on_request() -> None:
    resolved = resolve_environment(process(inherit_env=True, env={"MODE": "slow"}), HOST)
    assert dict(resolved.env) == {**HOST, "MODE": "slow"}


def test_required_variables_are_forwarded_and_only_those() -> None:
    resolved = resolve_environment(process(env_required=["TOKEN", "EMPTY"]), HOST)
    assert dict(resolved.env) == {**BASE, "TOKEN": TOKEN, "EMPTY": ""}


def test_a_missing_required_variable_is_an_error_even_where_unset_ones_are_empty() -> None:
    message = refusal(process(env_required=["MISSING"], unset_env="empty"))
    assert message == (
        "Server 'one' can't be started: the variable 'MISSING' is not set (used in envRequired). Set what is missing."
    )


def test_what_is_declared_wins_over_the_base() -> None:
    assert resolve_environment(process(env={"PATH": "/opt/bin:${PATH}"}), HOST).env["PATH"] == "/opt/bin:/bin"


def test_a_real_child_sees_exactly_this_environment() -> None:
    resolved = resolve_environment(process(env={"A": "${TOKEN}"}), HOST)
    script = "import json, os; print(json.dumps(dict(os.environ)))"
    done = subprocess.run([sys.executable, "-c", script], env=dict(resolved.env), capture_output=True, check=True)
    seen: dict[str, str] = json.loads(done.stdout)
    seen.pop("__CF_USER_TEXT_ENCODING", None)  # put in by macOS itself
    assert seen == {**BASE, "A": TOKEN}


# ---- values that can't be used


@pytest.mark.parametrize("value", [f"{TOKEN}\n", f"{TOKEN}\r\nX-Evil: 1", f"\n{TOKEN}"])
def test_a_line_break_in_a_variable_can_not_begin_another_header(value: str) -> None:
    message = refusal(remote(headers={"Authorization": "Bearer ${T}"}), {"T": value})
    assert message.startswith("Server 'one' can't be reached: 'headers.Authorization' has a line break")


@pytest.mark.parametrize("value", [f"{TOKEN}é", f"{TOKEN}\x00", f"{TOKEN}\udcff", f"\x1b{TOKEN}"])
def test_a_character_that_no_header_can_hold_is_refused(value: str) -> None:
    assert "only printable ASCII can be sent" in refusal(remote(headers={"A": "${T}"}), {"T": value})


def test_a_nul_in_a_variable_is_refused() -> None:
    assert "'env.A' has a NUL character" in refusal(process(env={"A": "${T}"}), {**BASE, "T": f"{TOKEN}\0"})


# ---- secrets


def test_values_of_references_and_required_variables_are_secrets() -> None:
    server = process(env={"HARMLESS": "${TOKEN}"}, env_required=["AWS_SECRET_ACCESS_KEY"])
    assert resolve_environment(server, HOST).secrets == {TOKEN, "host-secret-1"}


def test_the_token_of_a_header_is_a_secret_with_and_without_its_scheme() -> None:
    resolved = resolve_environment(remote(headers={"Authorization": "Bearer literal-token"}), HOST)
    assert resolved.secrets == {"Bearer literal-token", "literal-token"}


def test_the_password_of_basic_authentication_is_a_secret() -> None:
    pair = base64.b64encode(b"me:open sesame").decode()
    resolved = resolve_environment(remote(headers={"Authorization": f"Basic {pair}"}), HOST)
    assert resolved.secrets == {f"Basic {pair}", pair, "me:open sesame", "open sesame"}


@pytest.mark.parametrize(
    "name",
    [
        "API_KEY",
        "apiKey",
        "GITHUB_TOKEN",
        "PASSWORD",
        "DB_PASSWD",
        "X-Auth",
        "CLIENT_SECRET",
        "Cookie",
        "SENTRY_DSN",
        "GH_PAT",
    ],
)
def test_a_literal_under_a_secret_sounding_name_is_a_secret(name: str) -> None:
    assert resolve_environment(process(env={name: "abcd1234"}), HOST).secrets == {"abcd1234"}


@pytest.mark.parametrize("name", ["LOG_LEVEL", "PATH_PREFIX", "MODE", "PATTERN", "DEBUG"])
def test_a_literal_under_another_name_is_not(name: str) -> None:
    assert resolve_environment(process(env={name: "abcd1234"}), HOST).secrets == frozenset()


def test_the_password_in_a_url_is_a_secret_wherever_it_stands() -> None:
    server = process(env={"DB": "postgres://app:hunter22@db/app", "OTHER": "${URL}"})
    resolved = resolve_environment(server, {**HOST, "URL": "redis://:other-pw@r"})
    assert resolved.secrets == {"hunter22", "redis://:other-pw@r", "other-pw"}


def test_a_secret_in_the_query_of_a_url_is_one() -> None:
    server = ServerConfig.http("one", "https://example.com/mcp?api_key=query-secret&lang=german")
    assert resolve_environment(server, HOST).secrets == {"query-secret"}


def test_the_secrets_of_a_whole_inherited_environment_are_known() -> None:
    assert resolve_environment(process(inherit_env=True), HOST).secrets == {TOKEN, "host-secret-1"}


def test_what_would_mask_ordinary_words_is_left_out() -> None:
    environ = {**HOST, "A": "abc", "B": "true", "C": "None"}
    server = process(env={"X": "${A}", "Y": "${B}", "Z_KEY": "${C}", "HOMEDIR": "${HOME}", "WHO": "${USER}"})
    assert resolve_environment(server, environ).secrets == frozenset()


def test_the_secret_of_oauth_is_resolved_and_known() -> None:
    server = remote(oauth=OAuth(client_id="me", client_secret="${TOKEN}"))
    resolved = resolve_environment(server, HOST)
    assert (resolved.client_secret, resolved.secrets) == (TOKEN, {TOKEN})
    assert "oauth.clientSecret" in refusal(server, {})


def test_a_hostile_megabyte_takes_time_in_proportion() -> None:
    def resolved(text: str) -> None:
        with contextlib.suppress(ServerEnvironmentError):
            resolve_environment(ServerConfig("one", "stdio", command="x", env={"A_KEY": text}), HOST)

    for piece in ("://a:", "://", "${", "$${", "@:", "Basic "):
        linear(resolved, (piece * (50_000 // len(piece))).__mul__, 8)


def test_a_short_file_can_not_become_gigabytes_by_naming_a_long_variable_often() -> None:
    environ = {**BASE, "LONG": "x" * 100_000}
    tracemalloc.start()
    try:
        message = refusal(process(env={"A": "${LONG}" * 100_000}), environ)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert "its references give more than 1,000,000 characters" in message
    assert peak < 50_000_000


@pytest.mark.parametrize("unset", ["error", "empty"])
def test_thousands_of_unset_variables_make_no_endless_message(unset: Any) -> None:
    server = process(env={"A": "".join(f"${{V{index}}}" for index in range(10_000))}, unset_env=unset)
    if unset == "error":
        assert len(refusal(server)) < 2_000
    else:
        assert len(resolve_environment(server, HOST).warnings) == 20


# ---- printing


def test_printing_shows_names_and_no_values() -> None:
    resolved = resolve_environment(process(env={"A": "${TOKEN}", "B_KEY": "literal-9"}), HOST)
    assert isinstance(resolved, ResolvedEnvironment)
    for text in (repr(resolved), str(resolved), f"{resolved}"):
        assert "'B_KEY'" in text
        assert [value for value in (TOKEN, "literal-9", "/home/me") if value in text] == []
