"""Draws docs/pictures/demo.svg: parts of the output of `toolbridge demo`. `python tests/demo_picture.py` renews it."""

from __future__ import annotations

import re
import subprocess
import sys
from html import escape
from pathlib import Path

PICTURE = Path(__file__).parents[1] / "docs" / "pictures" / "demo.svg"
PARTS = ("Ten calls at once", "A mistake comes back", "An endless loop")
"""Beginnings of the titles of the parts that are drawn."""

_WIDTH, _LINE, _TOP, _LEFT = 732, 19, 58, 20
_TIME = re.compile(r"\d+(?:\.\d+)? m?s$")
_STYLE = """\
text { font: 13.5px ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace; fill: #c9d1d9 }
.head { fill: #ffffff; font-weight: bold } .code { fill: #79c0ff } .result { fill: #7ee787 } .failure { fill: #ffa198 }
.dim { fill: #8b949e }"""


def demo_output() -> str:
    """Run the demo."""
    command = [sys.executable, "-c", "from toolbridge.cli import main; main()", "demo"]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", timeout=120, check=True)
    return done.stdout


def drawn_lines(output: str) -> list[str]:
    """The lines of the parts that are drawn, in their order."""
    parts = re.split(r"\n(?=\d+\. )", output.partition("\n\nNow yours")[0])
    drawn, last = ["$ toolbridge demo"], 0
    for title in PARTS:
        ((index, part),) = [pair for pair in enumerate(parts) if re.match(rf"\d+\. {title}", pair[1])]
        drawn += ["…"] if index > last + 1 else [""]
        drawn += part.strip("\n").split("\n")
        last = index
    return drawn


def picture(lines: list[str]) -> str:
    """The lines as an SVG."""
    height = _TOP + _LINE * len(lines) + 6
    kind, texts = "dim", list[str]()
    for row, line in enumerate(lines):
        if re.match(r"\d+\. ", line):
            kind = "head"
        elif line.startswith("   │"):
            kind = "code"
        elif line.startswith("   => "):
            kind = "result" if line[6] in '{["' else "failure"
        elif _TIME.search(line) or line == "…":
            kind = "dim"
        texts.append(f'<text class="{kind}" x="{_LEFT}" y="{_TOP + _LINE * row}">{escape(line, quote=False)}</text>')
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" xml:space="preserve" viewBox="0 0 {_WIDTH} {height}" '
            f'width="{_WIDTH}" height="{height}" role="img" aria-label="Output of toolbridge demo">',
            f"<style>\n{_STYLE}\n</style>",
            f'<rect width="{_WIDTH}" height="{height}" rx="9" fill="#0d1117" stroke="#30363d"/>',
            '<circle cx="20" cy="19" r="6" fill="#ff5f57"/><circle cx="40" cy="19" r="6" fill="#febc2e"/>'
            '<circle cx="60" cy="19" r="6" fill="#28c840"/>',
            *texts,
            "</svg>\n",
        ]
    )


def without_times(svg: str) -> str:
    """The picture with every duration replaced: durations differ from run to run."""
    return re.sub(r" *\d+(?:\.\d+)? m?s(?=</text>)", " TIME", svg)


if __name__ == "__main__":
    PICTURE.write_text(picture(drawn_lines(demo_output())), encoding="utf-8")
