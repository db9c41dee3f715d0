"""Statistics of a video: the values of charts, and the page."""

from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from api_client import Client
from page_rows import READY, make_row
from page_texts import page, words_of
from quart import Quart
from signed_in import configure
from statistics_rows import ADD_DAYS

from portal.database.connection import execute
from portal.database.models import Caption
from portal.features.statistics.charts import axis_steps, draw_charts
from portal.features.statistics.pages import (
    VIEWS,
    change_words,
    part_tables,
    passages,
    percent,
    retention_chart,
    site_rows,
    watch_time,
)
from portal.features.statistics.periods import Period, days_of_period
from portal.features.statistics.reading import DayFigures, PartFigures, Statistics, read_statistics
from portal.transcoding.packaging.webvtt import Cue, webvtt

pytestmark = pytest.mark.shared_app

START = date(2026, 1, 1)


def figures(**values: Any) -> Statistics:
    """Return figures without views, except for these values."""
    empty = dict.fromkeys(("days", "devices", "places", "sites", "heights"), ())
    return Statistics(**{**empty, **values})


def days(count: int, *, views: int = 1) -> list[DayFigures]:
    return [day(age, views=views) for age in range(count)]


def day(age: int, *, views: int) -> DayFigures:
    date = START + timedelta(days=age)
    return DayFigures(date=date, views=views, viewers=views, watch_ms=60_000 * views)


def part(name: str, views: int, watch_s: int) -> PartFigures:
    return PartFigures(name=name, views=views, viewers=views, watch_ms=1000 * watch_s)


@pytest.mark.parametrize(
    ("highest", "steps"),
    [
        (0, [0, 1]),
        (1, [0, 1]),
        (4, [0, 1, 2, 3, 4]),
        (5, [0, 2, 4, 6]),
        (19, [0, 5, 10, 15, 20]),
        (81, [0, 50, 100]),
        (1_234, [0, 500, 1000, 1500]),
    ],
)
def test_steps_of_an_axis_are_round_and_reach_the_highest_value(
    highest: int, steps: list[int]
) -> None:
    assert axis_steps(highest) == steps


@pytest.mark.parametrize(
    ("count", "unit", "bars", "first"),
    [
        (7, "day", 7, "1 Jan 2026"),
        (92, "day", 92, "1 Jan 2026"),
        (365, "week", 53, "1 Jan to 4 Jan 2026"),
        (3_000, "month", 99, "1 Jan to 31 Jan 2026"),
    ],
)
def test_bars_are_days_weeks_or_months(count: int, unit: str, bars: int, first: str) -> None:
    charts = draw_charts(days(count), VIEWS)
    assert (charts.unit, len(charts.charts[0].bars), charts.rows[0].words) == (unit, bars, first)
    assert sum(row.views for row in charts.rows) == count
    assert len(charts.dates) <= 4


def test_bars_are_as_high_as_their_views() -> None:
    [chart] = draw_charts([day(0, views=3), day(1, views=0)], VIEWS).charts
    assert chart.bars == [
        ("1 Jan 2026: 3 views, 3 min watched", [100]),
        ("2 Jan 2026: 0 views, 0 s watched", [0]),
    ]
    assert [(step.position, step.words) for step in chart.steps][-1] == (0, "3")


def test_retention_is_a_line_of_hundredths() -> None:
    seen = [4] * 50 + [1] * 50
    plays = [4] * 10 + [6] * 5 + [4] * 35 + [1] * 45 + [2] * 5
    chart = retention_chart(figures(viewers=4, seen=seen, plays=plays), duration_s=250.0)
    assert chart.line.startswith("M0,0.0L0.5,0.0 1.5,0.0 ")
    assert chart.line.endswith(" 99.5,75.0 100,75.0")
    assert [moment.start_s for moment in chart.moments[:5]] == [0, 2, 5, 7, 10]
    assert [mark.words for mark in chart.times] == ["0:00", "1:02", "2:05", "3:07", "4:10"]
    assert [(part.start_s, part.end_s, part.replays) for part in chart.replayed] == [
        (237, 250, 2.0),
        (25, 37, 1.5),
    ]


def test_viewers_without_a_site_have_a_row() -> None:
    sites = [part(f"{number}.example", 2, 20) for number in range(12)]
    statistics = figures(
        views=30, viewers=30, watch_ms=300_000, sites=[*sites, part("other", 1, 5)]
    )
    rows = [(part.name, part.views, part.watch_s) for part in site_rows(statistics)]
    assert rows[0] == ("Direct or unknown", 5, 55)
    assert rows[-1] == ("Other sites", 5, 45)
    assert len(rows) == 12


def test_rows_of_sites_are_not_negative_if_sites_are_newer_than_the_sums() -> None:
    site = part("blog.example", 3, 30)
    [row] = site_rows(figures(views=2, viewers=2, watch_ms=20_000, sites=[site]))
    assert row == site
    [row, direct] = site_rows(figures(views=2, viewers=4, watch_ms=20_000, sites=[site]))
    assert row == site
    assert (direct.viewers, direct.views, direct.watch_ms) == (1, 0, 0)


def test_height_of_zero_is_unknown() -> None:
    tables = part_tables(figures(heights=[part("0", 0, 9), part("360", 0, 30), part("1080", 0, 6)]))
    assert [part.name for part in tables["heights"]] == ["1080p", "360p", "Unknown"]


def test_shares_and_times_in_words() -> None:
    assert [percent(share) for share in (0, 0.001, 0.5, 1)] == ["0%", "under 1%", "50%", "100%"]
    times = [watch_time(seconds) for seconds in (0, 59.7, 192, 3_599, 7_270, 4_000_000)]
    assert times == ["0 s", "1 min", "3 min 12 s", "1 h", "2 h 1 min", "1,111 h"]


def test_sentences_are_as_long_as_a_hundredth_of_the_video() -> None:
    texts = ("One", "sentence. It is 5.5?", "Ya. Short.", "Also short.", "not", "ending", "Last")
    captions = webvtt(
        Cue(start_s=10.0 * number, end_s=10.0 * number + 9, text=text)
        for number, text in enumerate(texts)
    )
    retention = (1.0, 1.0, 0.5) + (0.25,) * 97
    parts = passages(captions, retention, duration_s=900.0)
    assert [(passage.start_s, passage.text) for passage in parts] == [
        (0, "One sentence."),
        (14, "It is 5.5? Ya. Short."),
        (30, "Also short."),
        (40, "not ending Last"),
    ]
    assert (parts[0].before, parts[0].after) == (1.0, pytest.approx(0.96, abs=0.01))
    unspaced = webvtt([Cue(start_s=60.0, end_s=68.0, text="東京です。京都です。")])
    [first, last] = passages(unspaced, retention, duration_s=64.0)
    assert (first.text, last.start_s, last.after) == ("東京です。", 64, 0.25)


async def test_page_and_file_have_the_figures_of_a_period(client: Client) -> None:
    video = await make_row(**READY)
    await execute(ADD_DAYS, video.id, 30)
    address = f"/videos/{video.id}/statistics"
    words = words_of(await page(client, address))
    assert "Views 252 10 seconds" in words
    assert "Viewers 280 Pages and players that played any of it" in words
    assert "At most 100 an hour are counted for a video from one network." in words
    assert "Watch time 3 h 7 min 40 s per viewer" in words
    assert "Average share watched 80%" in words
    starts = "half start within 0.8 s, 95% within 0.8 s,"
    assert f"Phones 75% {starts} 12.0 stalls per hour 168 " in words
    assert "Direct or unknown 75% 12.0 stalls per hour 140 " in words
    today = datetime.now(UTC).date()
    first, last = (f"{day.day} {day:%b %Y}" for day in (today - timedelta(days=27), today))
    assert f"blog.example 25% First on {first}, last on {last} {starts} 28 failures 112 " in words
    assert "720p 98% 3 h " in words
    assert "Views 63 " in words_of(await page(client, f"{address}?period=7"))
    whole = words_of(await page(client, f"{address}?period=all"))
    assert "Views 270 10 seconds or 30% of the video played Viewers" in whole
    rows = (await page(client, f"{address}.csv?period=7")).split()
    assert rows[0] == "\ufeffdate,views,watch_seconds,viewers,average_share,stalls,failures"
    assert [row.partition(",")[2] for row in rows[1:]] == ["9,400,10,0.8,1,1"] * 7


async def test_figures_are_compared_with_the_days_before(client: Client) -> None:
    video = await make_row(**READY)
    await execute(ADD_DAYS, video.id, 10)
    words = words_of(await page(client, f"/videos/{video.id}/statistics?period=7"))
    assert "30% of the video played 133% more than in the 7 days before Viewers" in words
    assert "a viewer sees Typical: as in the 7 days before" in words
    assert "Under 2 s is good. Typical: as in the 7 days before" in words
    assert "None is good. 133% more than in the 7 days before" in words
    await execute(ADD_DAYS, None, 10)
    library = words_of(await page(client, "/statistics?period=7"))
    assert "30% of a video played 133% more than in the 7 days before Viewers" in library
    words = [change_words(value, 100, days=7) for value in (50, 91, 100.4, 110, 1300)]
    assert [*words, change_words(3, 0, days=7)] == [
        "50% less than in the 7 days before",
        "Typical: 9% less than in the 7 days before",
        "Typical: as in the 7 days before",
        "Typical: 10% more than in the 7 days before",
        "1,200% more than in the 7 days before",
        "None in the 7 days before",
    ]


async def test_zeros_are_left_out_where_they_say_nothing(client: Client) -> None:
    video = await make_row(**READY)
    for owner_id in (video.id, None):
        await execute(ADD_DAYS, owner_id, 1)
    await execute("UPDATE video_days SET stalls = 0, failures = 0")
    words = words_of(await page(client, f"/videos/{video.id}/statistics"))
    assert "Phones 75% half start within 0.8 s, 95% within 0.8 s 6 " in words
    assert "Stalls per hour None" in words
    charts = await page(client, "/statistics")
    assert 'id="measure-1">Start-up time' in charts
    assert 'id="measure-2"' not in charts


@pytest.mark.usefixtures("app")
async def test_parts_are_limited_and_the_small_ones_added_up() -> None:
    video = await make_row(**READY)
    await execute(ADD_DAYS, video.id, 1)
    await execute(
        """INSERT INTO video_days
        SELECT video_id, day, parts.kind, parts.kind_prefix || number, 0, viewers, 1000 * number,
               0, 0, 0, 0, NULL, NULL, startups
        FROM video_days, generate_series(1, 60) AS number,
             (VALUES ('site', 'example-'), ('height', '')) AS parts (kind, kind_prefix)
        WHERE video_days.kind = 'all'"""
    )
    statistics = await read_statistics(video.id, days_of_period(Period.WEEK))
    assert len(statistics.sites) == len(statistics.heights) == 51
    assert sum(part.watch_ms for part in statistics.heights) == 1000 * sum(range(1, 61)) + 400_000
    assert (statistics.sites[0].name, statistics.sites[0].views) == ("blog.example", 4)
    [other] = [part for part in statistics.sites if part.name == "other"]
    assert (other.viewers, other.startups) == (10 * 11, [])
    assert part_tables(statistics)["heights"][-1].name in ("Unknown", "Other")


async def test_transcript_begins_where_most_viewers_leave(client: Client) -> None:
    video = await make_row(**{**READY, "duration_s": 100.0})
    await execute(ADD_DAYS, video.id, 1)
    cues = [(10, 20, "<b>All</b> stay."), (45, 55, "Some &lt; leave."), (80, 82, "All stay again.")]
    text = webvtt(Cue(start_s=start, end_s=end, text=words) for start, end, words in cues)
    track = {"language": "en", "label": "English", "cue_count": 3, "text": text, "source": "upload"}
    await Caption.create(video_id=video.id, **track)
    words = words_of(await page(client, f"/videos/{video.id}/statistics"))
    assert "leave 0:45 Viewers leave here: 100% → 60% Some < leave. Show whole" in words
    assert "(English) 0:10 All stay. 100% 0:45 Some < leave. 100% 1:20 All stay again. 60%" in words


async def test_page_without_views_says_what_to_do(client: Client) -> None:
    video = await make_row(**READY)
    words = words_of(await page(client, f"/videos/{video.id}/statistics?period=90"))
    assert "No views in the last 90 days Share the video." in words


async def test_statistics_that_are_off_have_no_page(app: Quart, client: Client) -> None:
    video = await make_row(**READY)
    workshop = f"/videos/{video.id}/edit"
    statistics = f"/videos/{video.id}/statistics"
    assert f'href="{statistics}"' in await page(client, workshop)
    configure(app, statistics=False)
    assert f'href="{statistics}"' not in await page(client, workshop)
    await page(client, statistics, 404)
