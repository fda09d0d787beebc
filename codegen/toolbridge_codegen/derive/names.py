"""Names of types: short, readable, the same whatever the order of a listing, and nobody else's.

A type is named after its tool and where in the tool's schema it is, or after its definition. It never has the
name of something that either language, its standard library or the stub itself already means.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from functools import lru_cache

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
"""Names that a declared type never has."""

_WORDS = re.compile(r"[A-Za-z0-9]+")


def pascal_case(text: str) -> str:
    """`get_forecast` and `get-forecast` as `GetForecast`: letters and digits of ASCII only, at most 32 of them."""
    return _pascal_case(text[:_LONGEST_TEXT])


@lru_cache(maxsize=4096)
def _pascal_case(text: str) -> str:
    """Remembered, as tools of one server call their properties by the same names."""
    return "".join(pascal_words(text))[:_LONGEST_PART]


def pascal_words(text: object) -> list[str]:
    """The words of a text, each with a capital; none if it isn't a text."""
    words = _WORDS.findall(text[:_LONGEST_TEXT]) if isinstance(text, str) else ()
    return [word[0].upper() + word[1:] for word in words]


def singular(name: str) -> str:
    """The name of one of the things that a plural names, by the plainest rules of English; others stay."""
    if name.endswith("ies") and not name.endswith(("Series", "series", "Species", "species", "Movies", "Cookies")):
        return f"{name[:-3]}y"
    if name.endswith(("sses", "xes", "ches", "shes")):
        return name[:-2]
    if name.endswith("s") and not name.endswith(("ss", "us", "is", "as", "ies", "News", "news")):
        return name[:-1]
    return name


class TypeNames:
    """The type names of one module. Given in a fixed order, they come out the same every time."""

    __slots__ = ("_next_number", "_owners", "_taken")

    def __init__(self, identifiers: Iterable[str]) -> None:
        # A class and a function of one name exclude each other in Python.
        self._taken = {*identifiers}
        self._owners: dict[str, str] = {}
        self._next_number: dict[str, int] = {}

    def reserve(self, wanted: str, owner: str) -> None:
        """Keep a name for its owner."""
        self._owners[_fitting(wanted)] = owner

    def claim(self, wanted: str, owner: str) -> str:
        """A name of its own: the wanted one, or the wanted one with a number."""
        base = _fitting(wanted)
        name = base
        while name in self._taken or self._owners.get(name, owner) != owner:
            number = self._next_number.get(base, 2)
            self._next_number[base] = number + 1
            name = f"{base[: LONGEST_TYPE_NAME - 8]}{number}"
        self._taken.add(name)
        return name


def _fitting(wanted: str) -> str:
    name = wanted
    if not name or name[0].isdigit():
        name = f"Type{name}"
    if name in RESERVED_TYPE_NAMES:
        name = f"{name}Type"
    if len(name) > LONGEST_TYPE_NAME:
        name = f"{name[: LONGEST_TYPE_NAME - 8]}{hashlib.sha256(name.encode()).hexdigest()[:8]}"
    return name


def tool_prefixes(identifiers: Iterable[str]) -> dict[str, str]:
    """The beginning of each tool's type names; two tools never share one."""
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
