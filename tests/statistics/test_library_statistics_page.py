"""Statistics of the library: the charts of quality, the page, and the file of all videos."""

import html
import re
from datetime import date, timedelta
from typing import Any

import pytest
from api_client import Client
from page_rows import READY, make_row
from page_texts import page, words_of
from quart import Quart
from signed_in import configure
from statistics_rows import ADD_DAYS, ADD_PERIOD

from portal.database.connection import execute
from portal.database.models import Video
from portal.features.statistics import library_page as library_statistics
from portal.features.statistics.charts import draw_charts
from portal.features.statistics.figures import STARTUP_BOUNDS_S
from portal.features.statistics.library_page import MEASURES
from portal.features.statistics.reading import DayFigures

pytestmark = pytest.mark.shared_app

START = date(2026, 1, 1)


async def watched(*titles: str, days: int) -> list[Video]:
    """Return videos that were watched on each of the last days, the first one the longest."""
    videos = []
    for number, title in enumerate(titles):
        video = await make_row(number, **READY, title=title)
        await execute(ADD_DAYS, video.id, days - number)
        await execute(ADD_PERIOD, video.id)
        videos.append(video)
    await execute(ADD_DAYS, None, days)
    return videos


def startups(**counts: int) -> list[int]:
    """Return a histogram with some times in the lowest and the highest ranges."""
    ranges = [0] * (len(STARTUP_BOUNDS_S) + 1)
    ranges[0] = counts["short"]
    ranges[-2] = counts["long"]
    return ranges


def day(age: int, **values: Any) -> DayFigures:
    return DayFigures(date=START + timedelta(days=age), **values)


def test_quality_of_days_without_viewers_is_unknown() -> None:
    starts = startups(short=18, long=2)
    days = [day(0, viewers=9, watch_ms=3_600_000, startups=starts, stalls=2, failures=3), day(1)]
    charts = draw_charts(days, *MEASURES)
    first, second = charts.rows
    assert first.startup_s.median is not None
    assert first.startup_s.p95 is not None
    assert first.startup_s.median < 0.1 < 50 < first.startup_s.p95
    assert (first.stalls_per_hour, first.failures) == (2, 3)
    assert (second.startup_s, second.watch_ms, second.failures) == ((None, None), 0, 0)
    _, start, stalls, failures = charts.charts
    assert [len(heights) for _, heights in start.bars] == [2, 2]
    assert [words for words, _ in start.bars] == [
        "1 Jan 2026: half within 0.0 s, 95% within 55.1 s",
        "2 Jan 2026: unknown",
    ]
    assert [heights for _, heights in stalls.bars] == [[100], [0]]
    assert failures.bars[0][0] == "1 Jan 2026: 3"


def test_quality_of_a_week_is_that_of_all_its_viewers() -> None:
    """Each day has a quantile. Their mean would be another one than the week's."""
    days = [day(age, viewers=1, startups=startups(short=1, long=0)) for age in range(100)]
    days[9] = day(9, viewers=90, startups=startups(short=0, long=90))
    charts = draw_charts(days, *MEASURES)
    assert charts.unit == "week"
    assert [(row.startup_s.median or 0) > 50 for row in charts.rows[:3]] == [False, True, False]


async def test_page_has_the_videos_and_the_sums_of_a_period(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(library_statistics, "PAGE_SIZE", 1)
    first, _ = await watched("<i>Harbour</i>", "Alps", days=20)
    text = await page(client, "/statistics")
    words = words_of(text)
    assert "Views 180 10 seconds" in words
    assert "Viewers 200" in words
    assert "<i>Harbour</i> 180 2 h 13 min 80% 200" in words
    assert f'href="/videos/{first.id}/statistics?period=28"' in text
    assert "Alps" not in words
    [address] = re.findall(r'href="([^"#]+)#videos"\s+rel="next"', text)
    assert "Alps 171 " in words_of(await page(client, html.unescape(address)))
    by_share = await page(client, "/statistics?sort=-averageShare&period=28")
    assert by_share.count('aria-sort="descending"') == 1
    assert "No views yet" not in words_of(await page(client, "/statistics?period=all"))


async def test_file_has_all_videos_and_no_formulas(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(library_statistics, "CSV_CHUNK", 1)
    first, second = await watched("=1+1", 'Alps, "by boat"', days=2)
    rows = (await page(client, "/statistics.csv")).splitlines()
    assert rows == [
        "\ufeffid,title,views,viewers,watch_seconds,average_share",
        f"{first.id},'=1+1,18,20,800,0.8",
        f'{second.id},"Alps, ""by boat""",9,10,400,0.8',
    ]


async def test_statistics_of_the_library_can_be_switched_off(app: Quart, client: Client) -> None:
    await make_row(**READY)
    assert "No views in the last 28 days" in words_of(await page(client, "/statistics"))
    assert 'href="/statistics"' in await page(client, "/videos")
    configure(app, statistics=False)
    assert 'href="/statistics"' not in await page(client, "/videos")
    await page(client, "/statistics", 404)
    await page(client, "/statistics.csv", 404)
