"""Escaping for comments and literals: text stays inside, and invisible characters become escapes."""

from __future__ import annotations

import ast
import io
import json
import math
import shutil
import subprocess
import tokenize
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cases import each
from toolbridge_codegen.escaping import (
    block_comment,
    docstring,
    is_keyword_argument,
    jsdoc,
    py_comment,
    py_integer,
    py_string,
    ts_comment,
    ts_key,
    ts_number,
    ts_string,
)

ANY_TEXT = st.text(st.characters(exclude_categories=()))
TRICKY_TEXT = st.text(st.sampled_from("*/@\"\\#'`{}\n aé:"))

INVISIBLE = list(
    "\x00\x07\x1b\x7f\x85\u00a0\u00ad\u034f\u061c\u115f\u180e\u200b\u200d\u200e\u2028\u2029\u202e\u2066\u2800\u3164"
    "\ud800\udfff\ue000\ufe0f\ufeff\U000e0041\U000e0100\U0010ffff"
)


def is_one_comment(text: str) -> bool:
    return text.startswith("/*") and text.endswith("*/") and text.count("*/") == 1 and len(text) > 3


# ---- string literals


@given(ANY_TEXT)
def test_a_python_literal_is_the_text(text: str) -> None:
    assert ast.literal_eval(py_string(text)) == text


@given(ANY_TEXT)
def test_literals_contain_no_invisible_characters(text: str) -> None:
    for literal in (py_string(text), ts_string(text)):
        assert literal.isprintable()
        assert not any(unicodedata.category(character) in {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"} for character in literal)


@each("character", INVISIBLE)
def test_invisible_characters_are_escaped(character: str) -> None:
    code = ord(character)
    for literal in (py_string(f"a{character}b"), ts_string(f"a{character}b")):
        assert literal.isascii()
        assert f"{code:x}" in literal.lower()


@pytest.mark.parametrize("text", ["é", "日本", "Ω ≠ ω", "😀", "ß", "don't"])
def test_visible_characters_are_kept(text: str) -> None:
    assert py_string(text) == ts_string(text) == f'"{text}"'


@pytest.mark.parametrize(
    ("text", "typescript", "python"),
    [
        ("", '""', '""'),
        ('a"b\\c', r'"a\"b\\c"', r'"a\"b\\c"'),
        ("a\nb\r\tc", r'"a\nb\r\tc"', r'"a\nb\r\tc"'),
        ("\x1b[0m", r'"\x1b[0m"', r'"\x1b[0m"'),
        ("\u202e", r'"\u202e"', r'"\u202e"'),
        ("\ud800", r'"\ud800"', r'"\ud800"'),
        ("\U000e0041", r'"\u{e0041}"', r'"\U000e0041"'),
        ("${x}`*/'''", "\"${x}`*/'''\"", "\"${x}`*/'''\""),
    ],
)
def test_each_language_has_its_escapes(text: str, typescript: str, python: str) -> None:
    assert (ts_string(text), py_string(text)) == (typescript, python)


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_javascript_reads_the_literals_as_the_texts() -> None:
    texts = [
        *INVISIBLE,
        'a"b\\c',
        "a\nb",
        "</script>",
        "${x}`",
        "".join(reversed(INVISIBLE)),
        "\x000",
        "\x1f9",
        "é😀日",
    ]
    program = f"console.log(JSON.stringify([{','.join(map(ts_string, texts))}]))"
    done = subprocess.run(["node", "-e", program], capture_output=True, check=True, timeout=60)
    assert json.loads(done.stdout) == texts


# ---- names


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("location", "location"),
        ("_a1", "_a1"),
        ("$ref", "$ref"),
        ("class", "class"),
        ("constructor", "constructor"),
        ("a-b", '"a-b"'),
        ("1st", '"1st"'),
        ("1", '"1"'),
        ("", '""'),
        ("a b", '"a b"'),
        ("é", '"é"'),
        ("a\n", r'"a\n"'),
        ('"]);x(', r'"\"]);x("'),
        ("\u202e", r'"\u202e"'),
    ],
)
def test_a_key_is_bare_only_if_it_is_an_identifier(name: str, key: str) -> None:
    assert ts_key(name) == key


@pytest.mark.parametrize("name", ["a", "_a", "A1", "input", "self", "type", "match", "_", "list"])
def test_names_that_can_be_keyword_arguments(name: str) -> None:
    assert is_keyword_argument(name)


@pytest.mark.parametrize(
    "name", ["", "a-b", "1a", "class", "None", "await", "__a", "__class__", "é", "ﬁ", "a\n", "$ref", "a b", "а"]
)
def test_names_that_can_not_be_keyword_arguments(name: str) -> None:
    assert not is_keyword_argument(name)


# ---- numbers


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (-0.0, "0"),
        (1, "1"),
        (-1, "-1"),
        (1.0, "1"),
        (1.5, "1.5"),
        (-2.5e-7, "-2.5e-07"),
        (2**53 + 1, "9007199254740993"),
        (10**21, "1e+21"),
        (1e300, "1e+300"),
        (-(10**30), "-1e+30"),
        (math.inf, None),
        (-math.inf, None),
        (math.nan, None),
        (10**400, None),
    ],
)
def test_a_number_is_a_literal_or_nothing(value: float, text: str | None) -> None:
    assert ts_number(value) == text


def test_an_integer_of_any_size_is_written_or_nothing() -> None:
    assert py_integer(-(2**64)) == str(-(2**64))
    assert py_integer(10**299) == str(10**299)
    assert py_integer(10**300) is None
    assert py_integer(-(10**5000)) is None
    assert ts_number(-(10**5000)) is None


# ---- comments


@given(TRICKY_TEXT)
def test_a_block_comment_ends_where_it_ends(text: str) -> None:
    assert is_one_comment(jsdoc(text))
    assert is_one_comment(jsdoc(text, "  ", deprecated=True))
    assert is_one_comment(block_comment(text))


@pytest.mark.parametrize(
    ("text", "comment"),
    [
        ("Plain.", "/** Plain. */"),
        ("a */ b", r"/** a *\/ b */"),
        ("**/", r"/** **\/ */"),
        ("/", "/** / */"),
        ("@deprecated", r"/** \@deprecated */"),
        ("see @param x", r"/** see \@param x */"),
        ("*@ts-ignore", r"/** *\@ts-ignore */"),
        ("{@link https://example.com}", r"/** {\@link https://example.com} */"),
        ("me@example.com, @ 5 o'clock", "/** me@example.com, @ 5 o'clock */"),
        ("one\n\n two \n@three", "/** one\n two\n \\@three */"),
        ("one\u2028two", "/** one\n two */"),
    ],
)
def test_a_documentation_comment_has_no_tags_of_the_texts(text: str, comment: str) -> None:
    assert jsdoc(text, " ") == comment


def test_the_deprecation_tag_is_ours_alone() -> None:
    assert jsdoc("Use b.", deprecated=True) == "/** @deprecated Use b. */"
    assert jsdoc("", deprecated=True) == "/** @deprecated */"


@given(TRICKY_TEXT)
def test_a_docstring_is_one_string_with_the_texts_words(text: str) -> None:
    body = ast.parse(f"def f():\n {docstring(text)}\n").body
    assert len(body) == 1
    function = body[0]
    assert isinstance(function, ast.FunctionDef)
    assert len(function.body) == 1
    assert (ast.get_docstring(function) or "").split() == text.split()


@pytest.mark.parametrize("text", ['"', '""', '"""', '""""', '"""""', '""""""', 'a"', 'a\\"', "a\\", '"\\"""\\', '"\n"'])
def test_quotes_and_backslashes_do_not_end_a_docstring(text: str) -> None:
    assert ast.literal_eval(docstring(text, "")) == text


def test_no_line_of_a_docstring_starts_at_the_margin() -> None:
    assert docstring("a\n# mypy: ignore-errors") == '"""a\n # mypy: ignore-errors"""'


@given(ANY_TEXT)
def test_a_python_comment_is_one_comment(text: str) -> None:
    text = text.replace("\x00", "").encode("utf-8", "ignore").decode()
    tokens = list(tokenize.generate_tokens(io.StringIO(f"a # {py_comment(text)}\n").readline))
    assert [token.type for token in tokens] == [
        tokenize.NAME,
        tokenize.COMMENT,
        tokenize.NEWLINE,
        tokenize.ENDMARKER,
    ]


@pytest.mark.parametrize(
    ("text", "comment"),
    [
        ("type: ignore", "type\\: ignore"),
        ("type : ignore", "type \\: ignore"),
        ("x # type: ignore", "x # type\\: ignore"),
        ("#type:ignore", "#type\\:ignore"),
        ("ty: ignore", "ty\\: ignore"),
        ("x # ty :ignore[all]", "x # ty \\:ignore[all]"),
        ("pyright: basic", "pyright\\: basic"),
        ("basedpyright: ignore", "basedpyright\\: ignore"),
        ("mypy: ignore-errors", "mypy\\: ignore-errors"),
        ("pyrefly: ignore", "pyrefly\\: ignore"),
        ("Type: x", "Type\\: x"),
        ("property: x", "property: x"),
        ("the type: a or b", "the type: a or b"),
        ("one\n\ntwo\u2028three\r\x0bfour", "one two three four"),
    ],
)
def test_a_python_comment_gives_no_directives(text: str, comment: str) -> None:
    assert py_comment(text) == comment


def test_a_typescript_line_comment_gives_no_directives() -> None:
    assert ts_comment("@ts-ignore\n@ts-nocheck") == r"\@ts-ignore \@ts-nocheck"
