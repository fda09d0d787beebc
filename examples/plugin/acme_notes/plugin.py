"""What toolbridge asks: which servers are there, and which tasks want them?"""

import sys

from toolbridge import hookimpl


class AcmePlugin:
    """Offers one server. It is known as `acme__notes`, and started only once somebody approved it."""

    @hookimpl
    def provide_mcp_servers(self) -> list[dict[str, object]]:
        return [
            {
                "name": "notes",
                "command": sys.executable,  # for an npm package, "package": "@acme/notes" alone would do
                "args": ["-m", "acme_notes.server"],
                "env_required": ["ACME_NOTES"],  # the only variable of yours that it gets: a file with notes
                "capabilities": ["notes", "read"],
                "keywords": ["shared notes", "meeting"],
            }
        ]
