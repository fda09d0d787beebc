"""SECURITY: warnings in the approval prompt: unpinned packages, variables that load code, look-alikes (T24).

Advisory: they name known misuse, and a server without warnings is not thereby harmless. The digest decides.
"""

from __future__ import annotations

import os
import re
import stat
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from toolbridge.config.server_config import ServerConfig
from toolbridge.trust.approval.approver import ApprovalRequest, references
from toolbridge.trust.sanitise import visible, word

# Package runners: the package that a command would fetch, and whether its version is fixed.


_EXACT = r"v?\d+\.\d+(?:\.\d+)*(?:[-+.]?[A-Za-z0-9][A-Za-z0-9.+-]*)?"
_COMMIT = r"[0-9a-f]{40}"
_LONGEST_PACKAGE = 300


@dataclass(frozen=True, slots=True)
class _Runner:
    """The grammar of a package runner's arguments."""

    verbs: tuple[tuple[str, ...], ...] = ((),)
    """Alternatives for the first words."""
    naming: tuple[str, ...] = ()
    """Options whose value is the package."""
    valued: tuple[str, ...] = ()
    """Other options with a value."""
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
    """Returns the first package without a fixed version, and the form of a fixed one; None if all are pinned.

    None as well if the command is no package runner. A local file or directory needs no version.
    """
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
    """Whether a command is a package runner."""
    return program_name(command) in _RUNNERS


def program_name(command: str) -> str:
    """Returns the name of a program in lower case, without its directory and Windows extension."""
    name = os.path.basename(command.replace("\\", "/")).lower()
    return re.sub(r"\.(?:exe|cmd|bat|ps1)$", "", name)


def _after_verb(runner: _Runner, args: Sequence[str]) -> Sequence[str] | None:
    """Returns the arguments after the runner's verb, which options may precede; None without the verb."""
    plain = [(index, each) for index, each in enumerate(args) if not each.startswith("-")]
    for verb in runner.verbs:
        if not verb:
            return args
        if tuple(each for _, each in plain[: len(verb)]) == verb:
            return args[plain[len(verb) - 1][0] + 1 :]
    return None


def _packages(runner: _Runner, args: Sequence[str]) -> list[str]:
    """Returns the packages among a runner's arguments: those that options name, else the first argument."""
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
    # Bounded, since a repository may have written it (ReDoS).
    return len(package) <= _LONGEST_PACKAGE and re.fullmatch(runner.pinned, package) is not None


def _is_local(package: str) -> bool:
    """Whether it is a directory or file, which has no version."""
    return not package or package.startswith((".", "/", "~", "file:"))


MOST_ARGUMENT_CHARACTERS = 4_000
_MOST_NAMES = 6
_MOST_CHARACTERS = 60

_LOADS_CODE = re.compile(
    r"LD_.*|DYLD_.*|GCONV_PATH|NODE_OPTIONS|NODE_PATH|NODE_REPL_EXTERNAL_MODULE|PYTHON(?:PATH|HOME|STARTUP|USERBASE)"
    r"|PERL5(?:OPT|LIB|DB)|PERLLIB|RUBY(?:OPT|LIB)|GEM_(?:PATH|HOME)|(?:_|JDK_)?JAVA_(?:TOOL_)?OPTIONS|CLASSPATH"
    r"|BASH_ENV|ENV|PROMPT_COMMAND|ZDOTDIR|LUA_(?:INIT|PATH|CPATH).*|PHPRC|PHP_INI_SCAN_DIR|DOTNET_STARTUP_HOOKS"
    r"|COR(?:ECLR)?_PROFILER.*|GIT_(?:SSH.*|EXEC_PATH|ASKPASS|CONFIG.*)|ELECTRON_RUN_AS_NODE|OPENSSL_(?:CONF|ENGINES)"
    r"|PATH|PATHEXT|COMSPEC|HOME|USERPROFILE|BUN_OPTIONS|BUN_CONFIG_.*|DENO_.*|UV_PYTHON.*",
    re.IGNORECASE,
)
_CHANGES_SOURCE = re.compile(
    r"NPM_CONFIG_.*|YARN_.*|COREPACK_.*|UV_(?:.*INDEX.*|CONFIG_FILE|FIND_LINKS|OVERRIDE|CONSTRAINT)|PIP_.*|PIPX_.*"
    r"|CONDA_.*|GOPROXY|GOFLAGS|GONOSUMDB|CARGO_.*|DOCKER_HOST|DOCKER_CONTEXT|CONTAINER_HOST",
    re.IGNORECASE,
)
_CHANGES_NETWORK = re.compile(
    r"(?:HTTPS?|ALL|FTP)_PROXY|SSL_CERT_(?:FILE|DIR)|NODE_TLS_REJECT_UNAUTHORIZED|NODE_EXTRA_CA_CERTS"
    r"|REQUESTS_CA_BUNDLE|CURL_CA_BUNDLE|SSLKEYLOGFILE",
    re.IGNORECASE,
)
_RUN_THEIR_ARGUMENT = (
    (r"sh|bash|dash|zsh|fish|ksh|csh|tcsh|ash", r"-[a-zA-Z]*c|--command(?:=.*)?|--init-command(?:=.*)?"),
    (r"busybox|toybox", r".*"),
    (r"cmd", r"/[ckCK].*"),
    (r"powershell|pwsh", r"[-/][cCeE].*"),
    (r"(?:python|pypy)[\d.]*w?|py", r"-[a-zA-Z]*c.*"),
    (r"(?:node|nodejs|bun|deno|ruby|perl|lua|osascript)[\d.]*", r"-[a-zA-Z]*[eEp]|--eval(?:=.*)?|--print(?:=.*)?|eval"),
    (r"php[\d.]*", r"-[rBRE]|--run"),
)
"""Programs, and the options after which a program of another language follows."""


def approval_warnings(request: ApprovalRequest) -> tuple[str, ...]:
    """Returns the warnings about a request, one sentence each, the most important first. Looks at files (blocks)."""
    server = request.server
    if server.transport == "stdio":
        found = [*_about_command(request), *_about_files(request), *_about_variables(server)]
    else:
        found = [*_about_url(server)]
    return (*found, *_about_letters(server))


def _about_command(request: ApprovalRequest) -> Iterator[str]:
    """Warns of packages without a fixed version, of code in arguments, and of very long arguments."""
    server = request.server
    command, name = server.command or "", program_name(server.command or "")
    loose = unpinned_package(command, server.args)
    if loose is not None:
        package, example = loose
        yield (
            f"{_short(name)} fetches {_short(package)} without a fixed version: what runs may be another program "
            f"tomorrow. A fixed one ends in {example}."
        )
    if any(re.fullmatch(form, name) and _has_option(server.args, option) for form, option in _RUN_THEIR_ARGUMENT):
        yield f"{_short(name)} runs a program that is written in the arguments themselves: read all of it."
    size = sum(map(len, server.args))
    if size > MOST_ARGUMENT_CHARACTERS:
        yield f"The arguments have {size:,} characters, far more than a server needs."


def _has_option(args: tuple[str, ...], option: str) -> bool:
    """Whether one of the leading options has this form, a regular expression."""
    for index, argument in enumerate(args):
        if re.fullmatch(option, argument, re.DOTALL):
            return True
        if not re.match(r"-|/[A-Za-z]$", argument) or index > 50:
            return False
    return False


def _about_files(request: ApprovalRequest) -> Iterator[str]:
    """Warns of programs and files that others can change, or that depend on the directory."""
    server, directory, executable = request.server, request.directory or "", request.executable or ""
    command = server.command or ""
    if os.path.dirname(command) and not os.path.isabs(command):
        yield "The command is a file of the directory that the server is started in: whoever can write there decides."
    elif directory not in ("", os.path.expanduser("~")) and _is_within(executable, directory):
        yield f"{_short(command)} was found inside the directory that the server is started in."
    exposed = _exposed_place(executable)
    if exposed:
        yield exposed
    relative = [each for each in server.args if _is_relative_file(each, directory)]
    if relative:
        names = _few([_short(each) for each in relative])
        yield f"Files are taken from the directory that the server is started in: {names}."
    if server.cwd is None and server.transport == "stdio":
        yield (
            "Its configuration names no directory: it is started in the current one, and what lies there may change "
            'what runs. This approval is for that directory only; with "cwd" set, one is enough.'
        )


def _about_variables(server: ServerConfig) -> Iterator[str]:
    """Warns of variables that change what runs, and of the user's variables that the server gets."""
    names = sorted({*server.env, *server.env_required})
    for form, what in (
        (_LOADS_CODE, "can make it run other code than its own"),
        (_CHANGES_SOURCE, "can change where its code is fetched from"),
        (_CHANGES_NETWORK, "can change whom it trusts and talks through"),
    ):
        found = [_short(name) for name in names if form.fullmatch(name)]
        if found:
            yield f"{_few(found)} {what}: look at the value in the configuration."
    if server.inherit_env:
        yield "inheritEnv gives it EVERY variable of your environment, secrets for other programs included."
    sent = sorted({name for value in server.env.values() for name in references(value)} - set(server.env))
    if sent and server.origin.kind != "user":
        yield f"It gets the value of your {_few([_short(name) for name in sent])}."


def _about_url(server: ServerConfig) -> Iterator[str]:
    """Warns of URLs without encryption, with passwords or encoded letters, and of the user's variables in headers."""
    if server.url is None:
        return
    try:
        parts = urlsplit(server.url)
        host = parts.hostname or ""
    except ValueError:
        return
    if parts.scheme == "http" and host not in ("localhost", "127.0.0.1", "::1"):
        yield "It is reached without encryption: anybody on the way can read and change what is said."
    if "@" in parts.netloc:
        yield "The URL has a user name or password in it."
    if host.startswith("xn--") or ".xn--" in host:
        yield f"{_short(host)} is the encoded form of letters that may look like others."
    sent = sorted({name for value in server.headers.values() for name in references(value)})
    if sent and server.origin.kind != "user":
        yield f"It gets the value of your {_few([_short(name) for name in sent])} with every request."


def _about_letters(server: ServerConfig) -> Iterator[str]:
    """Warns of confusables (homoglyphs): letters of another alphabet among Latin ones."""
    texts = [server.command or "", *server.args, server.url or ""]
    odd: dict[str, None] = {}
    for text in texts:
        if text.isascii() or not re.search("[A-Za-z]", text):
            continue
        odd |= dict.fromkeys(each for each in text if not each.isascii() and each.isalpha() and not _is_latin(each))
    if odd:
        shown = _few([f"{visible(each)} (U+{ord(each):04X})" for each in odd])
        yield f"There are letters of another alphabet among Latin ones, which may only look like them: {shown}."


def _is_latin(letter: str) -> bool:
    return unicodedata.name(letter, "").startswith("LATIN ") and unicodedata.east_asian_width(letter) != "F"


def _exposed_place(executable: str) -> str:
    """Says why another user could have put the program there, or could change it; else empty, also if there is none."""
    if not executable:
        return ""
    try:
        facts = os.stat(executable)
        if facts.st_uid not in (0, os.geteuid()):
            return f"The program belongs to another user: {_short(executable)}."
        if facts.st_mode & stat.S_IWOTH:
            return f"Every user of this machine can change the program: {_short(executable)}."
        place = os.path.dirname(executable)
        while True:
            if os.stat(place).st_mode & stat.S_IWOTH:
                return f"The program lies in a directory that every user of this machine can write to: {_short(place)}."
            if os.path.dirname(place) == place:
                return ""
            place = os.path.dirname(place)
    except (OSError, ValueError):  # a name with a lone surrogate or NUL is no file's
        return ""


def _is_relative_file(argument: str, directory: str) -> bool:
    """Whether an argument is a path from the directory: by its form, or since such a file is there."""
    if argument in (".", "..") or argument.startswith(("./", "../", ".\\", "..\\")):
        return True
    if not argument or len(argument) > 4096 or "\0" in argument or argument.startswith(("-", "~")):
        return False
    return bool(directory) and not os.path.isabs(argument) and os.path.lexists(os.path.join(directory, argument))


def _is_within(path: str, directory: str) -> bool:
    return directory != os.path.dirname(directory) and path.startswith(directory.rstrip(os.sep) + os.sep)


def _short(text: str) -> str:
    """Shortens a word of the configuration, escaped; the prompt shows all of it elsewhere."""
    shown = word(text[:_MOST_CHARACTERS])
    return shown if len(text) <= _MOST_CHARACTERS else f"{shown}…"


def _few(names: list[str]) -> str:
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return ", ".join(names[:_MOST_NAMES]) + more
