"""How the JavaScript guest image is made: fetch, patch, compile, bake."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from bake import bake
from js.patches import patched

if TYPE_CHECKING:
    from build import Workshop

HERE = Path(__file__).parent
ENGINE_FILES = ("libregexp.c", "libunicode.c", "dtoa.c")

# The order in which the prelude's files are evaluated.
PRELUDE = (
    "dom_exception.js",
    "encoding.js",
    "url_host.js",
    "url_parser.js",
    "url_setters.js",
    "url_search_params.js",
    "url.js",
    "kinds.js",
    "clone.js",
    "locale.js",
    "number_tables.js",
    "number_digits.js",
    "number_format.js",
    "date_format.js",
    "word_formats.js",
    "collator.js",
    "inspect_layout.js",
    "inspect_titles.js",
    "inspect_entries.js",
    "inspect.js",
    "console_table.js",
    "console.js",
    "errors.js",
    "modules.js",
    "timers.js",
    "globals.js",
)

COMPILE_FLAGS = (
    *("-target", "wasm32-wasi", "-mexec-model=reactor", "-O2", "-DNDEBUG", "-D_GNU_SOURCE"),
    *("-fno-strict-aliasing", "-funsigned-char", "-fwrapv", "-w"),
    *("-Wl,-z,stack-size=4194304", "-Wl,--export=__stack_pointer", "-Wl,--strip-all"),
)
KEEP_EXPORTS = frozenset({"memory", "run"})
IMPORT_MODULE = "toolbridge"


def inputs() -> list[Path]:
    """Every file of ours that the image depends on."""
    return sorted(path for path in HERE.rglob("*") if path.suffix in {".c", ".js", ".py", ".txt"})


def make(workshop: Workshop) -> bytes:
    """The image's bytes."""
    with workshop.step("fetch the engine"):
        engine = workshop.unpack_sdist(HERE / "engine.txt", "quickjs-ng") / "upstream-quickjs"
    with workshop.step("fetch the compiler"):
        compiler = workshop.install(HERE / "compiler.txt") / "ziglang"
    with workshop.step("patch the engine"):
        build = workshop.fresh_directory("js")
        source = (engine / "quickjs.c").read_text(encoding="utf-8")
        (build / "engine.c").write_text(patched(source), encoding="utf-8")
        (build / "prelude.c").write_text(prelude_source(), encoding="utf-8")
    with workshop.step("compile (about half a minute)"):
        raw = build / "raw.wasm"
        _compile(workshop, compiler, engine, build, raw)
    with workshop.step("initialise and bake"):
        image = _bake(raw.read_bytes())
    workshop.notice("quickjs-ng", engine.parent / "LICENSE", _engine_licence(engine))
    workshop.notice("zig", compiler / "LICENSE")
    libc = compiler / "lib" / "libc"
    workshop.notice("wasi-libc", *sorted((libc / "wasi").glob("LICENSE*")))
    workshop.notice("musl", *sorted(libc.glob("musl/COPYRIGHT")), *sorted(libc.glob("wasi/libc-top-half/**/COPYRIGHT")))
    workshop.notice("cloudlibc", *sorted(libc.glob("wasi/libc-bottom-half/**/LICENSE*")))
    return image


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
    zig = compiler / ("zig.exe" if sys.platform == "win32" else "zig")
    sources = [HERE / "shim" / "image.c", build / "prelude.c", *(engine / name for name in ENGINE_FILES)]
    includes = [f"-I{build}", f"-I{engine}", f"-I{HERE / 'shim'}"]
    workshop.command([zig, "cc", *COMPILE_FLAGS, *includes, *sources, "-o", out])


def _bake(raw: bytes) -> bytes:
    import wasmtime

    engine = wasmtime.Engine()
    module = wasmtime.Module(engine, raw)
    store = wasmtime.Store(engine)
    linker = wasmtime.Linker(engine)
    messages: list[str] = []
    memory: list[wasmtime.Memory] = []

    def log(_stream: int, pointer: int, length: int) -> None:
        messages.append(memory[0].read(store, pointer, pointer + length).decode("utf-8", "replace"))

    # The clock stands still while the image is made; nothing else may be called.
    answers: dict[str, Callable[..., int | None]] = {"log": log, "now": _stopped_clock}
    for item in module.imports:
        kind, name = item.type, item.name or ""
        if item.module != IMPORT_MODULE or not isinstance(kind, wasmtime.FuncType):
            raise ValueError(f"the image imports {item.module}.{name}: only {IMPORT_MODULE}.* is allowed")
        linker.define_func(IMPORT_MODULE, name, kind, answers.get(name, _refuse))
    instance = linker.instantiate(store, module)
    exports = instance.exports(store)
    exported_memory = exports["memory"]
    assert isinstance(exported_memory, wasmtime.Memory)
    memory.append(exported_memory)
    for name in ("_initialize", "prepare"):
        function = exports[name]
        assert isinstance(function, wasmtime.Func)
        status = function(store)
        if status:
            raise ValueError(f"{name}() answered {status}: " + "\n".join(messages))

    def global_value(name: str) -> int:
        value = exports[name]
        assert isinstance(value, wasmtime.Global)
        return int(value.value(store))

    return bake(raw, bytes(exported_memory.read(store)), global_value, KEEP_EXPORTS)


def _stopped_clock(_clock: int) -> int:
    return 0


def _refuse(*_arguments: int) -> int:
    raise RuntimeError("the image called the host while it was made")
