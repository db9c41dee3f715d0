"""Approval of contributors' videos: what waits, who decides, and what others see before."""

import asyncio
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

import pytest
from api_client import answered, faults, metadata, problem, uploaded
from page_rows import change_video
from page_texts import page, words_of
from playable_videos import LIFE, links_of, ready_video
from quart import Quart, Response
from signed_in import Sender, make_account, send_fields, signed_in

from portal.database.account_models import Account, Role
from portal.database.connection import transaction
from portal.database.event_models import Event
from portal.database.models import Approval, Video
from portal.features.approval.service import submit_new_version
from portal.films.version_hooks import VersionChange

pytestmark = pytest.mark.shared_app
APPROVED = {"state": "approved"}
REFUSED = {"state": "refused", "reason": "Blur the faces."}
WAITING = {"state": "waiting"}


@pytest.fixture
async def cora(olga: Account) -> Account:
    """Account of a contributor."""
    return await make_account("cora", Role.CONTRIBUTOR)


@pytest.fixture
async def contributor(app: Quart, cora: Account) -> Sender:
    """A browser in which the contributor is signed in."""
    return await signed_in(app, cora)


async def waiting_video(owner: Account, **columns: Any) -> Video:
    return await ready_video(owner, approval=Approval.WAITING, **columns)


async def put(sender: Sender, video_id: Any, body: dict[str, str]) -> Response:
    return await sender.ask("PUT", f"/api/videos/{video_id}/approval", json=body)


async def event_types(sender: Sender) -> list[str]:
    """Return the types of the events that somebody receives."""
    return [event["type"] for event in (await answered(await sender.get("/api/events")))["events"]]


async def waiting_ids(sender: Sender) -> list[str]:
    listed = await answered(await sender.get("/api/videos?approval=waiting&sort=oldest"))
    return [video["id"] for video in listed["videos"]]


async def test_contributors_video_waits_is_refused_submitted_again_and_approved(
    app: Quart, contributor: Sender, editor: Sender
) -> None:
    nobody = Sender(app)
    body = metadata(await uploaded(contributor))
    video = await answered(await contributor.post("/api/videos?visibility=public", json=body), 201)
    path = f"/api/videos/{video['id']}"
    assert await waiting_ids(editor) == await waiting_ids(contributor) == [video["id"]]
    assert await waiting_ids(nobody) == []
    assert (await nobody.get(path)).status_code == 404
    # Programs that show videos to others can tell.
    listed = await answered(await editor.get("/api/videos?visibility=public&include=details"))
    assert [record["details"]["approval"] for record in listed["videos"]] == ["waiting"]
    approved = await answered(await editor.get("/api/videos?approval=approved"))
    assert approved["videos"] == []
    await problem(await put(contributor, video["id"], APPROVED), 403, "not_allowed")
    blank = await put(editor, video["id"], {"state": "refused", "reason": " "})
    assert set(await faults(blank)) == {"/reason"}
    assert await answered(await put(editor, video["id"], REFUSED)) == REFUSED
    assert await answered(await contributor.get(f"{path}/approval")) == REFUSED
    assert await waiting_ids(editor) == []
    await problem(await put(editor, video["id"], APPROVED), 409, "approval_changed")
    await problem(await put(editor, video["id"], WAITING), 403, "not_allowed")
    # Details can be changed meanwhile.
    await answered(await contributor.ask("PATCH", path, json={"title": "Blurred"}))
    await answered(await put(contributor, video["id"], WAITING))
    assert (await nobody.get(path)).status_code == 404
    recorded = {"state": "approved", "reason": ""}
    assert await answered(await put(editor, video["id"], APPROVED)) == recorded
    # Perhaps only the answer was lost.
    assert await answered(await put(editor, video["id"], APPROVED)) == recorded
    assert (await answered(await nobody.get(path)))["title"] == "Blurred"
    assert await event_types(nobody) == ["video.approved"]
    assert await event_types(editor) == [
        "video.created",
        "video.submitted",
        "video.refused",
        "video.updated",
        "video.submitted",
        "video.approved",
    ]


async def test_first_of_two_decisions_counts(editor: Sender, owner: Sender, cora: Account) -> None:
    video = await waiting_video(cora)
    answers = await asyncio.gather(put(editor, video.id, APPROVED), put(owner, video.id, REFUSED))
    assert sorted(answer.status_code for answer in answers) == [200, 409]
    [accepted] = [answer for answer in answers if answer.status_code == 200]
    [conflict] = [answer for answer in answers if answer.status_code == 409]
    assert (await problem(conflict, 409, "approval_changed"))["present"] == await answered(accepted)
    assert (
        await Event.filter(video_id=video.id, type__in=["video.approved", "video.refused"]).count()
        == 1
    )


async def test_links_and_passwords_dont_open_a_pending_video(
    app: Quart, owner: Sender, editor: Sender, cora: Account
) -> None:
    video = await ready_video(cora, visibility="private", unlock_id=uuid4(), password_hash="x")
    link = await answered(await owner.post(links_of(video), json=LIFE), 201)
    nobody = Sender(app)
    embed = urlsplit(link["embedUrl"]).path
    pages = (embed, f"/videos/{video.id}")
    assert [(await nobody.get(path)).status_code for path in pages] == [200, 403]
    await change_video(video.id, approval=Approval.WAITING)
    assert [(await nobody.get(path)).status_code for path in pages] == [404, 404]
    # After the approval the audience is what the owner has chosen.
    await answered(await put(editor, video.id, APPROVED))
    assert [(await nobody.get(path)).status_code for path in pages] == [200, 403]


async def test_new_version_of_a_contributors_video_waits_again(
    cora: Account, edith: Account
) -> None:
    for account, is_first, approval in (
        (cora, False, Approval.WAITING),
        (cora, True, None),
        (edith, False, None),
    ):
        video = await ready_video(account)
        async with transaction():
            former = None if is_first else video
            await submit_new_version(VersionChange(video=video, former=former))
        assert (await Video.get(id=video.id)).approval is approval


async def test_cut_that_a_contributor_saves_as_a_video_waits(
    contributor: Sender, cora: Account
) -> None:
    video = await ready_video(cora)
    body = {"keep": [{"startSeconds": 0, "endSeconds": 5}], "title": "The best of it"}
    answer = await contributor.post(f"/api/videos/{video.id}/copies", json=body)
    copy = await Video.get(id=(await answered(answer, 201))["id"])
    assert (video.approval, copy.approval) == (None, Approval.WAITING)


async def test_pages_show_the_state_and_their_forms_change_it(
    contributor: Sender, editor: Sender, cora: Account
) -> None:
    video = await waiting_video(cora, title="Herons")
    path = f"/videos/{video.id}"
    own = words_of(await page(contributor, path))
    assert "This video waits for approval" in own
    assert "Approve" not in own
    assert "Approvals (1)" in words_of(await page(editor, "/"))
    assert "Herons" in words_of(await page(editor, "/approvals"))
    assert "Refuse video" in words_of(await page(editor, path))
    # The file that the editor has seen was replaced meanwhile.
    stale = await send_fields(editor, f"{path}/approval", state="approved", version=str(uuid4()))
    assert stale.status_code == 409
    visible = {"version": str(video.version_id), "reason": "Too loud"}
    refused = await send_fields(editor, f"{path}/approval", state="refused", **visible)
    assert refused.headers["Location"] == "/approvals"
    assert "No video waits for approval" in words_of(await page(editor, "/approvals"))
    for address in (path, f"{path}/edit", "/videos"):
        assert "Too loud" in words_of(await page(contributor, address))
    await send_fields(contributor, f"{path}/approval", state="waiting")
    assert (await Video.get(id=video.id)).approval is Approval.WAITING
