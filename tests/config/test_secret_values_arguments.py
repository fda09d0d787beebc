"""Secrets that somebody wrote into a command, a header or a variable whose name says nothing."""

from __future__ import annotations

import pytest

from toolbridge.config.config import Config
from toolbridge.config.references import resolve_environment
from toolbridge.config.secret_values import masked_arguments
from toolbridge.config.server_config import Origin, ServerConfig
from toolbridge.sources.merge import shown_config

GITHUB = "ghp_" + "a1B2" * 9
ARGUMENTS = ("--token", "tok-in-args-abcdef", "--api-key=key-in-args-1", "--db", "postgres://u:dbpassword1@h/x", GITHUB)
SECRETS = ("tok-in-args-abcdef", "key-in-args-1", "dbpassword1", GITHUB)


def test_what_is_shown_of_arguments_has_masks() -> None:
    assert list(masked_arguments(ARGUMENTS)) == ["--token", "***", "--api-key=***", "--db", "postgres://***@h/x", "***"]


def test_no_repr_and_no_dry_run_shows_a_secret_argument() -> None:
    server = ServerConfig.stdio("shop", "shop", list(ARGUMENTS)).with_origin(Origin("user", "config.json"))
    for text in (repr(server), repr(shown_config(Config.of(server)))):
        assert not [secret for secret in SECRETS if secret in text]
        assert "--db" in text


def test_secret_arguments_are_masked_in_what_the_server_says() -> None:
    found = resolve_environment(ServerConfig.stdio("shop", "shop", list(ARGUMENTS)), {}).secrets
    assert found >= set(SECRETS)


def test_what_only_sounds_secret_is_not_masked_in_what_the_server_says() -> None:
    arguments = ["--max-tokens", "4096", "--private-key", "/etc/keys/server.pem", "--verbose", "plain words"]
    assert resolve_environment(ServerConfig.stdio("shop", "shop", arguments), {}).secrets == frozenset()


@pytest.mark.parametrize(
    "token",
    [
        GITHUB,
        "github_pat_11ABCDEFG0abcdefghijkl_MNOPQR",
        "sk-proj-abcdefghijklmnop1234",
        "xoxb-1234567890-abcdefghij",
        "AKIAIOSFODNN7EXAMPLE",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl",
        "glpat-abcdefghijklmnop1234",
    ],
)
def test_a_token_is_known_by_its_shape(token: str) -> None:
    server = ServerConfig.stdio("shop", "shop", env={"GH": token, "LINE": f"use {token}, please"})
    assert resolve_environment(server, {}).secrets == {token}


def test_every_header_is_a_secret_unless_everybody_sends_it() -> None:
    headers = {
        "X-Access": "supersecretvalue1",
        "Accept-Language": "en-GB, de",
        "User-Agent": "some-client/1.0",
        "X-V": "v1",
    }
    server = ServerConfig.http("shop", "https://shop.example/mcp", headers=headers)
    assert resolve_environment(server, {}).secrets == {"supersecretvalue1"}
