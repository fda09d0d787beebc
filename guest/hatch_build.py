"""The wheel's build hook: makes sure that the guest images are built and up to date."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

sys.path.insert(0, str(Path(__file__).resolve().parent))


class GuestImageHook(BuildHookInterface[Any]):
    """Builds what `guest/build.py` builds, before the wheel is put together."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Called by hatchling before it collects the wheel's files."""
        del version, build_data
        from build import BuildError, build_all

        try:
            for problem in build_all():
                self.app.display_warning(problem)
        except BuildError as error:
            self.app.abort(str(error))
