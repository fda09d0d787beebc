"""Programs of 60 lines to be checked: against three servers, and against one with 200 tools."""

from __future__ import annotations

_TYPESCRIPT_HEAD = """import { list_issues, update_issue } from "host:mcp-tracker";
import { search_files } from "host:mcp-files";
import { get_forecast } from "host:mcp-weather";
interface Row { project: string; open: number; places: string[]; warm: number }
"""
_TYPESCRIPT_PART = """
function part{n}(project: string): Row {{
  const {{ issues, total }} = list_issues({{ project, state: "open", limit: {n} }});
  const places = issues.flatMap((issue) => search_files({{ query: issue.title }}).matches.map(({{ path }}) => path));
  const warm = get_forecast({{ location: project, days: 3 }}).days.filter((day) => day.high > {n} && day.sky === "sun");
  for (const issue of issues) if (issue.assignee === null) update_issue({{ id: issue.id, assignee: "ana" }});
  return {{ project, open: total, places: [...new Set(places)], warm: warm.length }};
}}
"""
_PYTHON_HEAD = """from host.mcp_files import search_files
from host.mcp_tracker import list_issues, update_issue
from host.mcp_weather import get_forecast
"""
_PYTHON_PART = """
def part{n}(project: str) -> dict[str, object]:
    page = list_issues(project=project, state="open", limit={n})
    places = {{match["path"] for issue in page["issues"] for match in search_files(query=issue["title"])["matches"]}}
    days = get_forecast(location=project, days=3)["days"]
    for issue in page["issues"]:
        if issue["assignee"] is None:
            update_issue(id=issue["id"], assignee="ana")
    return {{"open": page["total"], "places": sorted(places), "warm": sum(day["high"] > {n} for day in days)}}
"""
_LINES = 60


def typescript_program() -> str:
    """60 lines that use three servers."""
    return _cut(_TYPESCRIPT_HEAD + "".join(_TYPESCRIPT_PART.format(n=n) for n in range(7)))


def python_program() -> str:
    """The same in Python."""
    return _cut(_PYTHON_HEAD + "".join(_PYTHON_PART.format(n=n) for n in range(6)))


def typescript_program_of(tools: list[str]) -> str:
    """60 lines that use ten of many tools."""
    calls = [f"const value{n} = {tools[n % 10]}({{}} as any);" for n in range(_LINES - 1)]
    return "\n".join([f'import {{ {", ".join(tools[:10])} }} from "host:mcp-server-0";', *calls]) + "\n"


def python_program_of(tools: list[str]) -> str:
    """The same in Python."""
    calls = [f"value{n} = {tools[n % 10]}(**dict())" for n in range(_LINES - 1)]
    return "\n".join([f"from host.mcp_server_0 import {', '.join(tools[:10])}", *calls]) + "\n"


def _cut(text: str) -> str:
    lines = text.split("\n")[:_LINES]
    while lines[-1] != "}" and lines[-1] != "":  # a whole function
        lines.pop()
    return "\n".join([*lines, *["1;"] * (_LINES - len(lines))]) + "\n"
