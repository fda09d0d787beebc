"""Compiling and running one program, and finding its value."""

from __future__ import annotations

import ast
import inspect
import linecache
import sys
from types import CodeType, CoroutineType, ModuleType
from typing import Any, NamedTuple

from .event_loop import run_to_end

_VALUE = "__toolbridge_value__"
_RESULT = "result"
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)


class NoValue:
    """The program gave no value."""


class Program(NamedTuple):
    """A program, ready to run."""

    code: CodeType
    has_expression: bool
    has_result: bool
    is_expression: bool = False
    """Whether the code is one expression, and evaluating it gives the value."""


def compiled(source: str, file: str) -> Program:
    """The program, its last expression kept.

    Raises:
        SyntaxError, ValueError, MemoryError, RecursionError: it can't be compiled.
    """
    linecache.cache[file] = (lambda: source,)  # read only when a traceback is printed
    expression = _one_expression(source, file)
    if expression is not None:
        return Program(expression, has_expression=True, has_result=False, is_expression=True)
    tree = compile(source, file, "exec", ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
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
    """A program of one line that is an expression, as in a session most are: compiled without a syntax tree.

    Which takes a third of the memory that a fresh instance would otherwise touch.
    """
    if "\n" in source.rstrip():
        return None
    try:
        return compile(source, file, "eval", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
    except (SyntaxError, ValueError):  # as a program it may be right, or wrong in its own way
        return None


def _assigns_result(tree: ast.Module) -> bool:
    """Whether the program itself, not a function of its own, assigns the variable `result`."""
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
    """The module that programs run in: kept from one run of a session to the next."""
    module = sys.modules.get("__main__")
    if not isinstance(module, _Main):
        module = sys.modules["__main__"] = _Main("__main__")
        module.__dict__["__builtins__"] = sys.modules["builtins"]
    return module


class _Main(ModuleType):
    """Ours, and no other's."""


def run(program: Program) -> Any:
    """Runs a program to its end: its value, or `NoValue`. Whatever it raises is raised."""
    names = main_module().__dict__
    names.pop(_VALUE, None)
    outcome = eval(program.code, names)  # noqa: S307  # that is what this is for
    if program.code.co_flags & inspect.CO_COROUTINE:
        outcome = run_to_end(outcome)
    value = outcome if program.is_expression else names.pop(_VALUE, None)
    if isinstance(value, CoroutineType):
        value = run_to_end(value)
    if value is None and program.has_result and _RESULT in names:
        return names[_RESULT]
    return value if program.has_expression else NoValue
