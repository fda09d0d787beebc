"""Facts from the languages' own parsers, which tell declarations from injected code."""

from __future__ import annotations

import ast
import builtins
import io
import tokenize
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from codegen import checkers

_KINDS = """
SourceFile EndOfFileToken ModuleDeclaration ModuleBlock InterfaceDeclaration TypeAliasDeclaration
FunctionDeclaration ClassDeclaration ImportDeclaration ImportClause NamedImports ImportSpecifier ExportDeclaration
NamedExports ExportSpecifier HeritageClause ExpressionWithTypeArguments TypeParameter
PropertySignature PropertyDeclaration MethodSignature MethodDeclaration Constructor IndexSignature CallSignature
Parameter Identifier StringLiteral NumericLiteral PrefixUnaryExpression LiteralType NullKeyword TrueKeyword
FalseKeyword TypeReference TypeLiteral UnionType IntersectionType ArrayType TupleType OptionalType RestType
NamedTupleMember FunctionType ParenthesizedType TypeOperator MappedType IndexedAccessType ConditionalType InferType
TypeQuery StringKeyword NumberKeyword BooleanKeyword AnyKeyword UnknownKeyword NeverKeyword VoidKeyword
UndefinedKeyword ObjectKeyword ReadonlyKeyword KeyOfKeyword ExportKeyword DeclareKeyword QuestionToken MinusToken
DotDotDotToken ExtendsKeyword
VariableStatement VariableDeclarationList VariableDeclaration ExportAssignment ImportType
"""
TYPESCRIPT_KINDS = frozenset(_KINDS.split())
"""Declarations and the types in them: nothing that could run, no templates. Variables are looked at one by one."""

_NODES = """
Module Import ImportFrom alias ClassDef FunctionDef AsyncFunctionDef AnnAssign Assign Expr Constant Name Load Store
Subscript Tuple List Dict BinOp BitOr Attribute Call keyword arguments arg UnaryOp USub Pass
"""
PYTHON_NODES = frozenset(_NODES.split())
"""What a stub is made of; calls are looked at one by one."""


@dataclass(frozen=True, slots=True)
class TypeScriptFacts:
    """Of one `.d.ts` file."""

    errors: tuple[str, ...]
    directives: int
    """Comments that mean something to the compiler."""
    kinds: frozenset[str]
    identifiers: tuple[tuple[str, str], ...]
    """`(role, name)`, in the order of the file."""
    strings: frozenset[tuple[str, str]]
    """`(role, value)`: module, property or literal."""
    tags: tuple[tuple[str, str], ...]
    """`(tag, name of what it is on)` of every documentation tag."""
    tokens: tuple[str, ...]
    """Without comments, strings emptied."""
    comments: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PythonFacts:
    """Of one `.pyi` file."""

    nodes: frozenset[str]
    calls: frozenset[str]
    """What is called: `TypedDict`, and nothing else should be."""
    names: frozenset[str]
    """Every name that is used or declared, of whatever sort."""
    functions: frozenset[str]
    imports: frozenset[str]
    strings: frozenset[str]
    """Of every string that is no docstring."""
    comments: tuple[str, ...]
    shape: str
    """The tree without its docstrings and with its strings emptied."""


def typescript_facts(directory: Path, files: Mapping[str, str]) -> dict[str, TypeScriptFacts]:
    """What TypeScript's parser sees, in one run for all files."""
    checkers.write_files(directory, files)
    found = checkers.run_node("typescript_syntax.mjs", directory, list(files))
    return {
        name: TypeScriptFacts(
            errors=tuple(facts["errors"]),
            directives=facts["directives"],
            kinds=frozenset(facts["kinds"]),
            identifiers=tuple((role, text) for role, text in facts["identifiers"]),
            strings=frozenset((role, text) for role, text in facts["strings"]),
            tags=tuple((tag, on) for tag, on in facts["tags"]),
            tokens=tuple(facts["tokens"]),
            comments=tuple(facts["comments"]),
        )
        for name, facts in found.items()
    }


def python_facts(text: str) -> PythonFacts:
    """What Python's own parser and tokenizer see."""
    tree = ast.parse(text)
    comments = [
        token.string for token in tokenize.generate_tokens(io.StringIO(text).readline) if token.type == tokenize.COMMENT
    ]
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    names: set[str] = set()
    calls: set[str] = set()
    strings: set[str] = set()
    functions: set[str] = set()
    imports: set[str] = set()
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.ClassDef(name=name) | ast.arg(arg=name):
                names.add(name)
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                functions.add(name)
            case ast.keyword(arg=str(name)):
                names.add(name)
            case ast.Call():
                calls.add(ast.unparse(node.func))
            case ast.Import() | ast.ImportFrom():
                imports.add(ast.unparse(node))
            case ast.Constant(value=str(value)) if id(node) not in docstrings:
                strings.add(value)
            case _:
                pass
    return PythonFacts(
        nodes=frozenset(type(node).__name__ for node in ast.walk(tree)),
        calls=frozenset(calls),
        names=frozenset(names),
        functions=frozenset(functions),
        imports=frozenset(imports),
        strings=frozenset(strings),
        comments=tuple(comments),
        shape=_shape(tree),
    )


def undeclared_names(text: str) -> set[str]:
    """The names that a `.pyi` file uses and neither declares, imports nor finds among the builtins."""
    tree = ast.parse(text)
    declared = set(dir(builtins))
    for node in tree.body:
        match node:
            case ast.ClassDef(name=name) | ast.FunctionDef(name=name) | ast.AnnAssign(target=ast.Name(id=name)):
                declared.add(name)
            case ast.Assign(targets=[ast.Name(id=name)]):
                declared.add(name)
            case ast.Import(names=names) | ast.ImportFrom(names=names):
                declared.update(each.asname or each.name for each in names)
            case _:
                pass
    # A field of a class is stored by its name; it declares nothing for others.
    return {
        node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
    } - declared


def hidden_characters(text: str) -> set[str]:
    """Characters that a reader can't see or that move others: none may stand in a stub as itself."""
    return {f"U+{ord(character):04X}" for character in set(text) if character not in "\n" and is_hidden(ord(character))}


def is_hidden(code: int) -> bool:
    """By category, and what else shows as nothing: Unicode's default ignorable characters, fillers, blanks."""
    category = unicodedata.category(chr(code))
    if category in {"Cc", "Cf", "Cs", "Zl", "Zp"}:
        return code not in _SIGNS
    return code in _BLANKS or any(code in span for span in _IGNORABLE)


_SIGNS = frozenset({*range(0x0600, 0x0606), 0x06DD, 0x070F, 0x0890, 0x0891, 0x08E2, 0x110BD, 0x110CD})
"""Format characters by category that can be seen: they stand above or below digits."""
_BLANKS = frozenset({0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x2065, 0x2800, 0x3164, 0xFFA0, 0x1D159})
_IGNORABLE = (range(0x180B, 0x1810), range(0xFE00, 0xFE10), range(0xFFF0, 0xFFF9), range(0xE0000, 0xE1000))


def _shape(tree: ast.Module) -> str:
    class Bare(ast.NodeTransformer):
        def visit_Expr(self, node: ast.Expr) -> None:
            return None

        def visit_Constant(self, node: ast.Constant) -> ast.Constant:
            return ast.Constant("") if isinstance(node.value, str) else node

    return ast.dump(Bare().visit(tree))
