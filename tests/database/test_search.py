"""Search documents and queries: folding, words and pairs."""

import pytest

from portal.database.search import (
    MAX_POSITION,
    MAX_POSITIONS,
    MAX_QUERY_WORDS,
    fold,
    query_words,
    search_columns,
    spoken_document,
    words_query,
)


@pytest.mark.parametrize(
    ("written", "typed"),
    [
        ("CAFÉ", "Cafe\u0301"),
        ("Straße", "STRASSE"),
        ("Ёлка", "елка"),
        ("Łódź", "lodz"),
        ("İstanbul", "istanbul"),
        ("ｶﾞﾝﾀﾞﾑ", "ガンダム"),
        ("مَرْحَبًا", "مرحبا"),
        ("Donau\u00addampf", "donaudampf"),
    ],
)
def test_case_accents_and_width_make_no_difference(written: str, typed: str) -> None:
    assert fold(written) == fold(typed)
    assert query_words(written) == query_words(typed)


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        ("Holi, 2026!", ["holi*", "2026*"]),
        ("東京都 2026年", ["東京", "京都", "2026*", "年*"]),
        # Vowel signs are no accents.
        ("हिन्दी", ["हिन्दी*"]),
        # Short words of longer queries are whole, except the last, which may be incomplete.
        ("a bc d", ["a*", "bc*", "d*"]),
        ("a bc def gh i", ["a", "bc", "def*", "gh", "i*"]),
        ("é ñu 한국 सा a", ["e", "nu", "한국*", "सा", "a*"]),
        # A character can be a word here, and stands anywhere in a run of them.
        ("猫 犬 a 鳥 東京都", ["猫*", "犬*", "a", "鳥*", "東京", "京都"]),
        ("'&|!:*()<>\\ \0 🎉", []),
    ],
)
def test_typed_words_match_as_beginnings_and_pairs_as_a_whole(typed: str, words: list[str]) -> None:
    assert query_words(typed) == words


def test_query_matches_words_in_every_field() -> None:
    assert words_query(["holi*"]) == "('aholi':* | 'bholi':* | 'choli':*)"


def test_long_queries_and_words_are_cut() -> None:
    assert len(query_words(" ".join(map(str, range(1000))))) <= MAX_QUERY_WORDS
    assert len(query_words("x" * 10_000)[0]) < 100
    assert len(search_columns(title="x" * 10_000, description="", tags="")["search"]) < 100


def test_titles_with_numbers_are_sorted_by_their_value() -> None:
    titles = ["Part 10", "part 2", "Ärger", "Zebra", "“Apple”"]
    assert sorted(
        titles,
        key=lambda title: search_columns(title=title, description="", tags="")["sort_title"],
    ) == ["“Apple”", "Ärger", "part 2", "Part 10", "Zebra"]


def test_document_of_captions_is_cut_at_the_limits_of_postgresql() -> None:
    words = [f"{number:036}" for number in range(40_000)]
    often = [(float(second), "often") for second in range(1000)]
    document = spoken_document([*often, (20_000.0, " ".join(words))])
    lexemes = document.split(" ")
    assert lexemes[0] == f"'often':{','.join(map(str, range(1, MAX_POSITIONS + 1)))}"
    assert lexemes[1] == f"'{words[0]}':{MAX_POSITION}"
    assert 24_000 < len(lexemes) < 25_000
