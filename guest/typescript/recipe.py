"""How the TypeScript image is made: TypeScript's own compiler, loaded and warmed in our JavaScript engine, and baked.

Its instances run no guest code: they are given a program's text, and answer with its problems and its JavaScript.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from js import recipe as javascript
from js.initialise import initialise
from typescript.patches import patched

if TYPE_CHECKING:
    from build import Workshop

HERE = Path(__file__).parent
# A collection would copy the compiler's whole heap: what a check allocates is bounded by its memory limit instead.
GARBAGE_BYTES = 1 << 30
# In the order in which they are evaluated.
OWN_FILES = (
    *("world.js", "checkers.js", "session.js", "report.js", "stub_line.js", "known_properties.js"),
    *("asked_for.js", "origins.js", "may_fit.js", "told.js", "kinds.js", "annotations.js"),
    *("inputs.js", "promises.js", "where_taken.js", "idle_tests.js", "properties.js", "fits.js", "severity.js"),
    *("erase.js", "constructors.js", "enums.js", "namespaces.js", "merged_namespaces.js", "imports.js"),
    *("check.js", "warm.js"),
)
# ECMAScript as our engine has it: its library's top file, and what comes with it but isn't there.
LIBRARY = "esnext"
NOT_IN_THE_ENGINE = {"decorators", "decorators.legacy", "esnext.sharedmemory", "es2024.sharedmemory"}


def inputs() -> list[Path]:
    """Every file of ours that the image depends on."""
    own = sorted(path for path in HERE.iterdir() if path.suffix in {".js", ".py", ".ts", ".txt"})
    return [*own, *javascript.inputs()]


def make(workshop: Workshop) -> bytes:
    """The image's bytes."""
    raw = javascript.compiled_engine(workshop)
    with workshop.step("fetch TypeScript"):
        packages = workshop.unpack_npm(HERE / "packages.txt")
    compiler, eraser = packages["typescript"], packages["ts-blank-space"]
    with workshop.step("initialise, warm and bake (about a minute)"):
        image = initialise(raw, programs=_programs(compiler, eraser), garbage_bytes=GARBAGE_BYTES)
    workshop.notice("typescript", compiler / "LICENSE.txt", compiler / "ThirdPartyNoticeText.txt")
    workshop.notice("ts-blank-space", eraser / "LICENSE")
    return image


def _programs(compiler: Path, eraser: Path) -> Iterator[tuple[str, str]]:
    """What the image runs while it is made, one after another."""
    yield "typescript.js", patched((compiler / "lib" / "typescript.js").read_text(encoding="utf-8")) + "\n;0"
    yield "blank_space.js", _eraser_source(eraser / "out")
    globals_of_ours = (HERE / "globals.d.ts").read_text(encoding="utf-8")
    yield "library.js", f"var libraryTexts = {json.dumps(library_texts(compiler / 'lib', globals_of_ours))}; 0"
    for name in OWN_FILES:
        yield name, (HERE / name).read_text(encoding="utf-8") + "\n;0"


def library_texts(directory: Path, ours: str) -> dict[str, str]:
    """The declarations of ECMAScript and our globals: file name → text.

    One file, because an interface that is spread over many would have to be put together again by every check; only
    what is a module by itself stays apart.
    """
    texts: dict[str, str] = {}

    def add(name: str) -> None:
        if name in texts or name in NOT_IN_THE_ENGINE:
            return
        text = (directory / f"lib.{name}.d.ts").read_text(encoding="utf-8")
        texts[name] = ""
        for wanted in re.findall(r'^/// <reference lib="([\w.]+)" />', text, re.MULTILINE):
            add(wanted)
        del texts[name]  # after what it builds on
        texts[name] = without_comments(text)

    add(LIBRARY)
    modules = {name: text for name, text in texts.items() if re.search(r"^export ", text, re.MULTILINE)}
    together = "\n".join(text for name, text in texts.items() if name not in modules)
    return {"library.d.ts": f"{together}\n{ours}", **{f"library.{name}.d.ts": modules[name] for name in modules}}


def without_comments(text: str) -> str:
    """Declarations without their documentation, which only takes memory."""
    bare = re.sub(r"/\*.*?\*/|^[ \t]*//[^\n]*", "", text, flags=re.DOTALL | re.MULTILINE)
    return re.sub(r"\n\s+", "\n", bare)


def _eraser_source(directory: Path) -> str:
    """The package's two files as one program: its imports are already there, its exports become names."""
    parts: list[str] = []
    for name in ("blank-string.js", "index.js"):
        text = (directory / name).read_text(encoding="utf-8")
        text = re.sub(r"^import .*$", "", text, flags=re.MULTILINE)
        text = text.replace("export default class", "class").replace("export default function", "function")
        parts.append(re.sub(r"^export ", "", text, flags=re.MULTILINE))
    body = "\n".join(parts)
    made = "Object.assign(blankSourceFile, { visitor })"  # what is inside of what we write out is its to visit, too
    return f"var eraseTypes = (() => {{ const tslib = ts;\n{body}\nreturn {made}; }})(); 0"
