"""$ref resolution: from a reference to its schema, inside one document. Nothing is ever fetched.

Supports JSON Pointers (percent- and `~`-escaped), `$anchor`, `$dynamicAnchor`, `$recursiveAnchor`, and references
relative to an `$id` (or draft 4's `id`) of the same document. Real servers also embed schemas with pointers relative to
another root, or move `definitions` to `$defs` without the references: these are resolved where they must have been
meant.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from toolbridge_codegen.escaping import is_list, is_object

LONGEST_REFERENCE = 1000
_MOST_INDEXED = 200_000
_MOST_ROOTS = 64

REFERENCE_KEYWORDS = ("$ref", "$dynamicRef", "$recursiveRef")
REFERENCES = frozenset(REFERENCE_KEYWORDS)
DEFINITION_KEYWORDS = ("$defs", "definitions")
_SCHEMA_MAPS = frozenset(
    {"properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies"}
)
_VALUES = frozenset({"const", "default", "enum", "example", "examples"})
_CONTAINERS: tuple[type[Any], ...] = (dict, list)
_ADDRESSES = ("$id", "id")
_ANCHORS = ("$anchor", "$dynamicAnchor")
_CALLED = frozenset({*_ADDRESSES, *_ANCHORS, "$recursiveAnchor"})
_OLD_DIALECTS = ("draft-03", "draft-04", "draft-05", "draft-06", "draft-07")


class Target(NamedTuple):
    """The schema that a reference resolves to."""

    schema: Any
    pointer: str
    """Its JSON Pointer; empty for the whole document, or if it has no simple one."""
    definition: str
    """The name under `$defs` or `definitions`, or empty."""


class RefusedReferenceError(Exception):
    """A reference that can't be resolved in its document. Never leaves the code generator."""


class Document:
    """A schema document, indexed for $ref resolution."""

    def __init__(self, root: Any) -> None:
        self.root = root
        self._indexed = False
        self._known: dict[tuple[int, str], Target | None] = {}
        self._parents: dict[int, dict[str, Any] | None] | None = None
        # A resource is a schema with an `$id`, or the whole document: the base of relative references.
        self._resource_of: dict[int, dict[str, Any]] = {}
        self._copies: dict[int, dict[str, Any]] = {}
        self._addresses: dict[int, str] = {}
        self._resources: dict[str, dict[str, Any]] = {}
        self._anchors: dict[tuple[int, str], dict[str, Any]] = {}
        # By name, the candidates of a dynamic reference: at most one schema of each resource.
        self._dynamic: dict[str, dict[int, dict[str, Any]]] = {}

    @property
    def ignores_siblings(self) -> bool:
        """Whether keywords beside `$ref` are ignored, as up to draft 7."""
        return self._declares(_OLD_DIALECTS)

    @property
    def _is_draft_4(self) -> bool:
        """Whether an address is an `id`, whatever its form, as up to draft 4."""
        return self._declares(_OLD_DIALECTS[:2])

    def _declares(self, dialects: Sequence[str]) -> bool:
        """Returns whether the document's `$schema` names one of these drafts."""
        dialect = self.root.get("$schema") if is_object(self.root) else None
        return isinstance(dialect, str) and any(one in dialect for one in dialects)

    def resolve(self, reference: str, holder: dict[str, Any]) -> Target:
        """Resolves a reference written in the schema `holder`, which must be of this document or an alias.

        Indexes the document at first use, and caches targets.

        Raises:
            RefusedReferenceError: it is remote or too long, leads nowhere, or is dynamic and ambiguous.
        """
        if len(reference) > LONGEST_REFERENCE:
            raise RefusedReferenceError("is too long")
        if not self._indexed:
            self._index()
        holder = self._copies.get(id(holder), holder)
        resource = self._resource_of.get(id(holder), self.root)
        key = (id(resource), reference)
        if key not in self._known:
            self._known[key] = self._resolve(reference, resource)
        target = self._known[key] or self._resolve_from_parents(reference, holder)
        if target is None:
            raise RefusedReferenceError("leads nowhere" if reference.startswith("#") else "is remote")
        return target if isinstance(holder.get("$ref"), str) else self._resolve_dynamic(reference, target)

    def alias(self, copy: dict[str, Any], original: dict[str, Any]) -> None:
        """Makes references in a copy resolve as in the original."""
        self._copies[id(copy)] = original

    def _resolve_dynamic(self, reference: str, target: Target) -> Target:
        """Resolves a dynamic reference: the schema of its name in the outermost resource on the way to it.

        The whole document is always on the way; the others depend on the reader.

        Raises:
            RefusedReferenceError: several schemas remain.
        """
        name = reference.partition("#")[2]
        candidates = self._dynamic.get(name, {})
        if len(candidates) < 2 or not any(schema is target.schema for schema in candidates.values()):
            return target
        schema = candidates.get(id(self.root))
        if schema is None:
            raise RefusedReferenceError("is dynamic and may mean several schemas")
        return Target(schema, "", name)

    def _resolve(self, reference: str, resource: Any) -> Target | None:
        """Resolves a reference relative to a resource: by address, anchor or pointer; None if that fails."""
        address, _, fragment = reference.partition("#")
        fragment = _unquote(fragment)
        base: Any = resource
        if address:
            absolute = _absolute(self._addresses.get(id(resource), ""), _unquote(address))
            base = self._resources.get(absolute, self._resources.get(address))
            if base is None:
                return self._resolve_bare_name(address) if not fragment else None
        if fragment and not fragment.startswith("/"):
            schema = self._anchors.get((id(base), fragment))
            return None if schema is None else Target(schema, "", fragment)
        return self._resolve_pointer(fragment, base)

    def _resolve_from_parents(self, reference: str, holder: dict[str, Any]) -> Target | None:
        """Resolves a pointer that fails from its own root, from the nearest enclosing schema where it succeeds.

        At last from the document, also with `definitions` and `$defs` swapped. None if all fail.
        """
        if not reference.startswith("#/"):
            return None
        pointer = _unquote(reference[1:])
        if self._parents is None:
            self._parents = {id(schema): parent for schema, parent in self._schemas()}
        around: dict[str, Any] | None = holder
        for _ in range(_MOST_ROOTS):
            if around is None:
                break
            found = self._resolve_pointer(pointer, around)
            if found is not None:
                return found
            around = self._parents.get(id(around))
        return self._resolve_pointer(pointer, self.root) or self._resolve_pointer(_swap_keyword(pointer), self.root)

    def _resolve_pointer(self, pointer: str, base: Any) -> Target | None:
        """Follows an unescaped pointer from `base`; None if it leads nowhere, or to no schema."""
        value: Any = base
        tokens = [token.replace("~1", "/").replace("~0", "~") for token in pointer.split("/")[1:]]
        for token in tokens:
            if is_object(value) and token in value:
                value = value[token]
            elif is_list(value) and token.isdecimal() and len(token) < 9 and int(token) < len(value):
                value = value[int(token)]
            else:
                return None
        if not isinstance(value, dict | bool):
            return None
        name = tokens[-1] if len(tokens) > 1 and tokens[-2] in DEFINITION_KEYWORDS else ""
        return Target(value, pointer if base is self.root else "", name)

    def _resolve_bare_name(self, name: str) -> Target | None:
        """Resolves `{"$ref": "Address"}`, which is no JSON Schema, to the definition of that name; None without one."""
        for keyword in DEFINITION_KEYWORDS:
            found = self._resolve_pointer(f"/{keyword}/" + name.replace("~", "~0").replace("/", "~1"), self.root)
            if found is not None:
                return found
        return None

    def _index(self) -> None:
        """Records all schemas with addresses and anchors. Most documents have none, which costs one pass."""
        self._indexed = True
        for schema, parent in self._schemas():
            around = self._resource_of.get(id(parent)) or self.root
            if not _CALLED.isdisjoint(schema):
                around = self._record(schema, around)
            if around is not self.root:
                self._resource_of[id(schema)] = around

    def _schemas(self) -> Iterator[tuple[dict[str, Any], dict[str, Any] | None]]:
        """Yields every schema with its parent, parents first, up to 200,000 values.

        Iterative: documents may be deeper than Python's stack.
        """
        if not is_object(self.root):
            return
        stack: list[tuple[Any, dict[str, Any] | None, bool]] = [(self.root, None, False)]
        left = _MOST_INDEXED
        while stack and left > 0:
            value, parent, is_map = stack.pop()
            left -= 1
            if is_list(value):
                stack += [(item, parent, False) for item in value if isinstance(item, _CONTAINERS)]
                left -= len(value)
            elif is_map:
                stack += [(item, parent, False) for item in value.values() if is_object(item)]
                left -= len(value)
            else:
                yield value, parent
                for keyword, item in value.items():
                    if isinstance(item, _CONTAINERS) and keyword not in _VALUES:
                        stack.append((item, value, keyword in _SCHEMA_MAPS and is_object(item)))

    def _record(self, schema: dict[str, Any], around: dict[str, Any]) -> dict[str, Any]:
        """Records a schema's address and anchors; returns the resource that it belongs to.

        `around` is that of its parent; a schema with an address is its own.
        """
        resource = around
        address = _address_of(schema, is_old=self._is_draft_4)
        if address.startswith("#"):
            self._anchors.setdefault((id(resource), address[1:]), schema)  # drafts 4 to 7: `$id: "#name"`
        elif address:
            absolute = _absolute(self._addresses.get(id(around), ""), address)
            self._resources.setdefault(absolute, schema)
            self._resources.setdefault(address, schema)
            self._addresses[id(schema)] = absolute
            resource = schema
        for keyword in _ANCHORS:
            anchor = schema.get(keyword)
            if isinstance(anchor, str):
                self._anchors.setdefault((id(resource), anchor), schema)
        dynamic = "" if schema.get("$recursiveAnchor") is True else schema.get("$dynamicAnchor")
        if isinstance(dynamic, str):
            self._dynamic.setdefault(dynamic, {}).setdefault(id(resource), schema)
        return resource


def reference_of(schema: dict[str, Any]) -> str | None:
    """Returns the first reference of a schema itself that is a string; None without one."""
    if REFERENCES.isdisjoint(schema):
        return None
    for keyword in REFERENCE_KEYWORDS:
        reference = schema.get(keyword)
        if isinstance(reference, str):
            return reference
    return None


def _address_of(schema: dict[str, Any], *, is_old: bool) -> str:
    """Returns a schema's address without a final `#`; empty without one. An `id` must look like an address."""
    for keyword in _ADDRESSES:
        address = schema.get(keyword)
        # `id` is also a common property's name: an address has a certain form.
        if isinstance(address, str) and (keyword == "$id" or is_old or "/" in address or address.startswith("#")):
            return address.removesuffix("#")
    return ""


def _absolute(base: str, address: str) -> str:
    """Resolves an address against a base, without its fragment; an invalid address stays as it is."""
    from urllib.parse import urljoin

    try:
        return urljoin(base, address).partition("#")[0]
    except ValueError:
        return address


def _unquote(text: str) -> str:
    """Decodes percent-escapes."""
    if "%" not in text:
        return text
    from urllib.parse import unquote

    return unquote(text)


def _swap_keyword(pointer: str) -> str:
    """Replaces `definitions` in a pointer by `$defs`, or if it has none, the other way round."""
    old, new = "/definitions/", "/$defs/"
    return pointer.replace(old, new) if old in pointer else pointer.replace(new, old)
