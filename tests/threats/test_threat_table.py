"""Table, tests, document, report and self-test speak of the same threats: what one of them has, all have."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import replace
from functools import cache
from pathlib import Path
from xml.etree import ElementTree

import pytest

from threats.report.case_results import CaseResult, by_threat, sentence_of, without_paths
from threats.report.html_page import html_page
from threats.report.markdown_page import markdown_page
from threats.report.sarif import sarif_text
from threats.report.summary import Facts, Report
from threats.selftest.mitigations import MITIGATIONS
from threats.selftest.switched_off import applied
from threats.selftest.trial import switch_off_and_run
from threats.threat_table import BY_ID, THREATS, threat_of
from toolbridge.boundary import component_imports, imports

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).parent
DOCUMENT = ROOT / "docs" / "THREAT-MODEL.md"


@cache
def document_rows() -> dict[str, list[str]]:
    """The cells of the document's table, by ID."""
    text = DOCUMENT.read_text(encoding="utf-8")
    table = text.partition("<!-- table: threats -->")[2].partition("<!-- end -->")[0]
    rows = [[cell.strip() for cell in line.strip("| ").split(" | ")] for line in table.strip().splitlines()[2:]]
    return {row[0]: row for row in rows}


def test_there_are_35_threats_in_order() -> None:
    assert [threat.id for threat in THREATS] == [f"T{number}" for number in range(1, 36)]
    assert len({threat.title for threat in THREATS}) == len(THREATS)
    assert all(threat.promise.endswith(".") for threat in THREATS)


def test_every_file_of_tests_is_about_a_threat_or_about_the_suite() -> None:
    others = {path.name for path in HERE.glob("test_*.py") if threat_of(path.name) is None}
    assert others == {"test_threat_table.py"}


@pytest.mark.parametrize(("name", "expected"), [("test_t07_x.py", "T7"), ("a/b/test_t35_x_y.py", "T35")])
def test_a_file_belongs_to_the_threat_in_its_name(name: str, expected: str) -> None:
    threat = threat_of(name)
    assert threat is not None
    assert threat.id == expected
    for other in ("test_t7_x.py", "test_t36_x.py", "test_t00_x.py", "t07_x.py", "test_x.py"):
        assert threat_of(other) is None


# ---- the document


def test_the_document_has_a_row_for_every_threat_and_no_other() -> None:
    assert list(document_rows()) == [threat.id for threat in THREATS]
    for threat in THREATS:
        assert document_rows()[threat.id][1:4] == [threat.title, threat.severity, threat.likelihood], threat.id


@pytest.mark.parametrize("identity", BY_ID)
def test_a_row_says_what_holds_where_and_what_is_left(identity: str) -> None:
    _, _, _, _, holds, where, left, tests = document_rows()[identity]
    assert len(holds) > 30
    assert left
    files = re.findall(r"`([\w./-]+\.py)`", where)
    assert files
    for file in files:
        assert (ROOT / "bridge" / "toolbridge" / file).is_file() or (ROOT / file).is_file(), file
    of_threat = {path.name for path in HERE.glob(f"test_t{BY_ID[identity].number:02}_*.py")}
    assert of_threat
    assert re.findall(r"`([^`]+)`", tests) == sorted(of_threat)


def test_the_promise_names_as_many_imports_as_there_are() -> None:
    words = ["none", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]
    of_javascript = words[len([*imports.IMPORTS, imports.LEAVE])]
    of_python = words[len(component_imports.IMPORTS[""])]
    promise = (ROOT / ".github" / "SECURITY.md").read_text(encoding="utf-8")
    assert f"(JavaScript: {of_javascript}," in promise
    assert f"(Python: {of_python}," in promise
    assert f"JavaScript has {of_javascript} imports and no WASI; Python {of_python}," in document_rows()["T32"][4]


def test_ids_elsewhere_in_documents_are_known() -> None:
    for path in [*(ROOT / "docs").glob("*.md"), ROOT / ".github" / "SECURITY.md"]:
        for identity in re.findall(r"\bT\d{1,2}\b", path.read_text(encoding="utf-8")):
            assert identity in BY_ID, f"{path.name} speaks of {identity}"


# ---- the self-test: its run takes minutes, so that here only its table is checked


def test_every_threat_has_a_mitigation_that_is_switched_off() -> None:
    assert {each.threat for each in MITIGATIONS} == set(BY_ID)
    assert len({(each.threat, each.what) for each in MITIGATIONS}) == len(MITIGATIONS)


def test_every_mitigation_can_still_be_switched_off() -> None:
    """The text is there exactly once, what comes in its place is Python, and the tests that must notice exist."""
    wrong: list[str] = []
    for switched in MITIGATIONS:
        try:
            compile(applied(switched, ROOT), switched.file, "exec", dont_inherit=True)
        except Exception as error:
            wrong.append(f"{switched.threat}, {switched.what}: {error}")
        for test in switched.tests:
            file, _, name = test.partition("::")
            found = threat_of(file) is not None and (not name or f"def {name}(" in (HERE / file).read_text("utf-8"))
            wrong += [] if found else [f"{switched.threat}, {switched.what}: there is no {test}"]
    assert wrong == []


def test_the_self_test_tells_what_is_noticed_from_what_is_not() -> None:
    mitigation = next(each for each in MITIGATIONS if each.what == "refuse names with __")
    assert switch_off_and_run(mitigation, ROOT).verdict == "noticed"
    harmless = replace(mitigation, instead=f"{mitigation.text}  # nothing is switched off")
    assert switch_off_and_run(harmless, ROOT).verdict == "unnoticed"
    assert switch_off_and_run(replace(mitigation, instead="if ("), ROOT).verdict == "broken"
    assert switch_off_and_run(replace(mitigation, text="no such text"), ROOT).verdict == "not found"
    assert mitigation.text in (ROOT / mitigation.file).read_text(encoding="utf-8"), "the working tree was changed"


# ---- the report


def a_report(outcome: str) -> Report:
    results = [
        (
            threat,
            CaseResult(f"tests/threats/test_t{threat.number:02}_x.py", "test_it_holds", str(number), "passed", 0.1),
        )
        for threat in THREATS
        for number in range(10)
    ]
    hostile = '<script>x</script> | ``` ~~~~~~ "\x00'.replace("\x00", "")
    if outcome == "failed":
        results.append(
            (THREATS[6], CaseResult("tests/threats/test_t07_x.py", "test_no", hostile, "failed", 1, 7, hostile))
        )
    if outcome == "skipped":
        no_wall = CaseResult("tests/threats/test_t02_x.py", "test_wall", "bwrap", "skipped", 0, 7, "bwrap is not here")
        results.append((THREATS[1], no_wall))
    if outcome == "missing":
        results = [(threat, result) for threat, result in results if threat.id != "T7"]
    return Report(Facts("2026-01-01", "1.0", "3.11", "Linux", 61.0), by_threat(results))


@pytest.mark.parametrize(
    ("outcome", "verdict", "sentence"),
    [
        ("passed", "holds", "35 of 35 threats held, in 350 cases."),
        ("failed", "broken", "34 of 35 threats held, in 351 cases. BROKEN: T7."),
        (
            "skipped",
            "holds",
            "35 of 35 threats held, in 351 cases. Not all was tried here: T2 (1 skipped: bwrap is not here).",
        ),
        ("missing", "untested", "34 of 35 threats held, in 340 cases. Not tested: T7."),
    ],
)
def test_the_report_says_what_became_of_every_threat(outcome: str, verdict: str, sentence: str) -> None:
    report = a_report(outcome)
    assert report.sentence == sentence
    assert report.is_whole == (outcome in ("passed", "skipped"))
    assert next(row for row in report.rows if row.threat.id == "T7").verdict == verdict
    page, markdown = html_page(report), markdown_page(report)
    for threat in THREATS:
        assert f'<details id="{threat.id}"' in page
        assert re.search(rf"^\| {threat.id} \| {re.escape(threat.title)} \|", markdown, re.MULTILINE)
    for text in (page, markdown):
        assert sentence in text
        assert "It holds" in text
    document = json.loads(sarif_text(report))
    (run,) = document["runs"]
    assert [rule["id"] for rule in run["tool"]["driver"]["rules"]] == list(BY_ID)
    kinds = {result["ruleId"]: (result["kind"], result["level"]) for result in run["results"]}
    expected = {
        "passed": ("pass", "none"),
        "skipped": ("pass", "none"),
        "failed": ("fail", "error"),
        "missing": ("open", "none"),
    }
    assert kinds == dict.fromkeys(BY_ID, ("pass", "none")) | {"T7": expected[outcome]}


def test_what_was_skipped_is_said_in_its_row_with_the_reason() -> None:
    report = a_report("skipped")
    row = next(line for line in markdown_page(report).splitlines() if line.startswith("| T2 |"))
    assert "| holds; 1 skipped: bwrap is not here |" in row
    page = html_page(report)
    assert '<span class="result skipped">holds, 1 skipped</span>' in page
    assert "<p>1 skipped: bwrap is not here</p>" in page
    assert "holds in 10 cases. 1 skipped: bwrap is not here" in sarif_text(report)


def test_a_page_needs_nothing_from_elsewhere_and_shows_hostile_text_as_text() -> None:
    page = html_page(a_report("failed"))
    assert "<script" not in page
    assert "&lt;script&gt;" in page
    assert "http://" not in page.replace("http-equiv", "")
    assert "https://" not in page
    assert "default-src 'none'" in page
    # Well-formed, but for the one tag that HTML leaves open and the entity that XML lacks.
    body = page[page.index("<body>") : page.index("</body>") + 7]
    ElementTree.fromstring(body)


def test_a_report_does_not_say_where_it_was_made() -> None:
    assert without_paths("at /srv/work/tests/x.py and /home/me/y", "/srv/work") == "at tests/x.py and …"
    assert without_paths("x" * 20_000, "/srv").endswith("…")
    assert sentence_of("test_a_bad_tool_costs_itself") == "A bad tool costs itself"


def test_a_run_of_the_suite_writes_a_report_in_every_form(tmp_path: Path) -> None:
    """A real one, of one file; it is red, since 34 threats were not tested."""
    command = [
        sys.executable,
        str(HERE / "run_report.py"),
        str(tmp_path),
        str(HERE / "test_t07_namespace_collision.py"),
    ]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 1, done.stdout
    assert "1 of 35 threats held" in done.stdout
    assert {path.name for path in tmp_path.iterdir()} == {"report.html", "report.md", "report.sarif", "junit.xml"}
    assert "| T7 | namespace collision | high |" in (tmp_path / "report.md").read_text(encoding="utf-8")
    suite = ElementTree.parse(tmp_path / "junit.xml").getroot()[0]
    assert int(suite.attrib["tests"]) > 0
    assert int(suite.attrib["failures"]) == 0
