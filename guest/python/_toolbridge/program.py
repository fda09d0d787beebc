"""Compiles and runs one program, and returns its value."""

from __future__ import annotations

import ast
import inspect
import linecache
import sys
from types import CodeType, CoroutineType, ModuleType
from typing import Any, NamedTuple, cast

from .event_loop import run_to_end

_VALUE = "__toolbridge_value__"
_RESULT = "result"
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp)
_READ = ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
_MOST_BLOCKS = 20
"""Of nested exception handlers in one code object. CPython 3.14 has room for 21, and counts `try` and `with`, but not
the comprehensions that it inlines: one more writes beyond its stack."""
_WORDS_OF_BLOCKS = (b"for", b"async", b"try", b"with", b"except", b"finally")


class NoValue:
    """Marks a program without a value."""


class Program(NamedTuple):
    """A program, ready to run."""

    code: CodeType
    has_expression: bool
    has_result: bool
    is_expression: bool = False
    """Whether the code is one expression, and evaluating it gives the value."""


def compiled(source: str, file: str) -> Program:
    """Compiles a program so that the value of its last expression is kept.

    Raises:
        SyntaxError, ValueError, MemoryError: it can't be compiled.
    """
    try:
        return _compiled(source, file)
    except (MemoryError, RecursionError) as error:
        if not is_too_deep(error):
            raise
    raise SyntaxError("The program is nested too deeply here.", (file, _deep_line(source, file), 1, ""))


def is_too_deep(error: BaseException) -> bool:
    """Whether the error means that source text is nested too deeply for the stack of the parser or compiler."""
    return isinstance(error, RecursionError) or "too complex to parse" in str(error)


def _deep_line(source: str, file: str) -> int:
    """Finds the line at which a program gets too deep, by bisection: with fewer lines, it is at most incomplete."""
    lines = source.split("\n")
    fewer, enough = 0, len(lines)
    while enough - fewer > 1:
        middle = (fewer + enough) // 2
        try:
            compile("\n".join(lines[:middle]), file, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
            fewer = middle
        except (MemoryError, RecursionError):
            enough = middle
        except (SyntaxError, ValueError):
            fewer = middle
    return enough


class BlockGuard:
    """An audit hook that refuses source text whose comprehensions are nested deeper than the compiler can take."""

    def __init__(self) -> None:
        self._is_reading = False

    def __call__(self, event: str, arguments: tuple[Any, ...]) -> None:
        """Parses source text before it is compiled, here or by exec and eval.

        Raises:
            SyntaxError: it is nested too deeply.
        """
        if event != "compile" or self._is_reading or type(arguments[0]) is not bytes:
            return
        source, file = arguments
        if sum(map(source.count, _WORDS_OF_BLOCKS)) <= _MOST_BLOCKS:
            return
        self._is_reading = True
        try:
            tree = compile(source.lstrip(b" \t"), "", "exec", _READ, dont_inherit=True)
        except (SyntaxError, ValueError, MemoryError, RecursionError):
            return  # the compiler raises its own error
        finally:
            self._is_reading = False
        node = _one_too_many(tree)
        if node is not None:
            text = source.split(b"\n")[node.lineno - 1]
            place = (file, node.lineno, len(text[: node.col_offset].decode("utf-8", "replace")) + 1, text.decode())
            raise SyntaxError(f"Comprehensions and other blocks are nested more than {_MOST_BLOCKS} deep here.", place)


def _one_too_many(tree: ast.AST) -> ast.expr | None:
    """Finds a comprehension within as many exception handlers as one code object may have; None if there is none."""
    waiting: list[tuple[ast.AST, int]] = [(tree, 0)]
    while waiting:
        node, depth = waiting.pop()
        if isinstance(node, _COMPREHENSIONS):
            depth += 1 + sum(each.is_async for each in node.generators)
            if depth > _MOST_BLOCKS:
                return node
        elif isinstance(node, (ast.Try, ast.TryStar)):
            depth += 1 + bool(node.handlers and node.finalbody)
        elif isinstance(node, (ast.With, ast.AsyncWith)):
            depth += len(node.items)
        elif isinstance(node, (ast.ExceptHandler, ast.AsyncFor)):
            depth += 1
        body: Any = getattr(node, "body", ()) if isinstance(node, _SCOPES) else ()
        own = set(map(id, cast("list[ast.AST]", body) if isinstance(body, list) else (body,)))
        waiting.extend((each, 0 if id(each) in own else depth) for each in ast.iter_child_nodes(node))
    return None


def _compiled(source: str, file: str) -> Program:
    """Compiles a program as `compiled` does, and lets tracebacks find its source; may run out of stack."""
    linecache.cache[file] = (lambda: source,)  # read only when a traceback is printed
    expression = _one_expression(source, file)
    if expression is not None:
        return Program(expression, has_expression=True, has_result=False, is_expression=True)
    tree = compile(source, file, "exec", _READ, dont_inherit=True)
    last = tree.body[-1] if tree.body else None
    has_expression = isinstance(last, ast.Expr)
    if isinstance(last, ast.Expr):
        name = ast.copy_location(ast.Name(_VALUE, ast.Store()), last)
        tree.body[-1] = ast.copy_location(ast.Assign(targets=[name], value=last.value), last)
    code = compile(tree, file, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
    # Looking through the tree takes as long as compiling it. Letters beyond ASCII may stand for those of the name.
    has_result = (_RESULT in source or not source.isascii()) and _assigns_result(tree)
    return Program(code, has_expression, has_result)


def _one_expression(source: str, file: str) -> CodeType | None:
    """Compiles a one-line expression, as most programs of sessions are, without a syntax tree; None if it isn't one.

    Saves two thirds of the memory that a fresh instance would otherwise dirty.
    """
    if "\n" in source.rstrip():
        return None
    try:
        return compile(source, file, "eval", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
    except (SyntaxError, ValueError):  # may still be valid as a program
        return None


def _assigns_result(tree: ast.Module) -> bool:
    """Returns whether the program assigns the variable `result` outside its functions."""
    waiting: list[ast.AST] = list(tree.body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Name) and node.id == _RESULT and isinstance(node.ctx, ast.Store):
            return True
        if isinstance(node, ast.Global) and _RESULT in node.names:
            return True
        if isinstance(node, _SCOPES):
            waiting.extend(each for each in ast.walk(node) if isinstance(each, ast.Global))
            continue
        waiting.extend(ast.iter_child_nodes(node))
    return False


def main_module() -> ModuleType:
    """Returns the module that programs run in, kept from one run of a session to the next.

    Makes a new one if there is none, or a program has replaced it.
    """
    module = sys.modules.get("__main__")
    if not isinstance(module, _Main):
        module = sys.modules["__main__"] = _Main("__main__")
        module.__dict__["__builtins__"] = sys.modules["builtins"]
    return module


class _Main(ModuleType):
    """The module of programs, told by its type from a replacement."""


def run(program: Program) -> Any:
    """Runs a program to its end and returns its value, or `NoValue`; passes its exceptions on."""
    names = main_module().__dict__
    names.pop(_VALUE, None)
    outcome = eval(program.code, names)  # noqa: S307  # the purpose of this module
    if program.code.co_flags & inspect.CO_COROUTINE:
        outcome = run_to_end(outcome)
    value = outcome if program.is_expression else names.pop(_VALUE, None)
    if isinstance(value, CoroutineType):
        value = run_to_end(value)
    if value is None and program.has_result and _RESULT in names:
        return names[_RESULT]
    return value if program.has_expression else NoValue
