"""Pages of series without scripts: the list, a series, its form and order, and what plays next."""

import re
from uuid import UUID

import pytest
from api_client import UNKNOWN_VIDEO_ID, answered
from library_pages import FAILED
from page_rows import READY
from page_texts import page, send, value_of, words_of
from playable_videos import Cast, ready_video
from quart import Quart
from series_calls import ids_of, make_series, patch, put_audience, videos_of
from signed_in import Sender, make_account, make_video, send_fields, signed_in

from portal.database.account_models import Role
from portal.features.series import service

pytestmark = pytest.mark.shared_app


async def form_of(sender: Sender, series_id: str, **changes: object) -> dict[str, object]:
    """Return the fields of the form of a series, with changes."""
    text = await page(sender, f"/series/{series_id}/edit")
    version = re.search(r'name="version" value="(\w+)"', text)
    assert version
    fields = {"version": version[1], "title": value_of(text, "title"), "visibility": "public"}
    return {**fields, **changes}


async def test_series_is_made_edited_and_deleted_by_forms(cast: Cast) -> None:
    editor = cast.senders["its editor"][0]
    fault = words_of(await send(editor, "/series", {"title": " "}))
    assert "Give the series a title." in fault
    response = await send_fields(editor, "/series", title="Birds")
    assert response.status_code == 303
    series_id = response.headers["Location"].split("/")[2]
    assert response.headers["Location"] == f"/series/{series_id}/edit"
    changes = {"title": "Gulls", "description": "See https://example.org\r\nat 1:05"}
    fields = await form_of(editor, series_id, **changes, visibility="private", signedInOnly="on")
    saved = await send_fields(editor, f"/series/{series_id}/edit", **fields)
    assert saved.headers["Location"] == f"/series/{series_id}/edit?saved=1"
    assert "Saved." in await page(editor, saved.headers["Location"])
    text = await page(editor, f"/series/{series_id}")
    assert 'href="https://example.org"' in text
    assert "t=65" not in text
    assert "Private" in words_of(text)
    await page(cast.senders["viewer"][0], f"/series/{series_id}")
    await page(cast.senders["nobody"][0], f"/series/{series_id}", 404)

    # A form that was made from other values is not saved, but shown with what was typed.
    late = await send(editor, f"/series/{series_id}/edit", fields | {"title": "Terns"}, 409)
    assert "Someone else changed this series" in late
    assert value_of(late, "title") == "Terns"
    again = {**fields, "title": "Terns", "version": (await form_of(editor, series_id))["version"]}
    assert (await send_fields(editor, f"/series/{series_id}/edit", **again)).status_code == 303
    wrong = await send(editor, f"/series/{series_id}/edit", {**again, "title": ""})
    assert "Give the series a title." in words_of(wrong)

    assert "Delete this series?" in await page(editor, f"/series/{series_id}/delete")
    deleted = await send_fields(editor, f"/series/{series_id}/delete")
    assert deleted.headers["Location"] == "/series"
    await page(editor, f"/series/{series_id}", 404)


async def test_series_is_shared_by_its_form(cast: Cast) -> None:
    editor = cast.senders["its editor"][0]
    other = cast.senders["another editor"][0]
    series_id = await make_series(editor)
    address = f"/series/{series_id}/edit"
    fields = await form_of(editor, series_id, visibility="private", addedRight="edit")
    unknown = await send(editor, address, {**fields, "added": "nobody@example.org"})
    assert "is nobody here" in words_of(unknown)
    await send(editor, address, {**fields, "added": "eve@example.org, Choir"}, 303)
    await page(cast.senders["choir member"][0], f"/series/{series_id}")
    assert "eve@example.org" in await page(editor, "/directory?added=eve")
    await page(other, address)
    # Who gives up the right to edit is led to the list.
    eve_id = cast.senders["another editor"][1].account_id
    own = {"share": [f"{eve_id}:watch"], "visibility": "public"}
    response = await send_fields(other, address, **await form_of(other, series_id, **own))
    assert response.headers["Location"] == "/series"


async def test_videos_are_moved_and_removed_by_buttons(cast: Cast) -> None:
    editor = cast.senders["its editor"][0]
    videos = [await ready_video(cast.editor) for _ in range(3)]
    first, second, third = ids_of(videos)
    series_id = await make_series(editor, *videos)
    text = await page(editor, f"/series/{series_id}/edit")
    assert re.findall(r'name="(up|down)"\s+value="(\d)"', text) == [
        ("up", "0"),
        ("down", "1"),
        ("up", "0"),
        ("down", "2"),
        ("up", "1"),
        ("down", "2"),
    ]
    address = f"/series/{series_id}/videos"
    for video_id, fields, order in (
        (third, {"up": "1"}, [first, third, second]),
        (first, {"down": "1"}, [third, first, second]),
        (second, {"to": "0"}, [second, third, first]),
        (second, {"to": "99"}, [third, first, second]),
        (second, {"to": "x"}, [third, first, second]),
        (UNKNOWN_VIDEO_ID, {"to": "0"}, [third, first, second]),
    ):
        moved = await send_fields(editor, f"{address}/{video_id}", **fields)
        assert moved.headers["Location"] == f"/series/{series_id}/edit#series-videos"
        assert await videos_of(editor, series_id) == order
    await send(editor, f"{address}/{first}/remove", {}, 303)
    await send(editor, f"{address}/{first}/remove", {}, 303)
    assert await videos_of(editor, series_id) == [third, second]
    # Scripts get the list alone, with a text to announce.
    headers = {"HX-Request": "true"}
    part = await editor.post(f"{address}/{second}", form={"up": "0"}, headers=headers)
    fragment = await part.get_data(as_text=True)
    assert fragment.lstrip().startswith("<section")
    assert "Moved to 1 of 2." in fragment


async def test_workshop_adds_a_video_to_series_and_removes_it(cast: Cast) -> None:
    editor = cast.senders["its editor"][0]
    video = await ready_video(cast.editor)
    workshop = f"/videos/{video.id}/edit"
    assert "Create a series" in words_of(await page(editor, workshop))
    series_id = await make_series(editor, title="Waders")
    others_series = await make_series(cast.senders["admin"][0], title="Not mine")
    text = await page(editor, workshop)
    assert f'<option value="{series_id}">Waders</option>' in text
    assert "Not mine" not in text
    added = await send_fields(editor, f"/videos/{video.id}/series", series=series_id)
    assert added.headers["Location"] == f"{workshop}#series"
    assert await videos_of(editor, series_id) == [str(video.id)]
    assert f'<option value="{series_id}">' not in await page(editor, workshop)
    await send(editor, f"/videos/{video.id}/series", {"series": others_series}, 403)
    await send(editor, f"/videos/{video.id}/series", {"series": "x"}, 404)
    # The series of others that a video is in are listed, but can't be changed.
    admin = cast.senders["admin"][1]
    await service.add_videos(UUID(others_series), [video.id], by=admin)
    text = await page(editor, workshop)
    assert "Not mine" in text
    assert f"/series/{others_series}/remove" not in text
    removed = await send_fields(editor, f"/series/{series_id}/videos/{video.id}/remove?at=workshop")
    assert removed.headers["Location"] == f"{workshop}#series"
    assert await videos_of(editor, series_id) == []
    hidden = await make_series(
        cast.senders["admin"][0], video, title="Hidden", visibility="private"
    )
    assert "Hidden" not in await page(editor, workshop)
    await send(editor, f"/videos/{video.id}/series", {"series": hidden}, 404)


async def test_selected_videos_are_added_to_a_series(
    cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    editor = cast.senders["its editor"][0]
    own = [await ready_video(cast.editor, title=f"Own {number}") for number in range(2)]
    others_video = await ready_video(await make_account("zoe"))
    assert "/series/selected" not in await page(editor, "/videos")
    series_id = await make_series(editor, title="Waders")
    assert f'<option value="{series_id}">Waders</option>' in await page(editor, "/videos")
    fields = {"series": series_id, "id": ids_of([own[0], others_video, own[1]])}
    monkeypatch.setattr(service, "MAX_VIDEOS", 1)
    added = await send_fields(editor, "/series/selected?tag=birds", **fields)
    assert added.headers["Location"].startswith("/videos?tag=birds&")
    words = words_of(await page(editor, added.headers["Location"]))
    assert "1 video added to the series." in words
    assert "1 was not changed. You can only change your own videos." in words
    assert "1 was not added. The series has as many videos as it can have." in words
    assert await videos_of(editor, series_id) == [str(own[0].id)]
    nothing = await send_fields(editor, "/series/selected", series=series_id)
    assert "Select videos first" in await page(editor, nothing.headers["Location"])
    await send(editor, "/series/selected", {**fields, "series": "x"}, 404)


async def test_full_series_is_refused_in_the_workshop(
    cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    editor = cast.senders["its editor"][0]
    monkeypatch.setattr(service, "MAX_VIDEOS", 1)
    series_id = await make_series(editor, await ready_video(cast.editor))
    video = await ready_video(cast.editor)
    text = await send(editor, f"/videos/{video.id}/series", {"series": series_id})
    assert "A series has at most 1 videos." in words_of(text)


async def test_page_of_a_series_plays_its_ready_videos_in_order(cast: Cast) -> None:
    editor = cast.senders["its editor"][0]
    nobody = cast.senders["nobody"][0]
    processing = await make_video(cast.editor)
    first, second = [await ready_video(cast.editor) for _ in range(2)]
    failed = await make_video(cast.editor, **FAILED)
    series_id = await make_series(editor, processing, first, failed, second)
    text = await page(nobody, f"/series/{series_id}")
    assert "4 videos" in words_of(text)
    # Two of 3725.4 s.
    assert "2:04:1" in words_of(text)
    assert f'href="/videos/{first.id}?series={series_id}#play"' in text
    watch = await page(nobody, f"/videos/{first.id}?series={series_id}")
    assert "2 of 4" in words_of(watch)
    assert f"/series/{series_id}" in watch
    assert re.search(rf'data-next\s+href="/videos/{second.id}\?series={series_id}"', watch)
    assert watch.count(f"?series={series_id}") >= 4
    last = await page(nobody, f"/videos/{second.id}?series={series_id}")
    assert "data-next" not in last
    embed = await page(nobody, f"/embed/{first.id}?series={series_id}")
    assert re.search(rf'data-next\s+href="/embed/{second.id}\?series={series_id}"', embed)
    # Other addresses are those of the video alone.
    stranger = await ready_video(cast.editor)
    for path in (
        f"/videos/{stranger.id}?series={series_id}",
        f"/videos/{first.id}?series=x",
        f"/videos/{first.id}?series={UNKNOWN_VIDEO_ID}",
    ):
        assert "data-up-next" not in await page(nobody, path)


async def test_long_series_lists_what_is_near_the_present_video(cast: Cast) -> None:
    editor = cast.senders["its editor"][0]
    videos = [await ready_video(cast.editor) for _ in range(60)]
    series_id = await make_series(editor, *videos)
    text = await page(editor, f"/videos/{videos[19].id}?series={series_id}")
    assert "20 of 60" in words_of(text)
    numbers = re.findall(r'series-row__number">(\d+)<', text)
    assert numbers == [str(number) for number in range(15, 61)]


async def test_tab_of_series_is_for_those_who_find_or_make_some(app: Quart, cast: Cast) -> None:
    editor = cast.senders["its editor"][0]
    names = ("nobody", "viewer", "its editor", "another editor")

    async def has_tab(name: str) -> bool:
        return 'href="/series"' in await page(cast.senders[name][0], "/")

    await make_video(cast.editor, **READY)
    assert [await has_tab(name) for name in names] == [False, False, True, True]
    series_id = await make_series(editor, visibility="unlisted")
    assert [await has_tab(name) for name in names] == [False, False, True, True]
    await answered(await put_audience(editor, series_id, signedInOnly=True))
    assert [await has_tab(name) for name in names] == [False, True, True, True]
    await answered(await patch(editor, series_id, visibility="public"))
    assert [await has_tab(name) for name in names] == [True, True, True, True]
    new = [name for name in names if "New series" in await page(cast.senders[name][0], "/series")]
    assert new == ["its editor", "another editor"]


async def test_list_of_series_has_pages(app: Quart) -> None:
    olga = await signed_in(app, await make_account("olga", Role.OWNER))
    for number in range(25):
        await make_series(olga, title=f"Birds {number:02}")
    first = await page(olga, "/series")
    assert first.count("series-card") == 24
    following = re.search(r'href="(/series\?after=[^"]+)"', first)
    assert following
    text = await page(olga, following[1])
    assert "Birds 00" in text
    assert text.count("series-card") == 1
