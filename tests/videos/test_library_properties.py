"""What holds of searching and paging through the library for whatever they are given."""

import re

import psycopg
import pytest
from hostile_texts import ALL
from hypothesis import given
from hypothesis import strategies as st

from portal.database.search import query_words, search_columns, tag_query, words_query
from portal.text import split_tags
from portal.videos.library_queries import Cursor, LibraryQuery, Sort

texts = st.text(max_size=300) | st.sampled_from(ALL)
storable = texts.filter(lambda text: "\0" not in text)


@given(storable, storable, storable)
def test_a_video_is_found_by_the_words_of_its_title(
    title: str, description: str, tags: str
) -> None:
    columns = search_columns(title=title, description=description, tags=tags)
    document = set(_lexemes(columns["search"]))
    for word in query_words(title)[:1]:
        stem = "a" + word.removesuffix("*")
        assert any(it.startswith(stem) if word.endswith("*") else it == stem for it in document)


def _lexemes(document: str) -> list[str]:
    found = re.findall(r"'((?:[^'\\]|''|\\\\)*)'", document)
    return [it.replace("''", "'").replace("\\\\", "\\") for it in found]


@pytest.fixture(scope="module")
def database_url(services: dict[str, str]) -> str:
    return services["DATABASE_URL"]


def test_the_database_takes_every_document_and_every_question(database_url: str) -> None:
    """It parses both, and knows what can be wrong with them better than anything here."""
    with psycopg.connect(database_url, autocommit=True) as connection:

        @given(st.lists(storable, min_size=3, max_size=3))
        def is_taken(three: list[str]) -> None:
            title, description, tags = three
            columns = search_columns(title=title, description=description, tags=tags)
            for tag in split_tags(tags):
                question = tag_query(tag)
                row = connection.execute(
                    "SELECT %s::tsvector @@ %s::tsquery", [columns["search"], question]
                ).fetchone()
                assert row == (True,), (tag, question)
            words = words_query(query_words(title))
            connection.execute("SELECT %s::tsvector @@ %s::tsquery", [columns["search"], words])

        is_taken()


@given(texts, st.sampled_from(Sort), texts)
def test_any_text_is_a_place_or_none(text: str, sort: Sort, query: str) -> None:
    asked = LibraryQuery(text=query.replace("\0", ""), sort=sort)
    for candidate in (text, f"0-{'0' * 32}-{text}", f"{text}-{'0' * 32}-1"):
        place = Cursor.parse(candidate, asked)
        if place is not None:
            assert Cursor.parse(str(place), asked) == place
