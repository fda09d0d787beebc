"""`toolbridge run --dry-run`: the merged configuration, and why each server is in it. No value of a secret is shown."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict

from toolbridge.cli.exit_codes import OK
from toolbridge.cli.server_choice import ServerChoice, chosen_servers
from toolbridge.cli.terminal import write
from toolbridge.servers.events import ServerCollided


def show_servers(choice: ServerChoice) -> int:
    """Print one JSON object: `mcpServers` as a file would have them, `why` each is there, and what is left out."""
    from toolbridge.sources.shown_config import shown_config

    merged = chosen_servers(choice)
    servers = merged.config.servers
    collided = [event for event in merged.events if isinstance(event, ServerCollided)]
    facts = {
        **shown_config(merged.config),
        "why": {
            name: {"origin": str(servers[name].origin), "reason": merged.reasons[name]} for name in sorted(servers)
        },
        "collisions": [asdict(event) for event in collided],
        "ignored": [asdict(event) for event in merged.events if event not in collided],
    }
    write(sys.stdout, json.dumps(facts, indent=2, ensure_ascii=False) + "\n")
    return OK
