"""Hand-in links: somebody without an account uploads, within limits, and gets nothing else."""

import asyncio
import html
import logging
import re
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from api_client import RAW_FILE, answered, faults, metadata, problem, put
from page_texts import fault_of, page, send, value_of, words_of
from quart import Quart, Response
from series_calls import make_series, put_audience, videos_of
from signed_in import (
    OWN_PAGE,
    Sender,
    configure,
    make_account,
    make_upload,
    person,
    send_fields,
    signed_in,
)
from upload_client import put_to, start

from portal.accounts import people
from portal.database.account_models import Account, Role
from portal.database.connection import execute, fetch_rows
from portal.database.models import Upload, Video, Visibility
from portal.features.hand_in import service
from portal.uploads.quotas import Quota

pytestmark = pytest.mark.shared_app
FILE = {"fileName": "film.mp4", "contentType": "video/mp4"}
DETAILS = {"fileName": "film.mp4", "title": "My essay", "sender": "Ben Example"}
FORM = {"name": "Essays of 9b", "days": "14", "maxFiles": "30", "categoryId": "5"}


async def make_link(maker: Sender, **changes: str) -> str:
    """Create a link by the form, and return the path of its address."""
    text = await page_after(maker, **changes)
    [address] = re.findall(r'id="new-link"\s+value="([^"]+)"', text)
    return re.sub("^https?://[^/]+", "", html.unescape(address))


async def page_after(maker: Sender, **changes: str) -> str:
    response = await send_fields(maker, "/hand-ins", **{**FORM, **changes})
    assert response.status_code == 200
    return str(await response.get_data(as_text=True))


async def begin(sender: Sender, path: str) -> tuple[Sender, dict[str, str]]:
    """Begin an upload, and return the browser with its cookie, and the answer."""
    response = await ask_to_begin(sender, path)
    upload = await answered(response)
    [cookie] = response.headers.getlist("Set-Cookie")
    assert "HttpOnly" in cookie
    assert "SameSite=Lax" in cookie
    headers = {**OWN_PAGE, "Cookie": cookie.partition(";")[0]}
    return Sender(sender.app, headers, sender.address), upload


async def ask_to_begin(sender: Sender, path: str) -> Response:
    return await sender.post(f"{path.replace('hand-in', 'hand-in-files')}/uploads", json=FILE)


async def sent(sender: Sender, path: str, data: bytes = RAW_FILE) -> tuple[Sender, str]:
    """Upload a file, and return the browser and the key."""
    browser, upload = await begin(sender, path)
    assert await put(upload["uploadUrl"], data) == 200
    return browser, upload["key"]


async def hand_in(browser: Sender, path: str, key: str, **changes: str) -> Response:
    body = {**DETAILS, "key": key, **changes}
    return await browser.post(path.replace("hand-in", "hand-in-files"), json=body)


async def received(path: str) -> tuple[int, int, int]:
    """Return the count of a link, and the numbers of rows and of videos."""
    link = await service.require_link(path.rpartition("/")[2], max_source_bytes=0)
    [row] = await fetch_rows("SELECT count(*) AS files FROM hand_in_files")
    return link["received_files"], row["files"], await Video.all().count()


async def test_sender_hands_a_file_in_and_the_maker_owns_the_private_video(
    editor: Sender, edith: Account, anyone: Sender
) -> None:
    await people.rename(edith.id, "Ms Edith")
    path = await make_link(editor)
    text = words_of(await page(anyone, path))
    assert "Essays of 9b" in text
    assert "Ms Edith asks for videos" in text
    assert edith.email not in text
    ben, key = await sent(anyone, path)
    for _ in range(2):
        assert (await hand_in(ben, path, key)).status_code == 204
    assert await received(path) == (1, 1, 1)
    [video] = await Video.all()
    assert video.title == "My essay"
    workshop = words_of(await page(editor, f"/videos/{video.id}/edit"))
    assert "By Ben Example through Essays of 9b" in workshop
    assert (video.owner_id, video.visibility) == (edith.id, Visibility.PRIVATE)
    assert list(video.category_ids) == [5]
    # The sender's browser lists what it handed in under the title that it gave, and others don't.
    await execute("UPDATE publications SET title = 'Marked: 2'")
    assert "My essay" in words_of(await page(ben, path))
    assert "My essay" not in await page(anyone, path)
    other, _ = await begin(anyone, path)
    assert "My essay" not in await page(other, path)
    assert (await ben.get(f"/videos/{video.id}")).status_code == 404
    assert "Files received: 1 of 30" in words_of(await page(editor, "/hand-ins"))


async def test_videos_join_the_series_of_the_link_while_its_maker_may_edit_it(
    editor: Sender, anyone: Sender, olga: Account
) -> None:
    admin = await signed_in(editor.app, olga)
    own = await make_series(editor, title="Films of 9b")
    path = await make_link(editor, seriesId=own)
    _, first = await handed_in(anyone, path)
    assert await videos_of(editor, own) == [first]
    # A series that can't take the video, or that is gone, doesn't keep the file from its maker.
    shared = await make_series(admin, title="Olga's")
    share = {"name": "edith@example.org", "right": "edit"}
    await answered(await put_audience(admin, shared, visibility="private", shares=[share]))
    path = await make_link(editor, seriesId=shared)
    await answered(await put_audience(admin, shared, visibility="private", shares=[]))
    await handed_in(anyone, path)
    assert await videos_of(admin, shared) == []
    await execute("DELETE FROM series WHERE id = %s", shared)
    await handed_in(anyone, path)
    assert await Video.all().count() == 3
    other_upload = await make_series(admin, title="Hidden", visibility="private")
    for unknown, status in ((other_upload, 404), ("x", 422)):
        form = {**FORM, "seriesId": unknown}
        assert (await send_fields(editor, "/hand-ins", **form)).status_code == status


async def handed_in(sender: Sender, path: str) -> tuple[Sender, str]:
    """Hand a file in; return the browser and the id of the video."""
    browser, key = await sent(sender, path)
    assert (await hand_in(browser, path, key)).status_code == 204
    [row] = await fetch_rows("SELECT video_id FROM hand_in_files ORDER BY received_at DESC LIMIT 1")
    return browser, str(row["video_id"])


async def test_large_file_arrives_in_parts_from_the_browser_that_began_it_alone(
    editor: Sender, anyone: Sender
) -> None:
    path = await make_link(editor)
    ben, upload = await begin(anyone, path)
    other, _ = await begin(anyone, path)
    size = len(RAW_FILE)
    state = await answered(await start(ben, upload["key"], size), 201)  # type: ignore[arg-type]
    address = f"/api/uploads/{state['uploadId']}"
    for stranger in (anyone, other):
        await problem(await stranger.get(address), 401, "not_signed_in")
        await problem(await start(stranger, upload["key"], size), 401, "not_signed_in")  # type: ignore[arg-type]
        await problem(await hand_in(stranger, path, upload["key"]), 401, "not_signed_in")
    part = await answered(await ben.post(f"{address}/parts/1"))
    assert (await put_to(part["uploadUrl"], RAW_FILE))[0] == 200
    # The upload is read again after a reload.
    assert len((await answered(await ben.get(address)))["parts"]) == 1
    assert (await answered(await ben.post(f"{address}/complete")))["state"] == "stored"
    assert (await hand_in(ben, path, upload["key"])).status_code == 204


async def test_parts_keep_to_the_size_and_the_end_of_the_link(
    editor: Sender, edith: Account, olga: Account, anyone: Sender
) -> None:
    path = await make_link(editor, maxMegabytes="1")
    ben, upload = await begin(anyone, path)
    large = await start(ben, upload["key"], 1_000_001)  # type: ignore[arg-type]
    assert set(await faults(large)) == {"/sizeBytes"}
    state = await answered(await start(ben, upload["key"], 1_000_000), 201)  # type: ignore[arg-type]
    part = f"/api/uploads/{state['uploadId']}/parts/1"
    await answered(await ben.post(part))
    await people.disable(edith.id, by=person(olga))
    await problem(await ben.post(part), 401, "not_signed_in")
    await people.enable(edith.id, by=person(olga))
    await answered(await ben.post(part))
    await Upload.filter(key=upload["key"]).update(sender_until=datetime.now(UTC))
    await problem(await ben.post(part), 401, "not_signed_in")


async def test_senders_leave_no_answers_that_are_kept(editor: Sender, anyone: Sender) -> None:
    ben, _ = await begin(anyone, await make_link(editor))
    await execute("DELETE FROM idempotency_keys")
    headers = {"Idempotency-Key": "made-up"}
    assert (await ben.post("/api/uploads", json={}, headers=headers)).status_code == 422
    assert await fetch_rows("SELECT FROM idempotency_keys") == []


async def test_link_grants_nothing_else(
    editor: Sender, edith: Account, anyone: Sender, app: Quart
) -> None:
    path = await make_link(editor)
    ben, key = await sent(anyone, path)
    own = await make_upload(edith)
    await problem(await ben.get(f"/api/uploads/{own}"), 401, "not_signed_in")
    own_key = (await Upload.get(id=own)).key
    await problem(await hand_in(ben, path, own_key), 401, "not_signed_in")
    await problem(await ben.post("/api/videos/presign", json=FILE), 401, "not_signed_in")
    await problem(await ben.post("/api/videos", json=metadata(key)), 401, "not_signed_in")
    assert (await ben.get("/hand-ins")).status_code == 303
    # An upload of one link is not handed in by another.
    other = await make_link(editor, name="Other")
    await problem(await hand_in(ben, other, key), 404, "link_not_valid")
    assert (await hand_in(ben, path, key)).status_code == 204
    # Videos of others are not in anybody's list but the maker's.
    assert (await answered(await ben.get("/api/videos")))["videos"] == []


async def test_concurrent_senders_do_not_exceed_the_most_files(
    editor: Sender, anyone: Sender
) -> None:
    path = await make_link(editor, maxFiles="2")
    uploads = [await sent(anyone, path) for _ in range(5)]
    answers = await asyncio.gather(*(hand_in(ben, path, key) for ben, key in uploads))
    assert sorted(answer.status_code for answer in answers) == [204, 204, 404, 404, 404]
    assert await received(path) == (2, 2, 2)
    await problem(await ask_to_begin(anyone, path), 404, "link_not_valid")
    assert "takes no more files" in await page(anyone, path)


async def test_uploads_that_are_never_handed_in_are_limited(editor: Sender, anyone: Sender) -> None:
    path = await make_link(editor, maxFiles="1")
    statuses = [(await ask_to_begin(anyone, path)).status_code for _ in range(12)]
    assert statuses == [200] * 11 + [404]


@pytest.mark.parametrize("end", ["revoked", "expired", "demoted"])
async def test_ended_link_takes_nothing_and_its_videos_stay(
    end: str, editor: Sender, edith: Account, anyone: Sender
) -> None:
    path = await make_link(editor)
    ben, key = await sent(anyone, path)
    assert (await hand_in(ben, path, key)).status_code == 204
    ben, late_key = await sent(ben, path)
    if end == "revoked":
        [action] = re.findall(r'action="(\S+/revoke)"', await page(editor, "/hand-ins"))
        for _ in range(2):
            assert (await editor.post(action)).location == "/hand-ins"
        assert "Essays" not in await page(editor, "/hand-ins")
        late = await ben.get(f"/api/uploads/{late_key[7:39]}")
        await problem(late, 401, "not_signed_in")
    elif end == "expired":
        await execute("UPDATE hand_ins SET expires_at = now()")
        assert "Ended" in words_of(await page(editor, "/hand-ins"))
    else:
        await execute("UPDATE accounts SET role = %s WHERE id = %s", Role.VIEWER, edith.id)
    assert "no longer valid" in words_of(await page(ben, path, 404))
    await problem(await ask_to_begin(ben, path), 404, "link_not_valid")
    await problem(await hand_in(ben, path, late_key), 404, "link_not_valid")
    assert await Video.all().count() == 1


async def test_limits_of_the_link_and_of_its_maker_hold(
    editor: Sender, anyone: Sender, app: Quart
) -> None:
    path = await make_link(editor, maxMegabytes="1")
    ben, key = await sent(anyone, path, bytes(10**6 + 1))
    [fault] = (await faults(await hand_in(ben, path, key))).values()
    assert "at most 1,000,000" in fault
    ben, key = await sent(ben, path)
    configure(app, max_source_bytes=len(RAW_FILE) - 1)
    assert set(await faults(await hand_in(ben, path, key))) == {"/key"}
    configure(app, max_source_bytes=0)
    ben, key = await sent(ben, path)
    assert set(await faults(await hand_in(ben, path, key, title=" ", sender=""))) == {
        "/title",
        "/sender",
    }
    app.extensions["portal"] = replace(app.extensions["portal"], quota=Quota(videos_per_day=1))
    assert (await hand_in(ben, path, key)).status_code == 204
    await problem(await ask_to_begin(ben, path), 409, "video_quota_exceeded")


async def test_form_names_its_faults_and_keeps_what_was_typed(editor: Sender) -> None:
    form = {"name": "", "days": "366", "maxFiles": "0", "maxMegabytes": "", "categoryId": "99"}
    text = await send(editor, "/hand-ins", form)
    for name in ("name", "days", "maxFiles"):
        assert fault_of(text, name)
    assert value_of(text, "days") == "366"
    assert await fetch_rows("SELECT FROM hand_ins") == []


async def test_links_are_for_their_makers_and_admins(
    app: Quart, editor: Sender, owner: Sender
) -> None:
    other_editor = await signed_in(app, await make_account("emil", Role.EDITOR))
    await make_link(editor)
    [row] = await fetch_rows("SELECT id FROM hand_ins")
    assert "Essays" not in await page(other_editor, "/hand-ins")
    await other_editor.post(f"/hand-ins/{row['id']}/revoke")
    assert "edith@example.org" in words_of(await page(owner, "/hand-ins"))
    await owner.post(f"/hand-ins/{row['id']}/revoke")
    assert await fetch_rows("SELECT FROM hand_ins") == []


async def test_secret_is_shown_once_and_is_neither_stored_nor_logged(
    editor: Sender, anyone: Sender, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    path = await make_link(editor)
    secret = path.rpartition("/")[2]
    assert secret not in await page(editor, "/hand-ins")
    response = await anyone.get(path)
    assert response.headers["Cache-Control"] == "private, no-store"
    ben, key = await sent(anyone, path)
    await hand_in(ben, path, key)
    for table in ("hand_ins", "hand_in_files", "uploads", "events"):
        rows: list[dict[str, Any]] = await fetch_rows(f"SELECT row::text AS text FROM {table} row")
        assert not any(secret in row["text"] for row in rows)
    assert secret not in caplog.text


async def test_links_of_an_open_portal_go_to_its_first_account(
    anyone: Sender,
) -> None:
    path = await make_link(anyone)
    ben, key = await sent(anyone, path)
    olga = await make_account("olga")
    assert (await hand_in(ben, path, key)).status_code == 204
    assert (await Video.get()).owner_id == olga.id
