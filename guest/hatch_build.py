"""The wheel's build hook: builds the guest images that are not up to date, and their SBOM."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, cast

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

sys.path.insert(0, str(Path(__file__).resolve().parent))


class GuestImageHook(BuildHookInterface[Any]):
    """Runs `guest/build.py` before hatchling collects the wheel's files."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Builds outdated images (for minutes), and adds their SBOM to `build_data`.

        Ends hatchling's build if an essential image can't be built; others are a warning.
        """
        del version
        from build import CACHE, IMAGES, BuildError, build_all
        from sbom import write_sbom

        try:
            for problem in build_all():
                self.app.display_warning(problem)
        except BuildError as error:
            self.app.abort(str(error))
        hook = cast(Any, self)  # hatchling's own types are partly unknown
        path = write_sbom(CACHE, hook.metadata.version, IMAGES)
        build_data["sbom_files"].append(str(path.relative_to(self.root)))
