"""What docs/watch-runs.md says is so."""

from __future__ import annotations

import dataclasses
import re
import typing
from pathlib import Path

import pytest

from observe.examples import CALL_ENDED, CALL_STARTED, ONE_RUN
from toolbridge.events import Event
from toolbridge.observe.audit_log import AuditLog
from toolbridge.servers.registry import notify

DOCUMENT = (Path(__file__).parents[2] / "docs/watch-runs.md").read_text(encoding="utf-8")
_TIME = re.compile(r'"time": "\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"')


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", DOCUMENT, re.MULTILINE | re.DOTALL)


def test_the_example_of_the_log_is_what_is_written(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    with AuditLog(path) as log:
        for event in ONE_RUN:
            notify([log], event)
    (example,) = blocks("json")
    assert _TIME.sub("(time)", example) == _TIME.sub("(time)", path.read_text(encoding="ascii"))
    assert len(_TIME.findall(example)) == len(ONE_RUN)


def test_the_table_has_every_event_with_its_fields() -> None:
    rows = dict(re.findall(r"^\| `(\w+)` \|[^|]*\|([^|]*)\|$", DOCUMENT, re.MULTILINE))
    kinds: tuple[type[Event], ...] = typing.get_args(Event)
    fields = {kind.__name__: ", ".join(f"`{field.name}`" for field in dataclasses.fields(kind)) for kind in kinds}
    assert {name: row.strip() for name, row in rows.items()} == fields


def test_the_examples_in_python_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    first, second = blocks("python")
    names: dict[str, typing.Any] = {}
    exec(first, names)
    for event in (CALL_STARTED, dataclasses.replace(CALL_ENDED, seconds=1.5)):
        notify(names["observers"], event)
    names["observers"][0].close()
    assert names["slow"] == ["weather.get_forecast: 1.5 s, ok"]
    assert len((tmp_path / "audit.jsonl").read_text().splitlines()) == 2
    exec(second, names)
    for event in ONE_RUN:
        notify(names["observers"], event)
