"""Password of a series: it opens the series, and those of its videos that have one themselves."""

from typing import Any
from uuid import uuid4

import pytest
from api_client import answered, problem
from page_rows import change_video
from page_texts import page, send, words_of
from playable_videos import Cast, ids_named, ready_video
from quart import Response
from series_calls import ids_of, make_series, patch, put_audience, put_videos
from signed_in import OWN_PAGE, Sender, quick_hash, send_fields, text_of

from portal.database.connection import fetch_rows
from portal.database.models import Video

pytestmark = pytest.mark.shared_app
WORD = "open sesame"
KINDS = ("with a password", "private", "public", "unlisted", "with a page")


async def make_videos(cast: Cast) -> dict[str, Video]:
    """Create a video of each kind."""
    videos = {}
    for kind in KINDS:
        video = await cast.make_ready(kind)
        await change_video(video.id, title=f"Heron {kind}")
        videos[kind] = video
    return videos


async def lock(cast: Cast, series_id: str, word: str = WORD) -> None:
    editor = cast.senders["its editor"][0]
    access = await answered(await put_audience(editor, series_id, password=word))
    assert access["hasPassword"] is bool(word)
    assert "password" not in access


async def unlock(sender: Sender, series_id: str, word: str = WORD) -> Response:
    path = f"/series/{series_id}"
    return await send_fields(sender, f"{path}/unlock", password=word, next=path)


async def knowing(sender: Sender, series_id: str) -> Sender:
    """Return a browser in which the password of a series was entered."""
    [cookie] = (await unlock(sender, series_id)).headers.getlist("Set-Cookie")
    return Sender(sender.app, {**OWN_PAGE, "Cookie": cookie.partition(";")[0]})


async def status_of(sender: Sender, path: str) -> int:
    return (await sender.get(path)).status_code


async def test_password_opens_the_series_and_its_videos_with_a_password(cast: Cast) -> None:
    """Each cell of the table series x video: nothing else is widened."""
    videos = await make_videos(cast)
    other = await cast.make_ready("with a password")
    series_id = await make_series(cast.senders["its editor"][0], *videos.values())
    await lock(cast, series_id)
    visitor = cast.senders["nobody"][0]
    viewer = await knowing(visitor, series_id)
    path = f"/series/{series_id}"
    locked = await visitor.get(path)
    assert locked.status_code == 403
    assert "Enter the password of this series" in words_of(await text_of(locked))
    assert "Birds" not in await text_of(locked)
    for address in (f"/api{path}", f"/api/videos?series={series_id}"):
        await problem(await visitor.get(address), 403, "series_password_required")
    opened = await page(viewer, path)
    for kind, is_open in (
        ("with a password", True),
        ("private", False),
        ("public", True),
        ("unlisted", True),
        ("with a page", False),
    ):
        video = videos[kind]
        assert (f"Heron {kind}" in opened) is (is_open or kind == "with a page"), kind
        for address in (
            f"/api/videos/{video.id}",
            f"/hls/{video.id}/master.m3u8",
            f"/hls/{video.id}/1/low/00000.m4s",
        ):
            assert (await status_of(viewer, address) < 400) is is_open, (kind, address)
    record = await answered(await viewer.get(f"/api{path}"))
    expected = ids_of(videos[kind] for kind in ("with a password", "public", "unlisted"))
    assert record["videoIds"] == expected
    listed = await answered(await viewer.get(f"/api/videos?series={series_id}"))
    assert [video["id"] for video in listed["videos"]] == expected
    # The player and the frame, without a place in lists of the library or for other videos.
    address = f"/videos/{videos['with a password'].id}"
    assert "<media-controller" in await page(viewer, f"{address}?series={series_id}")
    assert "<media-controller" in await page(viewer, address.replace("/videos/", "/embed/"))
    assert "Heron with a password" not in await page(viewer, "/")
    assert await status_of(viewer, f"/videos/{other.id}") == 403
    assert await status_of(visitor, address) == 403


async def test_opening_ends_with_the_password_and_with_the_place_in_the_series(cast: Cast) -> None:
    editor = cast.senders["its editor"][0]
    videos = [await cast.make_ready("with a password") for _ in range(2)]
    series_id = await make_series(editor, *videos)
    await lock(cast, series_id)
    viewer = await knowing(cast.senders["nobody"][0], series_id)
    first, second = (f"/videos/{video.id}" for video in videos)
    # Addresses for other players would outlast the place in the series, so they have no permission.
    member = cast.senders["viewer"][0]
    cookies = f"{member.headers['Cookie']}; {viewer.headers['Cookie']}"
    for browser in (viewer, Sender(member.app, {**member.headers, "Cookie": cookies})):
        assert "/p/" not in (await answered(await browser.get(f"/api{first}")))["playbackUrl"]
    await answered(await put_videos(editor, series_id, ids_of(videos[1:])))
    assert await status_of(viewer, first) == 403
    assert await status_of(viewer, second) == 200
    await lock(cast, series_id, "another word")
    for path in (second, f"/series/{series_id}"):
        assert await status_of(viewer, path) == 403


async def test_series_opens_only_videos_that_were_added_by_their_editors(cast: Cast) -> None:
    eve = (await ids_named("eve@example.org"))[0]
    share = {"name": "eve@example.org", "right": "edit"}
    for owner, adder, editor_ids, status in (
        ("another editor", "another editor", [], 403),
        ("another editor", "another editor", [eve], 200),
        # The owner of the series makes no difference.
        ("admin", "another editor", [], 403),
        ("admin", "admin", [], 200),
    ):
        video = await cast.make_ready("with a password")
        await change_video(video.id, admitted_ids=[eve], editor_ids=editor_ids)
        series_id = await make_series(cast.senders[owner][0], visibility="private")
        shares = [share] if owner != adder else []
        audience = {"password": WORD, "shares": shares}
        await answered(await put_audience(cast.senders[owner][0], series_id, **audience))
        await answered(await put_videos(cast.senders[adder][0], series_id, [str(video.id)]))
        # Another order by somebody else changes nothing.
        await answered(await put_videos(cast.senders["admin"][0], series_id, [str(video.id)]))
        viewer = await knowing(cast.senders["nobody"][0], series_id)
        answer = await status_of(viewer, f"/videos/{video.id}")
        assert answer == status, (owner, adder, editor_ids)


async def test_password_is_hashed_stays_with_other_changes_and_leaves_with_the_privacy(
    cast: Cast,
) -> None:
    editor = cast.senders["its editor"][0]
    series_id = await make_series(editor)
    await lock(cast, series_id)
    viewer = await knowing(cast.senders["nobody"][0], series_id)
    path = f"/series/{series_id}"
    for change in (
        lambda: patch(editor, series_id, title="Waders"),
        lambda: put_audience(editor, series_id, signedInOnly=True),
    ):
        await answered(await change())
        assert await status_of(viewer, path) == 200
    [row] = await fetch_rows("SELECT password_hash FROM series")
    assert row["password_hash"].startswith("$argon2id$")
    wrong = {"visibility": "public", "password": WORD}
    await problem(await put_audience(editor, series_id, **wrong), 422, "validation_failed")
    await answered(await patch(editor, series_id, visibility="unlisted"))
    rows = await fetch_rows("SELECT FROM series WHERE (password_hash, unlock_id) IS NOT NULL")
    assert rows == []
    # Without a password there is nothing to enter.
    assert (await unlock(viewer, series_id)).location == path
    assert "Set-Cookie" not in (await unlock(viewer, str(uuid4()))).headers


async def test_form_sets_and_removes_the_password(cast: Cast) -> None:
    editor = cast.senders["its editor"][0]
    series_id = await make_series(editor, visibility="private")
    path = f"/series/{series_id}"

    async def save(**fields: Any) -> Response:
        [version] = await fields_of(editor, path, "version")
        details = {"version": version, "title": "Birds", "visibility": "private"}
        return await send_fields(editor, f"{path}/edit", **details, **fields)

    assert (await save(password=WORD)).status_code == 303
    assert "There is a password" in words_of(await page(editor, f"{path}/edit"))
    visitor = cast.senders["nobody"][0]
    guess = {"password": "guess", "next": path}
    assert "This password is wrong" in words_of(await send(visitor, f"{path}/unlock", guess, 403))
    assert await status_of(await knowing(visitor, series_id), path) == 200
    assert (await save(removePassword="on")).status_code == 303
    assert await status_of(visitor, path) == 404


async def fields_of(sender: Sender, path: str, name: str) -> list[str]:
    """Return the values of the hidden fields with a name in the form of a series."""
    text = await page(sender, f"{path}/edit")
    return [part.partition('"')[0] for part in text.split(f'name="{name}" value="')[1:]]


async def test_locked_page_is_listed_and_never_plays_next(cast: Cast) -> None:
    editor = cast.senders["its editor"][0]
    first = await ready_video(cast.editor, title="One")
    alone = await cast.make_ready("with a page", password_hash=quick_hash(WORD))
    await change_video(alone.id, title="Two")
    last = await ready_video(cast.editor, title="Three")
    series_id = await make_series(editor, first, alone, last)
    visitor = cast.senders["nobody"][0]
    text = await page(visitor, f"/series/{series_id}")
    assert "3 videos" in text
    assert f'href="/videos/{alone.id}?series={series_id}"' in text
    assert "3 videos" in await page(visitor, "/series")
    watch = await page(visitor, f"/videos/{first.id}?series={series_id}")
    assert "1 of 3" in words_of(watch)
    assert f'data-next href="/videos/{last.id}?series={series_id}"' in watch
    for_editor = await page(editor, f"/videos/{first.id}?series={series_id}")
    assert f'data-next href="/videos/{alone.id}?series={series_id}"' in for_editor
