"""The SBOM of the guest images: CycloneDX 1.6, from the pins in `guest/*/*.txt` and the images' manifests.

The wheel carries it as `toolbridge-*.dist-info/sboms/toolbridge-guest.cdx.json` (PEP 770). The same pins and images
give the same bytes: there is no timestamp, and the serial number follows from the content.
"""

from __future__ import annotations

import base64
import json
import re
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

GUEST = Path(__file__).resolve().parent
FILE_NAME = "toolbridge-guest.cdx.json"

_ENGINE = ("js/engine.txt", "js/compiler.txt")
PINS = {
    "javascript": _ENGINE,
    "python": ("python/builder.txt",),
    "typescript": (*_ENGINE, "typescript/packages.txt"),
}
LICENCES = {
    "componentize-py": "Apache-2.0 WITH LLVM-exception",
    "quickjs-ng": "MIT",
    "ts-blank-space": "Apache-2.0",
    "typescript": "Apache-2.0",
    "tzdata": "Apache-2.0",
    "ziglang": "MIT",
}
CPYTHON = "3.14.0"


class Part(NamedTuple):
    """Software that a pinned package brings along and that is linked into an image."""

    name: str
    version: str
    licence: str
    purl: str


_ZIG_LIBC = (
    ("wasi-libc", "Apache-2.0 WITH LLVM-exception OR MIT", "ziglang/lib/libc/wasi"),
    ("musl", "MIT", "ziglang/lib/libc/musl"),
    ("cloudlibc", "BSD-2-Clause", "ziglang/lib/libc/wasi/libc-bottom-half/cloudlibc"),
)


def _parts(package: str, version: str) -> list[Part]:
    """Returns the software that a pinned package brings along, if it is known to."""
    if package == "ziglang":
        zig = f"pkg:pypi/ziglang@{version}"
        return [Part(name, f"zig-{version}", licence, f"{zig}#{path}") for name, licence, path in _ZIG_LIBC]
    if package == "componentize-py":
        return [Part("cpython", CPYTHON, "PSF-2.0", f"pkg:generic/cpython@{CPYTHON}")]
    return []


def pinned_components(pins: str) -> list[dict[str, Any]]:
    """Reads a pin file; returns its packages' components: version, hashes, licence, package URL, software in them.

    Raises:
        KeyError: the licence of a package is not recorded here.
    """
    text = (GUEST / pins).read_text(encoding="utf-8").replace("\\\n", "")
    found: list[tuple[str, str, str, list[tuple[str, str]]]] = []
    for name, version, options in re.findall(r"^([\w.-]+)==(\S+)(.*)$", text, re.MULTILINE):
        hashes = [("SHA-256", digest) for digest in re.findall(r"--hash=sha256:(\w+)", options)]
        found.append((name, version, "pypi", hashes))
    for name, version, digest in re.findall(r"^(\S+)@(\S+) sha512-(\S+)$", text, re.MULTILINE):
        found.append((name, version, "npm", [("SHA-512", base64.b64decode(digest).hex())]))
    return [
        {
            **_component("library", name, version, f"pkg:{kind}/{name}@{version}", LICENCES[name]),
            "hashes": [{"alg": algorithm, "content": digest} for algorithm, digest in hashes],
            "components": [
                _component("library", part.name, part.version, part.purl, part.licence)
                for part in _parts(name, version)
            ],
        }
        for name, version, kind, hashes in found
    ]


def _component(kind: str, name: str, version: str, purl: str, licence: str) -> dict[str, Any]:
    """Returns one component in CycloneDX's form; its package URL is its reference, too."""
    return {
        "type": kind,
        "bom-ref": purl,
        "name": name,
        "version": version,
        "licenses": [{"expression": licence}],
        "purl": purl,
    }


def bill_of_materials(version: str, digests: Mapping[str, str]) -> dict[str, Any]:
    """Returns the SBOM of the images built, whose SHA-256 are in `digests`; reads their pin files."""
    wheel = f"pkg:pypi/toolbridge@{version}"
    components: dict[str, dict[str, Any]] = {}
    dependencies: list[dict[str, Any]] = []
    images: list[str] = []
    for image, digest in sorted(digests.items()):
        pinned = [each for pins in PINS[image] for each in pinned_components(pins)]
        reference = f"{wheel}#toolbridge_guest/images/{image}.wasm"
        components[reference] = {
            **_component("application", f"toolbridge-guest-{image}", version, reference, "MIT"),
            "hashes": [{"alg": "SHA-256", "content": digest}],
        }
        components.update({each["bom-ref"]: each for each in pinned})
        dependencies.append({"ref": reference, "dependsOn": [each["bom-ref"] for each in pinned]})
        images.append(reference)
    dependencies.append({"ref": wheel, "dependsOn": images})
    bill: dict[str, Any] = {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": _component("library", "toolbridge", version, wheel, "MIT")},
        "components": list(components.values()),
        "dependencies": dependencies,
    }
    return {**bill, "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, json.dumps(bill))}"}


def write_sbom(directory: Path, version: str, images: Path) -> Path:
    """Writes the SBOM of the images whose manifests are in `images` into `directory`, and returns its path."""
    digests = {
        manifest.stem: json.loads(manifest.read_text(encoding="utf-8"))["sha256"] for manifest in images.glob("*.json")
    }
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / FILE_NAME
    path.write_text(json.dumps(bill_of_materials(version, digests), indent=1) + "\n", encoding="utf-8")
    return path
