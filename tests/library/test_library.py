"""The library: its pages with and without scripts, what is found, and in which order."""

# ruff: noqa: RUF001 - words of many languages

import html
import random
import re
from datetime import UTC, datetime
from typing import Any

import psycopg
import pytest
from api_client import UNKNOWN_VIDEO_ID, Client
from hostile_texts import ALL
from hypothesis import given
from hypothesis import strategies as st
from library_pages import FAILED, add_video, all_titles, read, say, titles
from page_rows import READY, change_video, make_attempt, make_row
from quart import Quart
from signed_in import configure
from tortoise.transactions import in_transaction

from portal.accounts.permissions import ANYONE, EVERYONES, Principal
from portal.database.connection import execute, fetch_rows
from portal.database.models import Video, Visibility
from portal.database.search import query_words, search_columns, tag_query, words_query
from portal.features.library.pages import PAGE_SIZE
from portal.text import split_tags
from portal.videos import library
from portal.videos.library import HAS_VERSION, related_videos
from portal.videos.library_queries import ORDERS

pytestmark = [pytest.mark.shared_app, pytest.mark.usefixtures("app")]


async def test_new_installation_shows_the_ways_in(client: Client) -> None:
    page = await read(client)
    for way in ("No videos yet", 'href="/upload"', "portal publish", 'href="/api/docs"'):
        assert way in page.text
    assert 'role="search"' not in page.text


async def test_cards_show_poster_duration_and_state(client: Client) -> None:
    ready = await add_video("Ready one", 1, **READY, has_storyboard=True)
    await add_video("Failed one", 2, **FAILED)
    page = await read(client)
    assert f"/videos/{ready.id}/poster.jpg" in page.text
    assert f'data-storyboard="/videos/{ready.id}/storyboard.vtt"' in page.text
    assert page.text.count("data-storyboard") == 1
    assert "1:02:05" in page.text
    assert "badge--failed" in page.text
    assert "It is damaged." in page.text


async def test_views_are_shown_and_ordered_unless_they_are_switched_off(
    client: Client, app: Quart
) -> None:
    for number, (title, views) in enumerate((("Rare", 1), ("Frequent", 1234), ("New", 0))):
        await add_video(title, number, **READY, views=views)
    page = await read(client, sort="-views")
    assert page.titles == ["Frequent", "Rare", "New"]
    assert re.findall(r"card__views\">(.+?)<", page.text) == ["1.2K views", "1 view"]
    for setting in ("show_views", "statistics"):
        configure(app, **{setting: False})
        page = await read(client, sort="-views")
        assert page.titles == ["New", "Frequent", "Rare"]
        assert "card__views" not in page.text
        assert "Most watched" not in page.text


async def test_count_is_told_and_ends_somewhere(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    await add_video("Holiday", 1)
    assert "1 video<" in (await read(client)).text
    await add_video("Holiday", 2)
    assert "<strong>2 videos</strong> for “holiday”" in (await read(client, q="holiday")).text
    monkeypatch.setattr(library, "COUNT_CAP", 1)
    monkeypatch.setattr("portal.features.library.pages.COUNT_CAP", 1)
    assert "1+ videos" in (await read(client)).text


async def test_form_and_addresses_of_pages_keep_the_query_and_nothing_needless(
    client: Client,
) -> None:
    for number in range(PAGE_SIZE + 1):
        await add_video(f"Holiday {number}", number, tags="a&b", category_ids=[12], **READY)
    # Browsers send empty fields, too.
    page = await read(client, q="holi", tag="a&b", status="ready", category="", sort="relevance")
    form = page.text[page.text.index("<form") : page.text.index("</form>")]
    assert re.search(r'method="get"\s+action="/"', form)
    assert 'value="holi"' in form
    assert re.search(r'<option value="ready"\s+selected', form)
    assert re.search(r'name="tag"\s+value="a&amp;b"', form)
    assert 'type="submit"' in form
    assert page.next is not None
    query = page.next.split("?")[1].split("&after=")[0]
    assert query == "q=holi&status=ready&tag=a%26b"
    last = await read(client, page.next)
    assert last.titles == ["Holiday 0"]
    assert last.first == f"/?{query}"
    assert last.next is None


@pytest.mark.parametrize(
    ("query", "many"),
    [({"sort": "title"}, False), ({"sort": "longest"}, True), ({"q": "film"}, True)],
)
async def test_pages_have_no_gaps_or_doubles_while_videos_are_added(
    client: Client, monkeypatch: pytest.MonkeyPatch, query: dict[str, str], many: bool
) -> None:
    if many:
        monkeypatch.setattr(library, "COUNT_CAP", 10)
        monkeypatch.setattr(library, "WALK_STEPS", 15)
    await _add_equals(PAGE_SIZE * 2 + 7)
    expected = await all_titles(client, **query)
    assert len(set(expected)) == len(expected) == PAGE_SIZE * 2 + 7

    page = await read(client, "/", **query)
    pages = [page.titles]
    while page.next:
        await add_video(f"New {len(pages)}", 1000 + len(pages), description="film")
        page = await read(client, page.next)
        pages.append([title for title in page.titles if not title.startswith("New")])
    assert [title for titles in pages for title in titles] == expected

    back: list[str] = []
    while page.previous:
        page = await read(client, page.previous)
        back = [*(title for title in page.titles if not title.startswith("New")), *back]
    # The first page is a full one, and so may tell again what is on the page after it.
    assert list(dict.fromkeys(back)) == expected[: -len(pages[-1])]
    assert page.first is None


async def _add_equals(count: int) -> None:
    """Videos of which many are equal in what they are sorted by."""
    for number in range(count):
        where = ("title", "tags", "description")[number % 3]
        text = {"title": f"Clip {number}", where: f"Clip {number} film"}
        duration = {"duration_s": float(number % 4)} if number % 5 else {}
        await add_video(number=number // 3, **{**text, **duration})


@pytest.mark.parametrize(("path", "part"), [("/", "card"), ("/videos", "row")])
async def test_poll_brings_what_changed_and_ends_when_all_are_final(
    client: Client, path: str, part: str
) -> None:
    first = await add_video("First", 2)
    second = await add_video("Second", 1)
    await add_video("Done", 0, **READY)
    await make_attempt(first, percent=41.7)
    text = html.unescape((await read(client, path)).text)
    assert "Processing · 41%</span>" in text
    poll = "/videos/progress" if path == "/videos" else "/library/progress"
    address = f"{poll}?id={first.id}&id={second.id}"
    assert f'hx-get="{address}"' in text
    await change_video(first.id, **READY)
    text = (await read(client, address)).text
    assert f'hx-target="#{part}-{first.id}"' in text
    assert f"/videos/{first.id}/poster.jpg" in text
    assert "“First” is ready." in text
    assert f'hx-get="{poll}?id={second.id}"' in text
    await change_video(second.id, **FAILED)
    text = (await read(client, f"{poll}?id={second.id}")).text
    assert "“Second” could not be processed." in text
    assert "hx-get" not in text
    for query in ("", "?id=", f"?id={UNKNOWN_VIDEO_ID}", "?id=%00", "?" + "id=x&" * 500):
        text = (await read(client, f"{poll}{query}")).text
        assert 'id="library-poll"' in text
        assert "hx-get" not in text


async def test_every_order_is_walked_along_an_index() -> None:
    for key in {order.key for order in ORDERS.values()}:
        # Without an index for the order the plan would have to sort.
        async with in_transaction():
            await execute("SET LOCAL enable_seqscan = off")
            await execute("SET LOCAL enable_sort = off")
            plan = await fetch_rows(
                f"EXPLAIN SELECT id FROM videos WHERE {HAS_VERSION} ORDER BY {key}, id LIMIT 1"
            )
        lines = [row["QUERY PLAN"] for row in plan]
        assert [line for line in lines if "Sort" in line] == [], lines


async def _similar(number: int, tags: str, *category_ids: int, **values: Any) -> Video:
    """A ready video with a title of its number."""
    columns = {"tags": tags, "category_ids": list(category_ids)}
    return await make_row(number, **{**READY, **columns, **values})


async def test_most_in_common_of_what_can_be_played_and_is_listed_comes_next() -> None:
    async def related(limit: int = 8, seen_by: Principal = ANYONE) -> list[str]:
        videos = await related_videos(video, seen_by=seen_by, limit=limit)
        return [similar.title for similar in videos]

    video = await _similar(1, "sea, Sun, boats, wind", 1, 2)
    await _similar(2, "", 1)
    await _similar(3, "", 1, 2)
    await _similar(4, "SUN", 3)
    await _similar(5, "it's | odd & more, sea, wind", 3)
    await _similar(6, "sun, boats", 1)
    await _similar(7, "seaside", 3)
    await _similar(8, "", 1)
    order = ["Video 6", "Video 5", "Video 4", "Video 3", "Video 8", "Video 2"]
    await make_row(9, tags=video.tags, category_ids=[1, 2])
    await _similar(10, video.tags, 1, 2, visibility=Visibility.PRIVATE)
    await _similar(11, video.tags, 1, 2, visibility=Visibility.UNLISTED)
    await _similar(12, video.tags, 1, 2, deleted_at=datetime.now(UTC))
    assert await related() == order
    # Hidden videos don't count for the limit.
    assert await related(limit=2) == order[:2]
    assert await related(seen_by=EVERYONES) == ["Video 11", "Video 10", *order]


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
    *((typed, set()) for typed in ("liday", "京東", "holiday zebra", "'&|")),
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


async def test_tag_is_a_whole_one_but_for_case_and_accents(client: Client) -> None:
    await add_video("Beach 1", 1, **READY, category_ids=[1, 12], tags="Deep  Sea, café, c:\\d")
    await add_video("Beach 2", 2, **FAILED, category_ids=[12], tags="deep sea, rock'n'roll")
    await add_video("Beach 3", 3, category_ids=[3], tags="deep sea diving")
    assert await titles(client, q="beach", tag="deep sea", category="12", status="failed") == [
        "Beach 2"
    ]
    for tag, count in (("DEEP SEA", 2), ("Cafe", 1), ("rock'n'roll", 1), ("c:\\d", 1), ("deep", 0)):
        assert len(await titles(client, tag=tag)) == count, tag
    assert "Remove tag filter" in (await read(client, tag="deep sea", q="beach")).text


HOSTILE = ["'&|!:*()<>", "\0", "京" * 10_000, "' OR 1=1 --", "<script>alert(1)</script>"]


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
    for number in range(60):
        text = {
            "title": f"{' '.join(chance.sample(words, 2))} {number}",
            "tags": ", ".join(chance.sample(words, chance.randint(0, 2))),
            "description": " ".join(chance.sample(words, chance.randint(0, 4))),
        }
        category = chance.choice([1, 2])
        video = await add_video(number=number, category_ids=[category], **text)
        spoken = chance.sample(words, chance.randint(0, 4))
        await say(video, *spoken)
        videos.append((number, category, {**text, "said": " ".join(spoken)}))
    for query in ("sea", "sun beac", "moon", "film season sun", "s", "zzz"):
        for category in ("", "2"):
            expected = _expected(videos, query, category, most_written=5 if many else 60)
            assert await all_titles(client, q=query, category=category) == expected
            newest = sorted(expected, key=lambda title: -int(title.split()[-1]))
            assert await all_titles(client, q=query, category=category, sort="newest") == newest


def _expected(
    videos: list[tuple[int, int, dict[str, str]]], query: str, category: str, *, most_written: int
) -> list[str]:
    """Return the expected titles. Spoken words are not searched if many texts match."""
    matches = []
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
        spoken = text["said"].split()
        if all(any(word.startswith(typed) for word in spoken) for typed in query.split()):
            tier = tier or 4
        if tier and category in ("", str(video_category)):
            matches.append((tier, -number, text["title"]))
    if sum(tier < 4 for tier, *_ in matches) > most_written:
        matches = [match for match in matches if match[0] < 4]
    return [title for _, _, title in sorted(matches)]


async def test_edited_video_is_found_by_its_new_words_alone(client: Client) -> None:
    await add_video("Before", tags="old")
    video = await Video.all().get()
    change = {"title": "After", "tags": "new"}
    assert (await client.patch(f"/api/videos/{video.id}", json=change)).status_code == 200
    assert await titles(client, q="before") == []
    assert await titles(client, tag="old") == []
    assert await titles(client, q="afte", tag="new") == ["After"]


texts = st.text(max_size=300) | st.sampled_from(ALL)
storable = texts.filter(lambda text: "\0" not in text)


def test_the_database_takes_every_document_and_every_question(services: dict[str, str]) -> None:
    """The database parses documents and queries, and so knows best which are valid."""
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
