"""The library's search against the real database: what is found, and in which order."""

# ruff: noqa: RUF001 - words of many languages

import random

import psycopg
import pytest
from api_client import Client
from hostile_texts import ALL
from hypothesis import given
from hypothesis import strategies as st
from library_pages import FAILED, add_video, all_titles, read, titles
from page_rows import READY

from portal.database.models import Video
from portal.database.search import query_words, search_columns, tag_query, words_query
from portal.text import split_tags
from portal.videos import library

pytestmark = pytest.mark.shared_app


FOUND = [
    ("COAST hol", {"Holiday on the coast"}),
    ("grosse strasse", {"Große Straße"}),
    ("ete eleves", {"Les élèves à l’été"}),
    ("京都", {"東京の朝と京都の夜"}),
    ("สำหรับ", {"ภาษาไทยสำหรับทุกคน"}),
    ("猫", {"猫", "黒い猫と白い犬が走る夏"}),
    ("猫 白 犬 夏", {"黒い猫と白い犬が走る夏"}),
    ("한국", {"한국어 비디오"}),
    ("c 2026", {"C++ in 2026"}),
    ("a day in m", {"A day in my garden"}),
    *((typed, set()) for typed in ("oliday", "京東", "holiday zebra", "'&|")),
]


async def test_words_of_any_language_are_found(client: Client) -> None:
    await add_video("Something else entirely, 東 京", tags="other", description="etwas anderes")
    for title in sorted(set().union(*(expected for _, expected in FOUND))):
        await add_video(title)
    for typed, expected in FOUND:
        assert set(await titles(client, q=typed)) == expected, typed
    nothing = await read(client, q="qqq")
    assert "No videos found" in nothing.text
    assert 'href="/"' in nothing.text


async def test_filters_narrow_together(client: Client) -> None:
    await add_video("Beach 1", 1, **READY, category_ids=[1, 12], tags="Deep  Sea, café, c:\\d")
    await add_video("Beach 2", 2, **FAILED, category_ids=[12], tags="deep sea, rock'n'roll")
    await add_video("Beach 3", 3, category_ids=[3], tags="deep sea diving")
    assert await titles(client, category="12") == ["Beach 2", "Beach 1"]
    assert await titles(client, category="12", status="ready") == ["Beach 1"]
    assert await titles(client, status="processing") == ["Beach 3"]
    assert await titles(client, q="beach", tag="deep sea", status="failed") == ["Beach 2"]
    assert await titles(client, q="beach", category="3", status="failed") == []
    # A tag is a whole one, but for case and accents.
    for tag, found in (("DEEP SEA", 2), ("Cafe", 1), ("rock'n'roll", 1), ("c:\\d", 1), ("deep", 0)):
        assert len(await titles(client, tag=tag)) == found, tag
    assert "Remove the filter by tag" in (await read(client, tag="deep sea", q="beach")).text


async def test_orders(client: Client) -> None:
    await add_video("part 10", 3, **{**READY, "duration_s": 5.0})
    await add_video("Part 2", 1, **{**READY, "duration_s": 90.0})
    await add_video("Ähre", 2)
    for sort, expected in {
        "newest": ["part 10", "Ähre", "Part 2"],
        "oldest": ["Part 2", "Ähre", "part 10"],
        "title": ["Ähre", "Part 2", "part 10"],
        "longest": ["Part 2", "part 10", "Ähre"],
    }.items():
        assert await titles(client, sort=sort) == expected


HOSTILE = [
    *("'&|!:*()<>", "\0", "x" * 10_000, "a'b\\c:*d", "%", "' OR 1=1 --", "京" * 10_000),
    *("🎉", "\ud7ff", "\u202e", "<script>alert(1)</script>"),
]


async def test_hostile_addresses_are_pages_like_others(client: Client) -> None:
    await add_video("Holiday")
    for typed in HOSTILE:
        for name in ("q", "tag", "category", "status", "sort", "after", "before"):
            page = await read(client, **{name: typed})
            assert "<script>alert" not in page.text
            if name not in ("q", "tag"):
                assert page.titles == ["Holiday"]


@pytest.mark.parametrize("many", [False, True], ids=["few", "many"])
async def test_search_agrees_with_a_plain_reading_of_every_video(
    client: Client, monkeypatch: pytest.MonkeyPatch, many: bool
) -> None:
    """Both ways of fetching: all matches sorted, and a walk along the order that gives up."""
    if many:
        monkeypatch.setattr(library, "COUNT_CAP", 5)
        monkeypatch.setattr(library, "WALK_STEPS", 30)
    chance = random.Random(1)  # noqa: S311
    words = ["sea", "seal", "season", "beach", "beacon", "sun", "sunny", "moon", "film"]
    videos = []
    for number in range(90):
        text = {
            "title": f"{' '.join(chance.sample(words, 2))} {number}",
            "tags": ", ".join(chance.sample(words, chance.randint(0, 2))),
            "description": " ".join(chance.sample(words, chance.randint(0, 4))),
        }
        category = chance.choice([1, 2])
        await add_video(number=number, category_ids=[category], **text)
        videos.append((number, category, text))
    for query in ("sea", "sun beac", "moon", "film season sun", "s", "zzz"):
        for category in ("", "2"):
            expected = _expected(videos, query, category)
            assert await all_titles(client, q=query, category=category) == expected
            newest = sorted(expected, key=lambda title: -int(title.split()[-1]))
            assert await all_titles(client, q=query, category=category, sort="newest") == newest


def _expected(
    videos: list[tuple[int, int, dict[str, str]]], query: str, category: str
) -> list[str]:
    found = []
    for number, video_category, text in videos:
        fields = [text["title"], text["tags"].replace(",", " "), text["description"]]
        tier = next(
            (
                end
                for end in (1, 2, 3)
                if all(
                    any(word.startswith(typed) for word in " ".join(fields[:end]).split())
                    for typed in query.split()
                )
            ),
            None,
        )
        if tier and category in ("", str(video_category)):
            found.append((tier, -number, text["title"]))
    return [title for _, _, title in sorted(found)]


async def test_edited_video_is_found_by_its_new_words_alone(client: Client) -> None:
    await add_video("Before", tags="old")
    for fields in (None, ["tags", "title"]):
        video = await Video.all().get()
        video.title, video.tags = "After", "new"
        await video.save(update_fields=fields)
        assert await titles(client, q="before") == []
        assert await titles(client, tag="old") == []
        assert await titles(client, q="afte", tag="new") == ["After"]
        await Video.all().update(title="Before", tags="old")


texts = st.text(max_size=300) | st.sampled_from(ALL)
storable = texts.filter(lambda text: "\0" not in text)


def test_the_database_takes_every_document_and_every_question(services: dict[str, str]) -> None:
    """It parses both, and knows what can be wrong with them better than anything here."""
    with psycopg.connect(services["DATABASE_URL"], autocommit=True) as connection:

        @given(st.tuples(storable, storable, storable))
        def is_taken(three: tuple[str, str, str]) -> None:
            title, description, tags = three
            document = search_columns(title=title, description=description, tags=tags)["search"]
            questions = [tag_query(tag) for tag in split_tags(tags)]
            # A video is found by the first word of its title.
            questions += [words_query([word]) for word in query_words(title)[:1]]
            for question in questions:
                row = connection.execute(
                    "SELECT %s::tsvector @@ %s::tsquery", [document, question]
                ).fetchone()
                assert row == (True,), question
            words = words_query(query_words(title))
            connection.execute("SELECT %s::tsvector @@ %s::tsquery", [document, words])

        is_taken()
