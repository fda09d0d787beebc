"""Comments and trailing commas: only those, and at the same positions."""

from __future__ import annotations

import json
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from growth import linear
from toolbridge.config.read_file import plain_json

JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.text(alphabet=st.sampled_from('ab"\\/*,}]{[: \n\u2028é'), max_size=12),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=12,
)
NOISE = st.sampled_from(
    ["", " ", "\n", "// one\n", "/* two */", "/* \n three */", "// , } ]\n", '/* " */', "//\r\n", "/**/"]
)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": 1} // end', {"a": 1}),
        ('// start\n{"a": /* in */ 1}', {"a": 1}),
        ('{"a": [1, 2,], }', {"a": [1, 2]}),
        ('{"a": 1, // last\n /* x */ }', {"a": 1}),
        ('{"url": "http://x//y", "glob": "/*.js", "end": "*/"}', {"url": "http://x//y", "glob": "/*.js", "end": "*/"}),
        (r'{"a": "\" // no comment", "b": "\\"} // yes', {"a": '" // no comment', "b": "\\"}),
        ('{"a": ",}", "b": ", ]"}', {"a": ",}", "b": ", ]"}),
        ('["a,",]', ["a,"]),
        ("[[1],]", [[1]]),
        ("/* a * b ** / c */[]", []),
        ('["//"]', ["//"]),
    ],
)
def test_comments_and_trailing_commas_are_taken_out(text: str, value: object) -> None:
    assert json.loads(plain_json(text)) == value


@pytest.mark.parametrize(
    "text",
    [
        "[,]",
        "{,}",
        "[1,,]",
        "[1,,2]",
        '{"a":,}',
        "[1 /* open",
        "[1] / 2",
        "{/}",
        '["a\n"]',
        '["open]',
        "[1,",
        "*/[]",
        "/*/[]",
        '{"a" 1,}',
    ],
)
def test_what_is_not_jsonc_stays_an_error(text: str) -> None:
    with pytest.raises(ValueError):
        json.loads(plain_json(text))


@given(JSON_VALUES, st.integers(0, 3))
def test_plain_json_is_left_alone(value: object, indent: int) -> None:
    text = json.dumps(value, indent=indent or None, ensure_ascii=False)
    assert plain_json(text) == text


@given(st.data())
def test_noise_between_tokens_changes_nothing_and_keeps_every_position(data: st.DataObject) -> None:
    def write(value: object) -> str:
        noise = [data.draw(NOISE) for _ in range(4)]
        if isinstance(value, list) and value:
            items = cast("list[object]", value)
            text = f"[{','.join(write(item) for item in items)}{data.draw(st.sampled_from(['', ',']))}{noise[1]}]"
        elif isinstance(value, dict) and value:
            pairs = ",".join(
                f"{json.dumps(key)}{noise[2]}:{write(item)}" for key, item in cast("dict[str, object]", value).items()
            )
            text = f"{{{noise[3]}{pairs}{data.draw(st.sampled_from(['', ',']))}{noise[1]}}}"
        else:
            text = json.dumps(value, ensure_ascii=False)
        return f"{noise[0]}{text}{data.draw(NOISE)}"

    value = data.draw(JSON_VALUES)
    text = write(value)
    plain = plain_json(text)
    assert json.loads(plain) == value
    assert len(plain) == len(text)
    assert plain.count("\n") == text.count("\n")


@pytest.mark.parametrize("piece", [",", '"', "/*", "//", "/", ", ", "\\", '"\\', "*/", "/**", ",]", "{,"])
def test_a_hostile_megabyte_takes_time_in_proportion(piece: str) -> None:
    text = "[" + piece * (1_000_000 // len(piece))
    assert len(plain_json(text)) == len(text)
    linear(plain_json, lambda size: "[" + piece * (size // len(piece)), 500_000)
