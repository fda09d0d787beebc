"""Recipe of the JavaScript image: fetch, patch, compile, bake."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from js.initialise import initialise
from js.patches import patched
from js.powers_of_ten import powers_source

if TYPE_CHECKING:
    from build import Workshop

HERE = Path(__file__).parent
ENGINE_FILES = ("libregexp.c", "libunicode.c", "dtoa.c")

# The order in which the prelude's files are evaluated.
PRELUDE = (
    *("encoding.js", "url_search_params.js", "url.js", "handles.js", "kinds.js", "clone.js"),
    *("intl.js", "intl_number.js", "intl_date.js", "intl_text.js", "inspect.js", "console.js"),
    *("errors.js", "parallel.js", "modules.js", "timers.js", "globals.js"),
)

COMPILE_FLAGS = (
    *("-target", "wasm32-wasi", "-mexec-model=reactor", "-O2", "-DNDEBUG", "-D_GNU_SOURCE"),
    *("-fno-strict-aliasing", "-funsigned-char", "-fwrapv", "-w"),
    *("-Wl,-z,stack-size=4194304", "-Wl,--export=__stack_pointer", "-Wl,--strip-all"),
)
# Bytes that a run may allocate before its first garbage collection.
GARBAGE_BYTES = 1 << 20


def inputs() -> list[Path]:
    """The project's own files that the image depends on."""
    return sorted(path for path in HERE.rglob("*") if path.suffix in {".c", ".js", ".py", ".txt"})


def make(workshop: Workshop) -> bytes:
    """Builds the image and returns its bytes."""
    raw = compiled_engine(workshop)
    with workshop.step("initialise and bake"):
        return initialise(raw, garbage_bytes=GARBAGE_BYTES)


def compiled_engine(workshop: Workshop) -> bytes:
    """Compiles the engine with our shim and prelude, not initialised; kept for the images made from it."""
    with workshop.step("fetch the engine"):
        engine = workshop.unpack_sdist(HERE / "engine.txt", "quickjs-ng") / "upstream-quickjs"
    with workshop.step("fetch the compiler"):
        compiler = workshop.install(HERE / "compiler.txt") / "ziglang"
    workshop.notice("quickjs-ng", engine.parent / "LICENSE", _engine_licence(engine))
    workshop.notice("zig", compiler / "LICENSE")
    libc = compiler / "lib" / "libc"
    workshop.notice("wasi-libc", *sorted((libc / "wasi").glob("LICENSE*")))
    workshop.notice("musl", *sorted(libc.glob("musl/COPYRIGHT")), *sorted(libc.glob("wasi/libc-top-half/**/COPYRIGHT")))
    workshop.notice("cloudlibc", *sorted(libc.glob("wasi/libc-bottom-half/**/LICENSE*")))
    kept = workshop.kept_file("js", "raw.wasm", inputs())
    if not kept.exists():
        with workshop.step("patch the engine"):
            build = workshop.fresh_directory("js")
            source = (engine / "quickjs.c").read_text(encoding="utf-8")
            (build / "engine.c").write_text(patched(source), encoding="utf-8")
            (build / "prelude.c").write_text(prelude_source(), encoding="utf-8")
            (build / "powers_of_ten.c").write_text(powers_source(), encoding="utf-8")
        with workshop.step("compile (about half a minute)"):
            raw = build / "raw.wasm"
            _compile(workshop, compiler, engine, build, raw)
            kept.parent.mkdir(parents=True, exist_ok=True)
            raw.replace(kept)
    return kept.read_bytes()


def _engine_licence(engine: Path) -> str:
    """The notice that heads the engine's source file, when the archive has no licence file of its own."""
    text = (engine / "quickjs.c").read_text(encoding="utf-8")
    return text[text.index("/*") : text.index("*/") + 2]


def prelude_source(names: Iterable[str] = PRELUDE) -> str:
    """The prelude as a C table: name and text of each file, wrapped as a function's body."""
    rows: list[str] = []
    for name in names:
        # One line, so that the file's own line numbers hold.
        text = "(function (native, shared) { " + (HERE / "prelude" / name).read_text(encoding="utf-8") + "\n})"
        data = ",".join(str(byte) for byte in text.encode())
        rows.append(f'{{ "prelude/{name}", (const char[]){{ {data},0 }} }}')
    table = ",\n".join(rows)
    return (
        "#include <stdint.h>\n"
        "typedef struct { const char *name, *text; } PreludeFile;\n"
        f"const PreludeFile prelude_files[] = {{\n{table}\n}};\n"
        f"const uint32_t prelude_count = {len(rows)};\n"
    )


def _compile(workshop: Workshop, compiler: Path, engine: Path, build: Path, out: Path) -> None:
    zig = compiler / "zig"
    sources = [HERE / "shim" / "image.c", build / "prelude.c", *(engine / name for name in ENGINE_FILES)]
    includes = [f"-I{build}", f"-I{engine}", f"-I{HERE / 'shim'}"]
    workshop.command([zig, "cc", *COMPILE_FLAGS, *includes, *sources, "-o", out])
