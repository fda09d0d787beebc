"""docs/pictures/demo.svg shows what the demo prints."""

from __future__ import annotations

from demo_picture import PICTURE, demo_output, drawn_lines, picture, without_times


def test_the_picture_of_the_terminal_is_what_the_demo_prints() -> None:
    """Durations aside. If it differs, run `python tests/demo_picture.py`."""
    drawn = picture(drawn_lines(demo_output()))
    assert without_times(drawn) == without_times(PICTURE.read_text(encoding="utf-8"))
