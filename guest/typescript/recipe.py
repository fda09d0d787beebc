"""Recipe of the TypeScript image: TypeScript's compiler, patched, loaded into our JavaScript engine, warmed and baked.

Its instances run no guest code: they take a program's source, and return its type errors and its JavaScript.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from js import recipe as javascript
from js.initialise import initialise

if TYPE_CHECKING:
    from build import Workshop

HERE = Path(__file__).parent
# No garbage collection: it would dirty the compiler's whole heap. The memory limit bounds a check instead.
GARBAGE_BYTES = 1 << 30
# In evaluation order.
OWN_FILES = (
    *("compiler.js", "syntax.js", "diagnostics.js", "assignability.js", "provenance.js", "root_causes.js"),
    *("tool_inputs.js", "properties.js", "report.js", "erase.js", "check.js"),
)
# The top file of the ECMAScript library, and the parts that our engine lacks.
LIBRARY = "esnext"
NOT_IN_THE_ENGINE = {"decorators", "decorators.legacy", "esnext.sharedmemory", "es2024.sharedmemory"}


def inputs() -> list[Path]:
    """Lists the source files that the image depends on."""
    own = sorted(path for path in HERE.iterdir() if path.suffix in {".js", ".py", ".ts", ".txt"})
    return [*own, *javascript.inputs()]


def make(workshop: Workshop) -> bytes:
    """Builds the image and returns its bytes; fetches packages and takes minutes. Raises BuildError."""
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
    """Yields the scripts evaluated at build time, in order: name and source."""
    yield "typescript.js", patched((compiler / "lib" / "typescript.js").read_text(encoding="utf-8")) + "\n;0"
    yield "blank_space.js", _eraser_source(eraser / "out")
    globals_of_ours = (HERE / "globals.d.ts").read_text(encoding="utf-8")
    yield "library.js", f"var libraryTexts = {json.dumps(library_texts(compiler / 'lib', globals_of_ours))}; 0"
    for name in OWN_FILES:
        yield name, (HERE / name).read_text(encoding="utf-8") + "\n;0"


def library_texts(directory: Path, ours: str) -> dict[str, str]:
    """Reads the declarations of ECMAScript, and adds our globals: file name → text.

    One file, because every check would merge the declarations of an interface anew; modules stay apart.
    """
    texts: dict[str, str] = {}

    def add(name: str) -> None:
        """Adds a file after those that it references, unless it was added or the engine lacks it."""
        if name in texts or name in NOT_IN_THE_ENGINE:
            return
        text = (directory / f"lib.{name}.d.ts").read_text(encoding="utf-8")
        texts[name] = ""
        for wanted in re.findall(r'^/// <reference lib="([\w.]+)" />', text, re.MULTILINE):
            add(wanted)
        del texts[name]  # after its references
        texts[name] = without_comments(text)

    add(LIBRARY)
    modules = {name: text for name, text in texts.items() if re.search(r"^export ", text, re.MULTILINE)}
    together = "\n".join(text for name, text in texts.items() if name not in modules)
    return {"library.d.ts": f"{together}\n{ours}", **{f"library.{name}.d.ts": modules[name] for name in modules}}


def without_comments(text: str) -> str:
    """Removes comments from declarations, as they only take memory."""
    bare = re.sub(r"/\*.*?\*/|^[ \t]*//[^\n]*", "", text, flags=re.DOTALL | re.MULTILINE)
    return re.sub(r"\n\s+", "\n", bare)


def _eraser_source(directory: Path) -> str:
    """Joins the package's two files to one script: without imports, its exports as plain names."""
    parts: list[str] = []
    for name in ("blank-string.js", "index.js"):
        text = (directory / name).read_text(encoding="utf-8")
        text = re.sub(r"^import .*$", "", text, flags=re.MULTILINE)
        text = text.replace("export default class", "class").replace("export default function", "function")
        parts.append(re.sub(r"^export ", "", text, flags=re.MULTILINE))
    body = "\n".join(parts)
    made = "Object.assign(blankSourceFile, { visitor })"  # erase.js visits values inside compiled syntax
    return f"var eraseTypes = (() => {{ const tslib = ts;\n{body}\nreturn {made}; }})(); 0"


class Patch(NamedTuple):
    """An edit to the compiler's source at build time: replaces `before`, which must occur exactly once."""

    why: str
    before: str
    after: str


PATCHES = (
    Patch(
        why="`unknown` in declarations is `any`: a program may use such a value freely",
        before="      case 159 /* UnknownKeyword */:\n        return unknownType;",
        after="      case 159 /* UnknownKeyword */:\n"
        "        return node.flags & 33554432 /* Ambient */ ? anyType : unknownType;",
    ),
    Patch(
        why="A method that only throws, or is empty, is a placeholder to be overridden: its return type is `any`",
        before="      if (types.length === 0) {\n"
        "        const contextualReturnType = getContextualReturnType(\n          func,",
        after="      if (types.length === 0) {\n"
        "        const isPlaceholder = !functionHasImplicitReturn(func) || !some(func.body.statements);\n"
        "        if (isClassElement(func) && isPlaceholder) return anyType;\n"
        "        const contextualReturnType = getContextualReturnType(\n          func,",
    ),
    Patch(
        why="A program may use the warmed checker (compiler.js)",
        before="    return typeChecker || (typeChecker = createTypeChecker(program));",
        after="    return typeChecker || (typeChecker = host.checkerFor(program));",
    ),
    Patch(
        why="The warmed checker accepts a program's files",
        before="  initializeTypeChecker();\n  return checker;",
        after="  initializeTypeChecker();\n"
        "  checker.hasGlobal = (name) => globals.has(name);\n"
        "  checker.addFile = (file) => isExternalOrCommonJsModule(file) || mergeSymbolTable(globals, file.locals);\n"
        "  checker.shadowGlobals = (file) => file.locals.forEach((symbol, name) => globals.set(name, symbol));\n"
        "  return checker;",
    ),
)


def patched(source: str) -> str:
    """Returns the compiler's source with every patch applied.

    Raises:
        ValueError: a patch's `before` does not occur exactly once.
    """
    for patch in PATCHES:
        found = source.count(patch.before)
        if found != 1:
            raise ValueError(f"the compiler's source has {found} anchors of the patch {patch.why!r}, not 1")
        source = source.replace(patch.before, patch.after)
    return source
