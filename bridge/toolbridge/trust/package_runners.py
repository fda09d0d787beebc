"""Commands that fetch what they run: which package they would fetch, and whether its version is fixed (T24)."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

_EXACT = r"v?\d+\.\d+(?:\.\d+)*(?:[-+.]?[A-Za-z0-9][A-Za-z0-9.+-]*)?"
_COMMIT = r"[0-9a-f]{40}"
_MOST_CHARACTERS = 300


@dataclass(frozen=True, slots=True)
class _Runner:
    """How a runner's arguments are read."""

    verbs: tuple[tuple[str, ...], ...] = ((),)
    """The words that come first; any of these."""
    naming: tuple[str, ...] = ()
    """Options whose value is the package."""
    valued: tuple[str, ...] = ()
    """Options whose value is something else."""
    pinned: str = rf".+@(?:{_EXACT})|.*[#@]{_COMMIT}"
    example: str = "@1.2.3"


_NPM = _Runner(naming=("-p", "--package"), valued=("-w", "--workspace", "-c", "--call", "--registry", "--cache"))
_UV_OPTIONS = ("-p", "--python", "--with", "--index", "--default-index", "--index-url", "--extra-index-url", "-i")
_UV = _Runner(
    naming=("--from", "--spec"),
    valued=(*_UV_OPTIONS, "--cache-dir", "--config-file", "--directory", "--env-file", "--with-requirements"),
    pinned=rf"[^=<>~!@]+(?:===?|@)\s*{_EXACT}|.*@{_COMMIT}.*",
    example="==1.2.3",
)
_DOCKER_OPTIONS = """
-a -c -e -h -l -m -p -u -v -w --add-host --cap-add --cap-drop --cpus --device --dns --entrypoint --env --env-file --gpus
--hostname --label --memory --mount --name --network --net --pid --platform --publish --pull --runtime --security-opt
--tmpfs --ulimit --user --userns --volume --volumes-from --workdir
"""
_DOCKER = _Runner(
    verbs=(("run",), ("container", "run")),
    valued=tuple(_DOCKER_OPTIONS.split()),
    pinned=r".+@sha256:[0-9a-f]{64}",
    example="@sha256:…",
)


def _after(runner: _Runner, *verbs: tuple[str, ...]) -> _Runner:
    return _Runner(verbs, runner.naming, runner.valued, runner.pinned, runner.example)


_RUNNERS: Mapping[str, _Runner] = {
    **dict.fromkeys(("npx", "bunx", "pnpx"), _NPM),
    "npm": _after(_NPM, ("exec",), ("x",)),
    "pnpm": _after(_NPM, ("dlx",)),
    "yarn": _after(_NPM, ("dlx",)),
    "bun": _after(_NPM, ("x",)),
    "uvx": _UV,
    "uv": _after(_UV, ("tool", "run")),
    "pipx": _after(_UV, ("run",)),
    "docker": _DOCKER,
    "podman": _DOCKER,
    "nerdctl": _DOCKER,
    "go": _Runner(verbs=(("run",),), pinned=rf".+@(?:{_EXACT}|{_COMMIT})|[^@]*"),
}


def unpinned_package(command: str, args: Sequence[str]) -> tuple[str, str] | None:
    """The package that may be another one at the next start, and what a fixed version looks like; None if none is."""
    runner = _RUNNERS.get(program_name(command))
    if runner is None:
        return None
    rest = _after_verb(runner, args)
    if rest is None:
        return None
    packages = _packages(runner, rest)
    loose = [each for each in packages if not _is_pinned(runner, each) and not _is_local(each)]
    return (loose[0], runner.example) if loose else None


def is_package_runner(command: str) -> bool:
    """Whether a command may fetch a package before it runs it."""
    return program_name(command) in _RUNNERS


def program_name(command: str) -> str:
    """The name of a program, without its directory and without what Windows adds to it."""
    name = os.path.basename(command.replace("\\", "/")).lower()
    return re.sub(r"\.(?:exe|cmd|bat|ps1)$", "", name)


def _after_verb(runner: _Runner, args: Sequence[str]) -> Sequence[str] | None:
    """What follows the runner's verb; options may stand before it."""
    plain = [(index, each) for index, each in enumerate(args) if not each.startswith("-")]
    for verb in runner.verbs:
        if not verb:
            return args
        if tuple(each for _, each in plain[: len(verb)]) == verb:
            return args[plain[len(verb) - 1][0] + 1 :]
    return None


def _packages(runner: _Runner, args: Sequence[str]) -> list[str]:
    named: list[str] = []
    waiting = iter(args)
    for argument in waiting:
        option, mark, value = argument.partition("=")
        if option in runner.naming:
            named.append(value if mark else next(waiting, ""))
        elif argument in runner.valued:
            next(waiting, None)
        elif argument == "--":
            return named or list(waiting)[:1]
        elif not argument.startswith("-"):
            return named or [argument]
    return named


def _is_pinned(runner: _Runner, package: str) -> bool:
    # A repository may have written anything here: the patterns are tried on what could be a package's name.
    return len(package) <= _MOST_CHARACTERS and re.fullmatch(runner.pinned, package) is not None


def _is_local(package: str) -> bool:
    """A directory or file: it has no version to fix, and is told of as such."""
    return not package or package.startswith((".", "/", "~", "file:"))
