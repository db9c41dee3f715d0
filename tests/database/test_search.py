"""Folding, words and pairs: what is made of titles and of what people type."""

# ruff: noqa: RUF001 - words of many languages

import pytest

from portal.database.search import MAX_QUERY_WORDS, fold, query_words, search_columns, words_query


@pytest.mark.parametrize(
    ("written", "typed"),
    [
        ("Café", "cafe"),
        ("CAFÉ", "Cafe\u0301"),
        ("Straße", "STRASSE"),
        ("Ёлка", "елка"),
        ("Σίσυφος", "ΣΙΣΥΦΟΣ"),
        ("Øresund", "oresund"),
        ("Łódź", "lodz"),
        ("İstanbul", "istanbul"),
        ("Ｆｕｌｌ　ｗｉｄｔｈ", "full width"),
        ("ｶﾞﾝﾀﾞﾑ", "ガンダム"),
        ("مَرْحَبًا", "مرحبا"),
        ("Donau\u00addampf", "donaudampf"),
    ],
)
def test_case_accents_and_width_make_no_difference(written: str, typed: str) -> None:
    assert fold(written) == fold(typed)
    assert query_words(written) == query_words(typed)


def test_vowel_signs_are_no_accents() -> None:
    assert fold("กิน") != fold("กน")
    assert query_words("हिन्दी") == ["हिन्दी*"]


def test_words_typed_are_beginnings_and_pairs_are_not() -> None:
    assert query_words("Holi, 2026!") == ["holi*", "2026*"]
    assert query_words("東京都 2026年") == ["東京", "京都", "2026*", "年*"]
    assert words_query(["holi*"]) == "('aholi':* | 'bholi':* | 'choli':*)"


def test_short_words_among_many_are_whole_words_but_for_the_last() -> None:
    """Thousands of words begin with each of them; only the last is still being typed."""
    assert query_words("a bc d") == ["a*", "bc*", "d*"]
    assert query_words("a bc def gh i") == ["a", "bc", "def*", "gh", "i*"]
    assert query_words("é ñu 한국 सा a") == ["e", "nu", "한국*", "सा", "a*"]
    # A character can be a word here, and stands anywhere in a run of them.
    assert query_words("猫 犬 a 鳥 東京都") == ["猫*", "犬*", "a", "鳥*", "東京", "京都"]
    assert query_words("a b 東京都の朝") == ["a*", "b*", "東京", "京都", "都の", "の朝"]


def test_what_is_looked_at_has_a_limit() -> None:
    assert len(query_words(" ".join(map(str, range(1000))))) <= MAX_QUERY_WORDS
    assert len(query_words("x" * 10_000)[0]) < 100
    assert len(search_columns(title="x" * 10_000, description="", tags="")["search"]) < 100


@pytest.mark.parametrize("text", ["", " ", "'&|!:*()<>\\", "\0", "🎉", "…"])
def test_text_without_letters_has_no_words(text: str) -> None:
    assert query_words(text) == []


def test_titles_are_sorted_as_people_count() -> None:
    titles = ["Part 10", "part 2", "Ärger", "Zebra", "“Apple”"]
    assert sorted(
        titles, key=lambda it: search_columns(title=it, description="", tags="")["sort_title"]
    ) == ["“Apple”", "Ärger", "part 2", "Part 10", "Zebra"]
