"""Statistics of the library: its sums, and the videos in the order of their figures."""

from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

import pytest
from api_client import UNKNOWN_VIDEO_ID, Client, answered, faults, problem
from page_rows import READY
from quart import Quart
from signed_in import make_account, make_video, signed_in
from statistics_rows import ADD_DAYS

from portal.database.account_models import Account, Role
from portal.database.connection import execute
from portal.database.models import Video, Visibility
from portal.features.statistics import reading
from portal.features.statistics.reading import Ranking

pytestmark = pytest.mark.shared_app

PATH = "/api/statistics"


async def watched(video: Video, *, period: int = 28, **sums: int) -> None:
    """Store the sums of a video in a period."""
    values = {"views": 1, "viewers": 1, "watch_ms": 9000, "share": 50, **sums}
    await execute(
        "INSERT INTO video_periods (video_id, period, views, viewers, watch_ms, share) "
        "VALUES (%s, %s, %s, %s, %s, %s)",
        video.id,
        period,
        *values.values(),
    )


async def ranked(client: Any, query: str = "") -> list[str]:
    body = await answered(await client.get(f"{PATH}{query}"))
    return [video["id"] for video in body["videos"]]


async def test_figures_are_the_sums_of_the_period(client: Client) -> None:
    video = await make_video(None, **READY, title="Harbour")
    await execute(ADD_DAYS, None, 40)
    await watched(video, period=7, views=3, viewers=4, watch_ms=9400, share=100)
    body = await answered(await client.get(f"{PATH}?period=7d"))
    figures = {name: body[name] for name in ("views", "viewers", "watchSeconds", "averageShare")}
    assert figures == {"views": 63, "viewers": 70, "watchSeconds": 2800, "averageShare": 0.8}
    assert [day["date"] for day in body["days"]] == [
        (datetime.now(UTC).date() - timedelta(days=ago)).isoformat() for ago in range(6, -1, -1)
    ]
    startup_s = body["startupSeconds"]
    assert startup_s["median"] > 0
    assert body["devices"][0] == {
        "name": "phone",
        "views": 42,
        "viewers": 42,
        "watchSeconds": 2100,
        "startupSeconds": startup_s,
        "stallsPerHour": 12,
        "failures": 0,
    }
    assert body["videos"] == [
        {
            "id": str(video.id),
            "title": "Harbour",
            "views": 3,
            "viewers": 4,
            "watchSeconds": 9,
            "averageShare": 0.25,
        }
    ]
    assert body["sites"] == []
    assert not {"retention", "replays"} & body.keys()
    assert (await answered(await client.get(f"{PATH}?period=all")))["views"] == 360
    assert (await answered(await client.get(PATH)))["videos"] == []


async def test_figures_of_any_days_are_the_sums_of_these(client: Client) -> None:
    today = datetime.now(UTC).date()
    first = await make_video(None, **READY, title="Harbour")
    second = await make_video(None, **READY, title="Alps")
    for video, days in ((first, 9), (second, 4), (None, 9)):
        await execute(ADD_DAYS, video and video.id, days)
    days = f"from={today - timedelta(days=5)}&to={today - timedelta(days=2)}"
    body = await answered(await client.get(f"{PATH}?{days}&limit=1"))
    figures = {name: body[name] for name in ("views", "viewers", "watchSeconds", "averageShare")}
    assert figures == {"views": 36, "viewers": 40, "watchSeconds": 1600, "averageShare": 0.8}
    assert [day["views"] for day in body["days"]] == [9] * 4
    assert body["videos"] == [{"id": str(first.id), "title": "Harbour", **figures}]
    # On four days of one video, and on two of the other one.
    [site] = body["sites"]
    assert (site["name"], site["views"], site["watchSeconds"]) == ("blog.example", 24, 600)
    assert (site["viewers"], site["stallsPerHour"], site["failures"]) == (24, 0, 6)
    response = await client.get(f"{PATH}?{days}&after={body['nextCursor']}")
    second_page = await answered(response)
    assert [(video["id"], video["views"]) for video in second_page["videos"]] == [
        (str(second.id), 18)
    ]
    assert second_page["sites"] is None
    until = f"to={today - timedelta(days=4)}&sort=-averageShare"
    assert await ranked(client, f"?{until}") == [str(first.id)]


async def test_days_that_take_too_long_are_refused(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    video = await make_video(None, **READY)
    await execute(ADD_DAYS, video.id, 1)
    slow = reading.OF_DAYS.replace("WHERE ", "WHERE pg_sleep(0.2) IS NOT NULL AND ")
    monkeypatch.setattr(reading, "OF_DAYS", slow)
    monkeypatch.setattr(reading, "LIMIT_TIME", "SET LOCAL statement_timeout = 50")
    response = await client.get(f"{PATH}?from=2026-01-01")
    assert "fewer days" in (await faults(response))["/from"]
    sites = reading.LIBRARY_SITES.replace("WHERE ", "WHERE pg_sleep(0.2) IS NOT NULL AND ")
    monkeypatch.setattr(reading, "LIBRARY_SITES", sites)
    assert (await answered(await client.get(PATH)))["sites"] is None


@pytest.mark.parametrize("ranking", Ranking)
async def test_walk_meets_each_video_once_in_its_order(client: Client, ranking: Ranking) -> None:
    random = Random(ranking)  # noqa: S311  # repeatable
    values = {}
    for _ in range(12):
        video = await make_video(None, **READY)
        viewers = random.randrange(1, 4)
        views, watch_ms, share = (random.randrange(3) * viewers for _ in range(3))
        await watched(video, views=views, viewers=viewers, watch_ms=watch_ms, share=share)
        key = {"-views": views, "-watchSeconds": watch_ms, "-averageShare": share / viewers}
        values[str(video.id)] = key[ranking]
    met = []
    address = f"{PATH}?sort={ranking}&limit=5"
    while address:
        response = await client.get(address)
        met += [video["id"] for video in (await answered(response))["videos"]]
        address = response.headers.get("Link", "").removeprefix("<").partition(">")[0]
    assert met == sorted(values, key=lambda video_id: (values[video_id], video_id), reverse=True)


async def test_videos_are_those_of_the_callers_lists(app: Quart, edith: Account) -> None:
    edna = await signed_in(app, await make_account("edna", Role.EDITOR))
    adam = await signed_in(app, await make_account("adam", Role.ADMIN))
    ids = {}
    for views, visibility in enumerate(Visibility, 1):
        video = await make_video(edith, **READY, visibility=visibility)
        await watched(video, views=views)
        ids[visibility] = str(video.id)
    unwatched = await make_video(edith, **READY)
    await watched(unwatched, views=0, viewers=0, watch_ms=0, share=0)
    deleted = await make_video(edith, **READY, deleted_at=datetime.now(UTC))
    await watched(deleted)
    everything = list(ids.values())[::-1]
    assert await ranked(await signed_in(app, edith)) == await ranked(adam) == everything
    assert await ranked(edna) == [ids[Visibility.PUBLIC]]


@pytest.mark.parametrize(
    ("query", "member"),
    [
        ("period=5d", "/period"),
        ("sort=views", "/sort"),
        ("limit=201", "/limit"),
        ("after=0-x", "/after"),
        (f"after={UNKNOWN_VIDEO_ID}-1.5", "/after"),
        ("from=2026-13-01", "/from"),
        ("to=0", "/to"),
        ("from=9999-12-31", "/from"),
        ("from=0001-01-01", "/from"),
        ("period=7d&to=2026-01-01", "/period"),
    ],
)
async def test_invalid_parameters_are_named(client: Client, query: str, member: str) -> None:
    body = await problem(await client.get(f"{PATH}?{query}"), 422, "validation_failed")
    assert [error["pointer"] for error in body["errors"]] == [member]
