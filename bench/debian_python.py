"""A later Python than the system's own: that of the next Debian, unpacked beside the peers and never installed.

Only for a peer that this Python is too old for. apt fetches the packages from the mirror that this machine is set up
for, and checks their signatures; they bring their own C library, so that an older system can run them.
"""

from __future__ import annotations

import platform
import shutil
import subprocess
from pathlib import Path

from bench.peer_packages import CACHE, Missing, _install

VERSION = "3.13"
_RELEASE = "trixie"
_PACKAGES = (
    *(f"python{VERSION}-minimal", f"libpython{VERSION}-minimal", f"libpython{VERSION}-stdlib"),
    *("libc6", "libexpat1", "libffi8", "libssl3t64", "zlib1g"),
)
_TOOLS = ("apt-get", "dpkg-deb")
_KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")


def debian_python() -> str | Missing:
    """A command that runs it, or why there is none."""
    directory = CACHE / f"debian-{_RELEASE}-{platform.machine()}"
    command = directory / f"python{VERSION}"
    if command.is_file():
        return str(command)
    if not all(shutil.which(tool) for tool in _TOOLS) or not _KEYRING.is_file():
        return Missing("this is no Debian")
    mirror = _mirror()
    if mirror is None:
        return Missing("apt knows no mirror of Debian")
    shutil.rmtree(directory, ignore_errors=True)
    failure = _fetch(directory, mirror) or _unpack(directory)
    if failure is not None:
        return failure
    loader = next((directory / "root").glob("usr/lib*/ld-linux*"), None)
    if loader is None:
        return Missing("Debian's C library has no loader where it used to be")
    command.write_text(_start_script(directory / "root", loader), encoding="utf-8")
    command.chmod(0o755)
    return str(command)


def _mirror() -> str | None:
    wanted = ["apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages"]
    known = subprocess.run(wanted, capture_output=True, text=True, check=False).stdout.split()
    return next((each for each in known if each.rstrip("/").endswith("/debian")), None)


def _fetch(directory: Path, mirror: str) -> Missing | None:
    """Into a place of its own: what apt knows of this system stays as it is."""
    sources = directory / "sources"
    for each in (sources, directory / "state/lists/partial", directory / "cache/archives/partial"):
        each.mkdir(parents=True)
    (directory / "status").touch()
    source = f"deb [signed-by={_KEYRING}] {mirror} {_RELEASE} main\n"
    (sources / f"{_RELEASE}.list").write_text(source, encoding="utf-8")
    places = {
        "Dir::Etc::SourceList": "/dev/null",
        "Dir::Etc::SourceParts": sources,
        "Dir::State": directory / "state",
        "Dir::State::Status": directory / "status",
        "Dir::Cache": directory / "cache",
    }
    apt = ["apt-get", "--quiet", *(part for name, place in places.items() for part in ("-o", f"{name}={place}"))]
    return _install([*apt, "update"]) or _install([*apt, "download", *_PACKAGES], directory)


def _unpack(directory: Path) -> Missing | None:
    for package in directory.glob("*.deb"):
        failure = _install(["dpkg-deb", "--extract", str(package), str(directory / "root")])
        if failure is not None:
            return failure
        package.unlink()
    return None


def _start_script(root: Path, loader: Path) -> str:
    own = f"{root}/usr/lib/{platform.machine()}-linux-gnu"
    system = f"/lib/{platform.machine()}-linux-gnu"
    python = f"{root}/usr/bin/python{VERSION}"
    return f'#!/bin/sh\nPYTHONHOME="{root}/usr" exec "{loader}" --library-path "{own}:{system}" "{python}" "$@"\n'
