"""Shown texts of users are readable and cannot change the text around them."""

import pytest
from hostile_texts import ALL
from hypothesis import given
from hypothesis import strategies as st

from portal.text import shown

DIRECTION_CONTROLS = set("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


@pytest.mark.parametrize(
    "text",
    [
        "Zürich, Düne, 東京, 서울, Đà Nẵng, ไก่จิกเด็ก, हिन्दी & “quay”",
        "\u05e9\u05c1\u05b8\u05dc\u05d5\u05b9\u05dd \u200f(2026)\u200e",
        "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645",
        "\U0001f468\u200d\U0001f469\u200d\U0001f467 \U0001f1e9\U0001f1ea",
        "two\nlines\tand a tab",
    ],
)
def test_ordinary_text_is_unchanged(text: str) -> None:
    assert shown(text) == text


def test_controls_are_removed_and_line_ends_unified() -> None:
    assert shown("a\x1b[2Jb\x00\x7f\x85\r\nc\rd") == "a[2Jb\nc\nd"


@given(st.text() | st.sampled_from(ALL) | st.text(alphabet="ab\u200f\u202e\u2066\u2069"))
def test_shown_text_is_a_subsequence_without_direction_controls(text: str) -> None:
    result = shown(text)
    assert not DIRECTION_CONTROLS & set(result)
    assert shown(result) == result
    letters = iter(text.replace("\r", "\n"))
    assert all(letter in letters for letter in result)
