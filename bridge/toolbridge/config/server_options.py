"""The keyword arguments of the factories of `ServerConfig`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypedDict

from toolbridge.config.server_config import OAuth, Origin


class CommonOptions(TypedDict, total=False):
    """What every server can have."""

    allow_tools: Sequence[str] | None
    deny_tools: Sequence[str] | None
    output_schemas: Mapping[str, Mapping[str, Any]] | None
    reading: Literal["intended", "literal"]
    labels: Sequence[str] | None
    connect_timeout: float | None
    call_timeout: float | None
    display_name: str | None
    description: str | None
    enabled: bool
    origin: Origin


class ProcessOptions(CommonOptions, total=False):
    """What a server that is started can have."""

    cwd: str | None
    env: Mapping[str, str] | None
    env_required: Sequence[str] | None
    inherit_env: bool
    unset_env: Literal["error", "empty"]


class RemoteOptions(CommonOptions, total=False):
    """What a server that is reached by URL can have."""

    headers: Mapping[str, str] | None
    oauth: OAuth | None
    unset_env: Literal["error", "empty"]
