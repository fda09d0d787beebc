"""What a client of `toolbridge serve` is shown, against the definitions of the servers behind it.

cd tests && ../.venv/bin/python -m serve.sizes
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass

from codegen import corpus
from describe.documents import DOCS, Size, definitions
from toolbridge.describe.modules import list_modules
from toolbridge.serve.definitions import instructions, module_names, tools
from toolbridge_codegen.catalog import ServerListing, build_catalog

FIVE = ("server-everything", "server-filesystem", "server-memory", "server-git", "excel-mcp-server")
"""Those of the test from end to end."""
_HOW = "cd tests && ../.venv/bin/python -m serve.sizes"
_MARKS = re.compile(r"(<!-- table: serve-size -->\n\n).*?(\n\n<!-- end -->)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Measured:
    """One line of the table."""

    what: str
    tools: int
    raw: Size
    shown: Size

    @property
    def share(self) -> float:
        return self.shown.tokens / self.raw.tokens

    def row(self) -> str:
        return f"| {self.what} | {self.tools} | {self.raw} | {self.shown} | {self.share:.1%} |"


def measure(what: str, listings: Iterable[ServerListing], *, management: bool) -> Measured:
    """All that a model is given to read of us, with the names of these servers in it."""
    listings = list(listings)
    modules = list_modules(build_catalog(listings))
    shown = [
        {"name": tool.name, "description": tool.description, "input_schema": tool.input_schema}
        for tool in tools(module_names(modules), most_seconds=30.0, sessions=True, management=management)
    ]
    text = json.dumps(shown, ensure_ascii=False, separators=(",", ":")) + instructions(modules)
    raw = [Size.of(definitions(listing)) for listing in listings]
    total = Size(sum(size.characters for size in raw), sum(size.tokens for size in raw))
    return Measured(what, sum(len(listing.tools) for listing in listings), total, Size.of(text))


def measured() -> list[Measured]:
    """Every line of the table."""
    every = [each.listing for each in corpus.real_listings()]
    five = [listing for listing in every if listing.server.endswith(FIVE)]
    assert len(five) == len(FIVE)
    return [
        measure("five servers", five, management=True),
        measure("the same, `--no-management`", five, management=False),
        measure("twenty servers", every, management=True),
    ]


def table() -> str:
    """The table of docs/serve-to-clients.md."""
    head = [
        "| servers | tools | their definitions | what a client is shown | share |",
        "| --- | ---: | ---: | ---: | ---: |",
    ]
    return "\n".join([*head, *(each.row() for each in measured())])


def written() -> str:
    """The table as the document has it."""
    found = _MARKS.search((DOCS / "serve-to-clients.md").read_text(encoding="utf-8"))
    assert found is not None
    return found[0].split("\n\n", 1)[1].rsplit("\n\n", 1)[0]


def main() -> None:
    """Renew it."""
    path = DOCS / "serve-to-clients.md"
    text = path.read_text(encoding="utf-8")
    path.write_text(_MARKS.sub(lambda match: match[1] + table() + match[2], text), encoding="utf-8")


if __name__ == "__main__":
    main()
    sys.stdout.write(table() + "\n")
