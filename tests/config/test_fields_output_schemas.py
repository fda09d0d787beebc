"""Schemas of results in a file beside the configuration."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from toolbridge import ConfigError, load_config
from toolbridge.config.profiles import with_profiles

SCHEMA = {"type": "array", "items": {"type": "string"}}


def configured(directory: Path, entry: dict[str, Any], **more: Any) -> Path:
    path = directory / "toolbridge.json"
    path.write_text(json.dumps({"mcpServers": {"weather": {"command": "x", **entry}}, **more}))
    return path


def test_a_file_is_found_beside_the_configuration(tmp_path: Path) -> None:
    (tmp_path / "outputs.json").write_text(json.dumps({"list_stations": SCHEMA}))
    config = load_config(configured(tmp_path, {"outputSchemas": "outputs.json"}))
    assert config.servers["weather"].output_schemas == {"list_stations": SCHEMA}


def test_a_profile_may_have_others(tmp_path: Path) -> None:
    (tmp_path / "outputs.json").write_text(json.dumps({"list_stations": SCHEMA}))
    profile = {"overrides": {"weather": {"outputSchemas": "outputs.json"}}}
    config = load_config(configured(tmp_path, {}, profiles={"typed": profile}))
    chosen = with_profiles(config, ["typed"])
    assert chosen.servers["weather"].output_schemas == {"list_stations": SCHEMA}


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (None, "outputs.json: there is no such file."),
        ("{", "outputs.json: is not JSON"),
        ("[]", "outputs.json: expected an object, found a list."),
        ('{"list_stations": "array"}', "'outputSchemas.list_stations': expected an object"),
    ],
)
def test_a_file_that_is_wrong_says_what_is_wrong_and_where(tmp_path: Path, content: str | None, problem: str) -> None:
    if content is not None:
        (tmp_path / "outputs.json").write_text(content)
    with pytest.raises(ConfigError) as caught:
        load_config(configured(tmp_path, {"outputSchemas": "outputs.json"}))
    assert problem in str(caught.value)
    assert "weather" in str(caught.value)
