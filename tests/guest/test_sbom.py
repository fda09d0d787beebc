"""The SBOM of the guest images: CycloneDX 1.6, every pin in it, the same bytes each time."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from build import IMAGES, RECIPES
from sbom import CPYTHON, FILE_NAME, GUEST, LICENCES, PINS, bill_of_materials, pinned_components, write_sbom
from toolbridge import Sandbox

# The part of CycloneDX 1.6 that the SBOM uses, after https://cyclonedx.org/schema/bom-1.6.schema.json.
COMPONENT: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "required": ["type", "name", "version", "purl", "licenses", "bom-ref"],
    "properties": {
        "type": {"enum": ["application", "library"]},
        "bom-ref": {"type": "string", "minLength": 1},
        "name": {"type": "string", "minLength": 1},
        "version": {"type": "string", "minLength": 1, "maxLength": 1024},
        "purl": {"type": "string", "pattern": r"^pkg:(pypi|npm|generic)/[a-z0-9.-]+@[A-Za-z0-9.+-]+(#[\w./-]+)?$"},
        "licenses": {
            "type": "array",
            "maxItems": 1,
            "items": {
                "type": "object",
                "additionalProperties": False,
                "required": ["expression"],
                "properties": {"expression": {"type": "string"}},
            },
        },
        "hashes": {
            "type": "array",
            "minItems": 1,
            "items": {
                "type": "object",
                "additionalProperties": False,
                "required": ["alg", "content"],
                "properties": {
                    "alg": {"enum": ["SHA-256", "SHA-512"]},
                    "content": {"type": "string", "pattern": "^([a-f0-9]{64}|[a-f0-9]{128})$"},
                },
            },
        },
        "components": {"type": "array", "uniqueItems": True, "items": {"$ref": "#/$defs/component"}},
    },
}
SCHEMA: dict[str, Any] = {
    "$defs": {"component": COMPONENT},
    "type": "object",
    "additionalProperties": False,
    "required": ["bomFormat", "specVersion", "serialNumber", "version", "metadata", "components", "dependencies"],
    "properties": {
        "$schema": {"const": "http://cyclonedx.org/schema/bom-1.6.schema.json"},
        "bomFormat": {"const": "CycloneDX"},
        "specVersion": {"const": "1.6"},
        "serialNumber": {
            "type": "string",
            "pattern": "^urn:uuid:[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$",
        },
        "version": {"type": "integer", "minimum": 1},
        "metadata": {
            "type": "object",
            "additionalProperties": False,
            "properties": {"component": {"$ref": "#/$defs/component"}},
        },
        "components": {"type": "array", "uniqueItems": True, "items": {"$ref": "#/$defs/component"}},
        "dependencies": {
            "type": "array",
            "uniqueItems": True,
            "items": {
                "type": "object",
                "additionalProperties": False,
                "required": ["ref"],
                "properties": {
                    "ref": {"type": "string"},
                    "dependsOn": {"type": "array", "uniqueItems": True, "items": {"type": "string"}},
                },
            },
        },
    },
}
DIGESTS = {language: f"{index:064x}" for index, language in enumerate(RECIPES)}


def test_the_sbom_has_the_structure_of_cyclonedx() -> None:
    bill = bill_of_materials("1.2.3", DIGESTS)
    validator: Any = jsonschema.Draft202012Validator(SCHEMA)
    validator.validate(bill)
    listed = [bill["metadata"]["component"], *bill["components"]]
    references = [
        each["bom-ref"] for each in [*listed, *(part for one in listed for part in one.get("components", ()))]
    ]
    assert len(references) == len(set(references))
    related = {each["ref"] for each in bill["dependencies"]}
    related |= {reference for each in bill["dependencies"] for reference in each["dependsOn"]}
    assert related == {each["bom-ref"] for each in listed}


def test_every_pin_is_a_component_with_its_hashes() -> None:
    files = {path.relative_to(GUEST).as_posix() for path in GUEST.glob("*/*.txt")}
    assert files == {pins for listed in PINS.values() for pins in listed}
    for file in files:
        text = (GUEST / file).read_text(encoding="utf-8")
        components = pinned_components(file)
        assert len(components) == len(re.findall(r"^[^#\s]", text, re.MULTILINE))
        assert sum(len(each["hashes"]) for each in components) == len(re.findall("sha256:|sha512-", text))
    named = {each["name"] for file in files for each in pinned_components(file)}
    assert named == set(LICENCES)


def test_the_sbom_names_the_images_that_are_built(tmp_path: Path) -> None:
    path = write_sbom(tmp_path, "1.2.3", IMAGES)
    assert path == tmp_path / FILE_NAME
    components = json.loads(path.read_text(encoding="utf-8"))["components"]
    for language in RECIPES:
        digest = json.loads((IMAGES / f"{language}.json").read_text(encoding="utf-8"))["sha256"]
        (image,) = [each for each in components if each["name"] == f"toolbridge-guest-{language}"]
        assert image["hashes"] == [{"alg": "SHA-256", "content": digest}]


def test_the_same_pins_and_images_give_the_same_bytes(tmp_path: Path) -> None:
    texts = [write_sbom(tmp_path / name, "1.2.3", IMAGES).read_bytes() for name in ("one", "two")]
    assert texts[0] == texts[1]
    assert bill_of_materials("1.2.4", DIGESTS)["serialNumber"] != bill_of_materials("1.2.3", DIGESTS)["serialNumber"]


def test_a_package_without_a_recorded_licence_fails_the_build(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(LICENCES, "tzdata")
    with pytest.raises(KeyError):
        pinned_components("python/builder.txt")


def test_the_version_of_cpython_is_that_of_the_image(sandbox: Sandbox) -> None:
    program = "import platform\nplatform.python_version()"
    assert sandbox.run_sync(program, language="python").value == CPYTHON
