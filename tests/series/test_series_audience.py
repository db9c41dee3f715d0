"""Audience of a series, and of its videos: a series widens that of no video."""

import re
from collections.abc import Mapping
from uuid import UUID

import pytest
from api_client import UNKNOWN_VIDEO_ID, answered
from page_rows import change_video
from playable_videos import AUDIENCES, EDITORS, PEOPLE, Cast, ids_named, told
from quart import Quart
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


async def make_all(cast: Cast) -> tuple[dict[str, str], dict[str, Video]]:
    """Create a video for each audience, and for each a series of all videos."""
    editor = cast.senders["its editor"][0]
    videos = {}
    for audience in AUDIENCES:
        video = await cast.make_ready(audience)
        await change_video(video.id, title=f"Heron {audience}")
        videos[audience] = video
    ids = [video.id for video in videos.values()]
    series = {}
    for audience, (visibility, signed_in_only, name) in AUDIENCES.items():
        made = await make_series(editor, title=f"Wading {audience}")
        await answered(await put_videos(editor, made, map(str, ids)))
        shares = [{"id": str(one), "right": "watch"} for one in await ids_named(name)]
        body = {"visibility": visibility.value, "signedInOnly": signed_in_only, "shares": shares}
        await answered(await put_audience(editor, made, **body))
        series[audience] = made
    return series, videos


def expected(cast: Cast, name: str) -> list[str]:
    """Return the audiences of the videos that a person sees, in the order of the series."""
    return [audience for audience in AUDIENCES if cast.may_see(name, audience)]


async def check_series(cast: Cast, name: str, series_id: str, videos: Mapping[str, Video]) -> None:
    """Check that a series mentions, and counts, exactly the videos that a person may see."""
    sender = cast.senders[name][0]
    seen = expected(cast, name)
    seen_ids = [str(videos[audience].id) for audience in seen]
    assert await videos_of(sender, series_id) == seen_ids, name
    listed = await answered(await sender.get(f"/api/videos?series={series_id}"))
    assert [video["id"] for video in listed["videos"]] == seen_ids, name
    page = await text_of(await sender.get(f"/series/{series_id}"))
    assert re.findall(r"Heron ([a-z ]+[a-z])\s*<", page) == seen, name
    assert f">{len(seen)} video" in page, name
    watch = await text_of(await sender.get(f"/videos/{seen_ids[-1]}?series={series_id}"))
    assert f"{len(seen)} of {len(seen)}" in watch, name
    for audience, video in videos.items():
        if audience not in seen:
            for text in (page, watch):
                assert str(video.id) not in text, (name, audience)
                assert f"Heron {audience}" not in text, (name, audience)


@pytest.mark.parametrize("name", PEOPLE)
async def test_series_shows_each_person_their_videos_alone(cast: Cast, name: str) -> None:
    """Each cell of the table person x audience of the series x audience of the video."""
    series, videos = await make_all(cast)
    sender = cast.senders[name][0]
    count = len(expected(cast, name))
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
        video_id = videos["public"].id
        watch = await text_of(await sender.get(f"/videos/{video_id}?series={series_id}"))
        assert f"Wading {audience}" not in watch
        assert "data-up-next" not in watch
    # Anyone with the address sees an unlisted series; only its editors see it in lists.
    listed = [
        audience
        for audience in series
        if cast.may_see(name, audience) and (audience != "unlisted" or name in EDITORS)
    ]
    answer = await answered(await sender.get("/api/series"))
    assert {one["title"] for one in answer["series"]} == {f"Wading {one}" for one in listed}
    assert {one["videoCount"] for one in answer["series"]} == {count}
    owners = {one["ownerId"] for one in answer["series"]}
    assert owners == ({str(cast.editor.id)} if name in EDITORS else {None})
    page = await text_of(await sender.get("/series"))
    assert set(re.findall(r"Wading ([a-z ]+[a-z])\s*<", page)) == set(listed)
    assert len(re.findall(rf">\s*{count} video", page)) == len(listed)


@pytest.mark.parametrize("audience", AUDIENCES)
async def test_changes_of_a_hidden_series_are_refused_like_those_of_an_unknown_one(
    app: Quart, cast: Cast, audience: str
) -> None:
    series, videos = await make_all(cast)
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
                method, f"/api/series/{one}{path}", json=json, headers={"If-Match": "*"}
            )
            for one in (series[audience], UNKNOWN_VIDEO_ID)
        ]
        assert [answer.status_code for answer in answers] == [status, 404], path
        if status == 404:
            assert await told(answers[0]) == await told(answers[1])
    for path in ("edit", "delete"):
        page = await sender.get(f"/series/{series[audience]}/{path}")
        assert page.status_code == status, path
    video_id = videos["public"].id
    for path in ("edit", "delete", f"videos/{video_id}", f"videos/{video_id}/remove"):
        answer = await sender.post(f"/series/{series[audience]}/{path}", form={"to": "0"})
        assert answer.status_code == status, path
    assert len(await videos_of(cast.senders["its editor"][0], series[audience])) == len(AUDIENCES)


async def test_editor_who_cannot_see_a_video_leaves_it_at_its_place(cast: Cast) -> None:
    editor = cast.senders["its editor"][0]
    other = cast.senders["another editor"][0]
    one, hidden, two = [await cast.make_ready(kind) for kind in ("public", "private", "public")]
    series_id = await make_series(editor, one, hidden, two)
    share = {"name": "eve@example.org", "right": "edit"}
    await answered(await put_audience(editor, series_id, visibility="public", shares=[share]))
    first, last = str(one.id), str(two.id)
    assert await videos_of(other, series_id) == [first, last]
    await answered(await put_videos(other, series_id, [last, first]))
    assert await videos_of(editor, series_id) == [last, str(hidden.id), first]
    await answered(await put_videos(other, series_id, []))
    assert await videos_of(editor, series_id) == [str(hidden.id)]
    # A hidden member is no video to them, as any id that no video has.
    refusals = [
        await told(await put_videos(other, series_id, [one_id]))
        for one_id in (str(hidden.id), UNKNOWN_VIDEO_ID)
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
        seen = {row["id"] for row in rows if principal.may_see(audience_in(row))}
        assert await selected(visible_to(principal)) == seen, name
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
    asked: list[str] = []
    videos = [await cast.make_ready("public") for _ in range(6)]
    ids = [await make_series(editor, *videos) for _ in range(6)]
    nobody = Sender(cast.senders["nobody"][0].app)
    query = PsycopgClient.execute_query

    async def count(self: PsycopgClient, text: str, *args: object, **values: object) -> object:
        if "series" in text:
            asked.append(text)
        return await query(self, text, *args, **values)

    monkeypatch.setattr(PsycopgClient, "execute_query", count)
    for path, most in (
        ("/series", 3),
        ("/api/series", 1),
        (f"/series/{ids[0]}", 2),
        (f"/api/series/{ids[0]}", 2),
        (f"/videos/{videos[0].id}?series={ids[0]}", 2),
    ):
        asked.clear()
        assert (await nobody.get(path)).status_code == 200
        assert 0 < len(asked) <= most, (path, asked)
