"""Audience of a series, and of its videos: a series widens that of no video."""

import re
from collections.abc import Mapping
from uuid import UUID

import pytest
from api_client import UNKNOWN_VIDEO_ID, answered
from page_rows import change_video
from playable_videos import EDITORS, PENDING, PEOPLE, PLAIN_AUDIENCES, Cast, ids_named, told
from series_calls import make_series, patch, put_audience, put_videos, videos_of
from signed_in import Sender, text_of
from tortoise.backends.psycopg.client import PsycopgClient

from portal.accounts.permissions import Action, Principal, audience_in, editable_by, visible_to
from portal.database.connection import execute, fetch_rows, run_query, sql_with
from portal.database.models import Video, Visibility
from portal.events.records import AUDIENCE_COLUMNS

pytestmark = pytest.mark.shared_app
# Routes by which everyone may ask for a series.
ROUTES = ("/series/{id}", "/api/series/{id}", "/api/videos?series={id}")
LISTS = ("/series", "/api/series")
# Only videos need approval.
SERIES_AUDIENCES = [audience for audience in PLAIN_AUDIENCES if audience != PENDING]


async def make_all(cast: Cast) -> tuple[dict[str, str], dict[str, Video]]:
    """Create a video for each audience, and for each a series of all videos."""
    editor = cast.senders["its editor"][0]
    videos = {}
    for audience in PLAIN_AUDIENCES:
        video = await cast.make_ready(audience)
        await change_video(video.id, title=f"Heron {audience}")
        videos[audience] = video
    ids = [video.id for video in videos.values()]
    series = {}
    for audience in SERIES_AUDIENCES:
        visibility, signed_in_only, name = PLAIN_AUDIENCES[audience]
        series_id = await make_series(editor, title=f"Wading {audience}")
        await answered(await put_videos(editor, series_id, map(str, ids)))
        shares = [{"id": str(holder_id), "right": "watch"} for holder_id in await ids_named(name)]
        body = {"visibility": visibility.value, "signedInOnly": signed_in_only, "shares": shares}
        await answered(await put_audience(editor, series_id, **body))
        series[audience] = series_id
    return series, videos


def expected(cast: Cast, name: str) -> list[str]:
    """Return the audiences of the videos that a person sees, in the order of the series."""
    return [audience for audience in PLAIN_AUDIENCES if cast.may_see(name, audience)]


async def check_series(cast: Cast, name: str, series_id: str, videos: Mapping[str, Video]) -> None:
    """Check that a series mentions, and counts, exactly the videos that a person may see."""
    sender = cast.senders[name][0]
    visible = expected(cast, name)
    seen_ids = [str(videos[audience].id) for audience in visible]
    assert await videos_of(sender, series_id) == seen_ids, name
    listed = await answered(await sender.get(f"/api/videos?series={series_id}"))
    assert [video["id"] for video in listed["videos"]] == seen_ids, name
    page = await text_of(await sender.get(f"/series/{series_id}"))
    assert re.findall(r"Heron ([a-z ]+[a-z])\s*<", page) == visible, name
    assert f">{len(visible)} video" in page, name
    watch = await text_of(await sender.get(f"/videos/{seen_ids[-1]}?series={series_id}"))
    assert f"{len(visible)} of {len(visible)}" in watch, name
    for audience, video in videos.items():
        if audience not in visible:
            for text in (page, watch):
                assert str(video.id) not in text, (name, audience)
                assert f"Heron {audience}" not in text, (name, audience)


async def test_series_shows_each_person_their_videos_alone(cast: Cast) -> None:
    """Each cell of the table person x audience of the series x audience of the video."""
    series, videos = await make_all(cast)
    for name in PEOPLE:
        await check_cells(cast, name, series, videos)
        await check_lists(cast, name, series)


async def check_cells(
    cast: Cast, name: str, series: Mapping[str, str], videos: Mapping[str, Video]
) -> None:
    """Check what a person sees of each series, and that nothing tells them about the others."""
    sender = cast.senders[name][0]
    video_id = videos["public"].id
    for audience, series_id in series.items():
        if cast.may_see(name, audience):
            await check_series(cast, name, series_id, videos)
            continue
        for path in ROUTES:
            answer = await sender.get(path.format(id=series_id))
            unknown = await sender.get(path.format(id=UNKNOWN_VIDEO_ID))
            assert answer.status_code == 404, (name, audience, path)
            assert await told(answer) == await told(unknown), (name, audience, path)
        # The page of a video doesn't tell that it is in the series, nor that there is one.
        watch = await text_of(await sender.get(f"/videos/{video_id}?series={series_id}"))
        assert f"Wading {audience}" not in watch, name
        assert "data-up-next" not in watch, (name, audience)


async def check_lists(cast: Cast, name: str, series: Mapping[str, str]) -> None:
    """Check the lists of series. Only editors of an unlisted series see it there."""
    sender = cast.senders[name][0]
    count = len(expected(cast, name))
    listed = [
        audience
        for audience in series
        if cast.may_see(name, audience) and (audience != "unlisted" or name in EDITORS)
    ]
    records = (await answered(await sender.get("/api/series")))["series"]
    assert {record["title"] for record in records} == {f"Wading {word}" for word in listed}, name
    assert {record["videoCount"] for record in records} == {count}, name
    owners = {record["ownerId"] for record in records}
    assert owners == ({str(cast.editor.id)} if name in EDITORS else {None}), name
    page = await text_of(await sender.get("/series"))
    assert set(re.findall(r"Wading ([a-z ]+[a-z])\s*<", page)) == set(listed), name
    assert len(re.findall(rf">\s*{count} video", page)) == len(listed), name


async def test_changes_of_a_hidden_series_are_refused_like_those_of_an_unknown_one(
    cast: Cast,
) -> None:
    series, videos = await make_all(cast)
    for audience in SERIES_AUDIENCES:
        await check_refusals(cast, audience, series[audience], str(videos["public"].id))


async def check_refusals(cast: Cast, audience: str, series_id: str, video_id: str) -> None:
    """Check the answers to changes of a series by an editor without permission to edit it."""
    sender = cast.senders["another editor"][0]
    status = 403 if cast.may_see("another editor", audience) else 404
    body = {"visibility": "public", "signedInOnly": False}
    for method, path, json in (
        ("PATCH", "", {"title": "Mine"}),
        ("DELETE", "", {}),
        ("PUT", "/videos", {"videoIds": []}),
        ("GET", "/access", {}),
        ("PUT", "/access", body),
    ):
        answers = [
            await sender.ask(
                method, f"/api/series/{asked_id}{path}", json=json, headers={"If-Match": "*"}
            )
            for asked_id in (series_id, UNKNOWN_VIDEO_ID)
        ]
        assert [answer.status_code for answer in answers] == [status, 404], path
        if status == 404:
            assert await told(answers[0]) == await told(answers[1])
    for path in ("edit", "delete"):
        page = await sender.get(f"/series/{series_id}/{path}")
        assert page.status_code == status, path
    for path in ("edit", "delete", f"videos/{video_id}", f"videos/{video_id}/remove"):
        answer = await sender.post(f"/series/{series_id}/{path}", form={"to": "0"})
        assert answer.status_code == status, path
    assert len(await videos_of(cast.senders["its editor"][0], series_id)) == len(PLAIN_AUDIENCES)


async def test_editor_who_cannot_see_a_video_leaves_it_at_its_place(cast: Cast) -> None:
    editor = cast.senders["its editor"][0]
    other = cast.senders["another editor"][0]
    first_video = await cast.make_ready("public")
    hidden = await cast.make_ready("private")
    last_video = await cast.make_ready("public")
    series_id = await make_series(editor, first_video, hidden, last_video)
    share = {"name": "eve@example.org", "right": "edit"}
    await answered(await put_audience(editor, series_id, visibility="public", shares=[share]))
    first = str(first_video.id)
    last = str(last_video.id)
    assert await videos_of(other, series_id) == [first, last]
    await answered(await put_videos(other, series_id, [last, first]))
    assert await videos_of(editor, series_id) == [last, str(hidden.id), first]
    await answered(await put_videos(other, series_id, []))
    assert await videos_of(editor, series_id) == [str(hidden.id)]
    # A hidden member is no video to them, as any id that no video has.
    refusals = [
        await told(await put_videos(other, series_id, [asked_id]))
        for asked_id in (str(hidden.id), UNKNOWN_VIDEO_ID)
    ]
    assert refusals[0] == refusals[1]
    assert refusals[0][0] == 422


async def test_series_counts_videos_by_their_present_audience(cast: Cast) -> None:
    """From the next request on, and not in what caches keep."""
    editor = cast.senders["its editor"][0]
    nobody = cast.senders["nobody"][0]
    video = await cast.make_ready("public")
    series_id = await make_series(editor, video)
    read = await nobody.get(f"/api/series/{series_id}")
    await change_video(video.id, visibility=Visibility.PRIVATE)
    address = f"/api/series/{series_id}"
    again = await nobody.get(address, headers={"If-None-Match": read.headers["ETag"]})
    assert (await answered(again))["videoIds"] == []
    assert "0 videos" in await text_of(await nobody.get("/series"))
    await answered(await patch(editor, series_id, visibility="unlisted"))
    assert (await answered(await nobody.get("/api/series")))["series"] == []
    assert await videos_of(nobody, series_id) == []


async def test_conditions_in_sql_are_the_rules_in_python(cast: Cast) -> None:
    await make_all(cast)
    columns = ", ".join(("id", *AUDIENCE_COLUMNS))
    rows = await fetch_rows(f"SELECT {columns} FROM series")
    await execute("UPDATE series SET editor_ids = admitted_ids WHERE title = 'Wading for a group'")
    rows = await fetch_rows(f"SELECT {columns} FROM series")

    async def selected(condition: object) -> set[UUID]:
        text = sql_with("SELECT id FROM series WHERE {condition}", condition=condition)
        return {row["id"] for row in await run_query(text)}

    for name, (_, principal) in cast.senders.items():
        visible = {row["id"] for row in rows if principal.may_see(audience_in(row))}
        assert await selected(visible_to(principal)) == visible, name
        if principal.may(Action.PUBLISH):
            editable = {
                row["id"] for row in rows if principal.may(Action.EDIT, on=audience_in(row))
            }
            assert await selected(editable_by(principal)) == editable, name
    assert await selected(visible_to(Principal())) != set()


async def test_lists_and_pages_take_few_queries(
    cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many series and videos there are."""
    editor = cast.senders["its editor"][0]
    queries: list[str] = []
    videos = [await cast.make_ready("public") for _ in range(6)]
    ids = [await make_series(editor, *videos) for _ in range(6)]
    nobody = Sender(cast.senders["nobody"][0].app)
    query = PsycopgClient.execute_query

    async def count(self: PsycopgClient, text: str, *args: object, **values: object) -> object:
        if "series" in text:
            queries.append(text)
        return await query(self, text, *args, **values)

    monkeypatch.setattr(PsycopgClient, "execute_query", count)
    for path, most in (
        ("/series", 3),
        ("/api/series", 1),
        (f"/series/{ids[0]}", 2),
        (f"/api/series/{ids[0]}", 2),
        (f"/videos/{videos[0].id}?series={ids[0]}", 2),
    ):
        queries.clear()
        assert (await nobody.get(path)).status_code == 200
        assert 0 < len(queries) <= most, (path, queries)
