"""Loads documents as a person's file, and tells what is wrong with them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from toolbridge.config.config import Config, load_config
from toolbridge.config.server_config import ServerConfig
from toolbridge.errors import ConfigError

HOME = "/home/somebody"


class Loader:
    """Loads a document as `toolbridge.json` of a project."""

    def __init__(self, directory: Path) -> None:
        self.path = directory / "toolbridge.json"

    def __call__(self, document: object) -> Config:
        self.path.write_text(json.dumps(document), encoding="utf-8")
        return load_config(self.path, environ={"HOME": HOME})

    def server(self, entry: dict[str, Any], form: str = "mcpServers") -> ServerConfig:
        return self({form: {"one": entry}}).servers["one"]

    def problems(self, document: object) -> list[ConfigError]:
        with pytest.raises(ConfigError) as caught:
            self(document)
        assert {problem.file for problem in caught.value.problems} == {str(self.path)}
        return list(caught.value.problems)

    def problem(self, entry: object) -> ConfigError:
        (problem,) = self.problems({"mcpServers": {"one": entry}})
        assert problem.server == "one"
        return problem
