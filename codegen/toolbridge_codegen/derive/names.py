"""Names of types: short, readable, unique, independent of a listing's order.

A type is named after its tool and its position in the schema, or after its definition; never like something that either
language, its standard library or the stubs define.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any

from toolbridge_codegen.escaping import is_object

LONGEST_TYPE_NAME = 64
_LONGEST_PART = 32
_LONGEST_TEXT = 200

_TYPESCRIPT = """
AbortController AbortSignal AggregateError Array ArrayBuffer ArrayBufferView ArrayLike AsyncGenerator AsyncIterable
AsyncIterableIterator AsyncIterator Atomics Awaited BigInt BigInt64Array BigUint64Array Blob Boolean Buffer Callable
CallableFunction Capitalize ConstructorParameters DataView Date Document Element Error EvalError Event Exclude Extract
File FinalizationRegistry Float32Array Float64Array Function Generator GeneratorFunction Headers IArguments Infinity
InstanceType Int16Array Int32Array Int8Array Intl Iterable IterableIterator Iterator IteratorResult JSON Lowercase Map
Math NaN NewableFunction NoInfer Node NonNullable Number Object Omit OmitThisParameter Parameters Partial Pick Promise
PromiseConstructor PromiseLike PropertyDescriptor PropertyKey Proxy RangeError Readonly ReadonlyArray ReadonlyMap
ReadonlySet Record ReferenceError Reflect RegExp Request Required Response ReturnType Set SharedArrayBuffer String
Symbol SyntaxError TemplateStringsArray TextDecoder TextEncoder ThisParameterType ThisType TypeError URIError URL
URLSearchParams Uint16Array Uint32Array Uint8Array Uint8ClampedArray Uncapitalize Uppercase WeakMap WeakRef WeakSet
WebAssembly Window
"""

_PYTHON = """
Annotated Any AnyStr ArithmeticError AssertionError AsyncContextManager AttributeError Awaitable BaseException
BaseExceptionGroup BlockingIOError BrokenPipeError BufferError BytesWarning Callable ChildProcessError ClassVar
Collection Concatenate ConnectionError Container ContextManager Coroutine Counter DefaultDict DeprecationWarning Deque
Dict EOFError Ellipsis EncodingWarning EnvironmentError Exception ExceptionGroup False Final FloatingPointError
ForwardRef FrozenSet FutureWarning Generic Hashable IO IOError ImportError ImportWarning IndentationError IndexError
InterruptedError IsADirectoryError ItemsView KeyError KeyboardInterrupt KeysView List Literal LiteralString LookupError
Mapping Match MemoryError ModuleNotFoundError MutableMapping MutableSequence MutableSet NameError NamedTuple Never
NewType NoReturn None NotADirectoryError NotImplemented NotImplementedError NotRequired OSError Optional OrderedDict
OverflowError ParamSpec Pattern PendingDeprecationWarning PermissionError ProcessLookupError Protocol ReadOnly
RecursionError ReferenceError Required ResourceWarning Reversible RuntimeError RuntimeWarning Self Sequence Sized
StopAsyncIteration StopIteration SupportsInt SyntaxWarning SystemError SystemExit TabError Text TimeoutError True Tuple
Type TypeAlias TypeAliasType TypeGuard TypeIs TypeVar TypeVarTuple TypedDict UnboundLocalError UnicodeError
UnicodeWarning Union Unpack UserWarning ValueError ValuesView Warning ZeroDivisionError
"""

_STUBS = "Bridge Call Handle Input Module Output Tool ToolDenied ToolError ToolErrorResult ToolTimeout Unknown"

RESERVED_TYPE_NAMES = frozenset(f"{_TYPESCRIPT} {_PYTHON} {_STUBS}".split())
"""Names that no declared type has."""

_WORDS = re.compile(r"[A-Za-z0-9]+")


def pascal_case(text: str) -> str:
    """Returns `get_forecast` and `get-forecast` as `GetForecast`: ASCII letters and digits, at most 32."""
    return _pascal_case(text[:_LONGEST_TEXT])


@lru_cache(maxsize=4096)
def _pascal_case(text: str) -> str:
    """Cached: a server's tools repeat their properties' names."""
    return "".join(pascal_words(text))[:_LONGEST_PART]


def pascal_words(text: object) -> list[str]:
    """Returns the capitalised ASCII words of a text's first 200 characters; none if it is no string."""
    words = _WORDS.findall(text[:_LONGEST_TEXT]) if isinstance(text, str) else ()
    return [word[0].upper() + word[1:] for word in words]


def singular(name: str) -> str:
    """Returns the singular of a plural, by simple rules of English; other names unchanged."""
    if name.endswith("ies") and not name.endswith(("Series", "series", "Species", "species", "Movies", "Cookies")):
        return f"{name[:-3]}y"
    if name.endswith(("sses", "xes", "ches", "shes")):
        return name[:-2]
    if name.endswith("s") and not name.endswith(("ss", "us", "is", "as", "ies", "News", "news")):
        return name[:-1]
    return name


class TypeNames:
    """Assigns the type names of one module, none of them a tool's. Deterministic for a given order of claims."""

    def __init__(self, identifiers: Iterable[str]) -> None:
        # A class and a function can't share a name in Python.
        self._taken = {*identifiers}
        self._owners: dict[str, str] = {}
        self._next_number: dict[str, int] = {}

    def reserve(self, wanted: str, owner: str) -> None:
        """Reserves a name, made valid as by `claim`, for its owner: claims of others get a number."""
        self._owners[_valid_type_name(wanted)] = owner

    def claim(self, wanted: str, owner: str) -> str:
        """Claims and returns a unique name: the wanted one, made valid, or with a number if it is taken.

        A name reserved for another owner counts as taken.
        """
        base = _valid_type_name(wanted)
        name = base
        while name in self._taken or self._owners.get(name, owner) != owner:
            number = self._next_number.get(base, 2)
            self._next_number[base] = number + 1
            name = f"{base[: LONGEST_TYPE_NAME - 8]}{number}"
        self._taken.add(name)
        return name


def _valid_type_name(wanted: str) -> str:
    """Returns the name as a valid one: not reserved, without a leading digit, at most 64 characters."""
    name = wanted
    if not name or name[0].isdigit():
        name = f"Type{name}"
    if name in RESERVED_TYPE_NAMES:
        name = f"{name}Type"
    if len(name) > LONGEST_TYPE_NAME:
        name = f"{name[: LONGEST_TYPE_NAME - 8]}{hashlib.sha256(name.encode()).hexdigest()[:8]}"
    return name


def tool_prefixes(identifiers: Iterable[str]) -> dict[str, str]:
    """Returns a unique prefix for each tool's type names: `get_forecast` → `GetForecast`, or with a number."""
    prefixes: dict[str, str] = {}
    taken: set[str] = set()
    for identifier in sorted(identifiers):
        base = "".join([word[0].upper() + word[1:] for word in identifier.split("_") if word]) or "Tool"
        prefix, number = base, 2
        while prefix in taken:
            prefix = f"{base}{number}"
            number += 1
        taken.add(prefix)
        prefixes[identifier] = prefix
    return prefixes


# Names of a choice's branches.

_MOST_LOOKED_AT = 8
_LONGEST_WORD = 32


def variant_names(branches: Sequence[Sequence[Any]], name: str) -> list[str]:
    """Returns a name for each branch: `name` and its title, its discriminator or its number.

    With fewer than two branches that are objects, all get `name`. Each branch is given as the schemas that it adds.
    """
    objects = [index for index, schemas in enumerate(branches) if any(map(_lists_properties, schemas))]
    if len(objects) < 2:
        return [name] * len(branches)
    words = _distinct_words([_branch_words(schemas) for schemas in branches])
    unique = all(words[index] for index in objects) and len({words[index] for index in objects}) == len(objects)
    return [name + (word if unique else str(index + 1)) for index, word in enumerate(words)]


def _distinct_words(phrases: list[list[str]]) -> list[str]:
    """Returns each phrase as one word of up to 32 characters, without the first words that all share."""
    given = [phrase for phrase in phrases if phrase]
    shared = 0
    for words in zip(*given, strict=False):
        if len(given) < 2 or len(set(words)) > 1:
            break
        shared += 1
    return ["".join(phrase[shared:])[:_LONGEST_WORD] for phrase in phrases]


def _lists_properties(schema: Any) -> bool:
    return is_object(schema) and "properties" in schema


def _branch_words(schemas: Sequence[Any]) -> list[str]:
    """Returns the words of the first title or constant property among the schemas; none without either."""
    for schema in schemas:
        if is_object(schema):
            words = pascal_words(schema.get("title")) or _tag_words(schema)
            if words:
                return words
    return []


def _tag_words(schema: dict[str, Any]) -> list[str]:
    """Returns the words of a property's constant: `{"kind": {"const": "circle"}, …}` is `Circle`.

    Looks at the first eight properties; empty if none has one.
    """
    properties = schema.get("properties")
    if is_object(properties):
        for inner in list(properties.values())[:_MOST_LOOKED_AT]:
            words = pascal_words(inner.get("const")) if is_object(inner) else []
            if words:
                return words
    return []
