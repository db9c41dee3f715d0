"""The schedule of a video in the API, and its form in the workshop without scripts."""

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from api_client import Client, answered, faults, problem
from page_texts import page, send, value_of, words_of
from playable_videos import ready_video
from quart import Quart
from signed_in import Sender, program, send_fields, signed_in, token_of
from versioned_settings import check_versions

from portal.database.account_models import Account, Role, Scope
from portal.database.models import Video, Visibility
from portal.features.schedule.service import read_times

pytestmark = pytest.mark.shared_app
PRIVATE = {"visibility": Visibility.PRIVATE}
NEVER = {"publishAt": None, "unpublishAt": None, "deleteAt": None}
FIELDS = {"publishAt": "publish-at", "unpublishAt": "unpublish-at", "deleteAt": "delete-at"}


def in_days(days: int) -> str:
    """Return a minute so many days ahead, as fields have it."""
    return (datetime.now(UTC) + timedelta(days=days)).strftime("%Y-%m-%dT%H:%M")


async def put(sender: Sender, video: Video, **times: Any) -> Any:
    body = {**NEVER, **times}
    headers = {"If-Match": "*"}
    return await sender.ask("PUT", f"/api/videos/{video.id}/schedule", json=body, headers=headers)


async def test_program_reads_and_replaces_the_schedule_of_the_version_that_it_read(
    editor: Sender, edith: Account
) -> None:
    video = await ready_video(edith, **PRIVATE)
    path = f"/api/videos/{video.id}/schedule"
    assert await answered(await editor.get(path)) == NEVER
    # Times have any offset, and are answered in UTC.
    times = {
        "publishAt": "2030-03-10T02:30:00-05:00",
        "unpublishAt": None,
        "deleteAt": "2031-01-01T00:00:00Z",
    }
    saved = await check_versions(editor, path, times, NEVER, conflict="schedule_changed")
    assert saved == {
        "publishAt": "2030-03-10T07:30:00.000000Z",
        "unpublishAt": None,
        "deleteAt": "2031-01-01T00:00:00.000000Z",
    }


async def test_refusals_name_the_member_and_the_remedy(editor: Sender, edith: Account) -> None:
    video = await ready_video(edith)
    past = await put(
        editor, video, publishAt="2030-01-01T00:00:00Z", deleteAt="2001-01-01T00:00:00Z"
    )
    assert await faults(past) == {
        "/publishAt": "This video is public now. Make it private or unlisted first.",
        "/deleteAt": "Give a time in the future.",
    }
    odd = await put(editor, video, unpublishAt="tomorrow", deleteAt="2030-01-01T00:00:30Z")
    assert await faults(odd) == {"/unpublishAt": "Give a time like 2026-01-31T12:00:00Z."}
    path = f"/api/videos/{video.id}/schedule"
    partial = await editor.ask("PUT", path, json={"deleteAt": None}, headers={"If-Match": "*"})
    assert set(await faults(partial)) == {"/publishAt", "/unpublishAt"}


async def test_deletion_needs_the_permission_to_delete(
    app: Quart, olga: Account, editor: Sender, edith: Account
) -> None:
    video = await ready_video(olga, **PRIVATE, admitted_ids=[edith.id], editor_ids=[edith.id])
    refused = await put(editor, video, deleteAt="2030-01-01T00:00:00Z")
    assert "may delete this video" in (await problem(refused, 403, "not_allowed"))["detail"]
    writer = program(app, await token_of(olga, [Scope.WRITE]))
    refused = await put(writer, video, deleteAt="2030-01-01T00:00:00Z")
    missing = await problem(refused, 403, "insufficient_scope")
    assert missing["missingScope"] == "videos:delete"
    await answered(await put(writer, video, publishAt="2030-01-01T00:00:00Z"))
    # The form doesn't offer it, and keeps what others have chosen.
    times = {"publishAt": "2030-01-01T00:00:00Z", "deleteAt": "2030-02-01T00:00:00Z"}
    await answered(await put(await signed_in(app, olga), video, **times))
    text = await page(editor, f"/videos/{video.id}/edit")
    assert 'id="publish-at"' in text
    assert 'id="delete-at"' not in text
    await save(editor, video, text, publishAt=in_days(3))
    assert set((await read_times(video.id)).by_name) == {"publish_at", "delete_at"}


def version_in(text: str) -> str:
    [version] = re.findall(r'name="version" value="(\w+)"', text)
    return str(version)


async def save(sender: Sender, video: Video, text: str, **fields: str) -> None:
    """Send the form of a page with these fields, and check that it was saved."""
    form = {"version": version_in(text), **fields}
    response = await send_fields(sender, f"/videos/{video.id}/schedule", **form)
    assert response.status_code == 303, await response.get_data()
    assert response.headers["Location"] == f"/videos/{video.id}/edit?saved=schedule#schedule"


async def test_form_without_scripts_takes_and_shows_utc(editor: Sender, edith: Account) -> None:
    video = await ready_video(edith, **PRIVATE)
    text = await page(editor, f"/videos/{video.id}/edit")
    assert "Nothing is scheduled." in words_of(text)
    assert words_of(text).count("Time zone: UTC") == 3
    assert "will be deleted for good" not in words_of(text)
    publish_at, delete_at = in_days(1), in_days(3)
    await save(editor, video, text, publishAt=publish_at, unpublishAt="", deleteAt=delete_at)
    times = await read_times(video.id)
    assert times.publish_at == datetime.fromisoformat(f"{publish_at}Z")
    text = await page(editor, f"/videos/{video.id}/edit?saved=schedule")
    words = words_of(text)
    assert re.search(r"Becomes public on \d+ \w+ \d{4}, \d\d:\d\d UTC \.", words)
    assert words.count("Saved.") == 1
    assert "This video will be deleted for good on" in words
    assert [value_of(text, id) for id in FIELDS.values()] == [publish_at, "", delete_at]
    # The fields that scripts send count before those that are typed.
    instants = {"publishAt.instant": "2030-01-01T05:00:00Z", "deleteAt.instant": ""}
    await save(editor, video, text, publishAt="2030-01-01T00:00", deleteAt=delete_at, **instants)
    assert await answered(await editor.get(f"/api/videos/{video.id}/schedule")) == {
        **NEVER,
        "publishAt": "2030-01-01T05:00:00.000000Z",
    }


@pytest.mark.parametrize("route", ["schedule", "schedule/panel"])
async def test_faults_and_conflicts_keep_what_was_typed(
    app: Quart, olga: Account, editor: Sender, edith: Account, route: str
) -> None:
    video = await ready_video(edith, **PRIVATE)
    path = f"/videos/{video.id}/{route}"
    form = {"version": (await read_times(video.id)).version}
    typed = {"publishAt": "2001-01-01T00:00", "unpublishAt": in_days(4), "deleteAt": "tomorrow"}
    text = await send(editor, path, form | typed, 422)
    assert [value_of(text, id) for id in FIELDS.values()] == [*typed.values()]
    assert "Give a time like 2026-01-31T12:00:00Z." in text
    typed["deleteAt"] = ""
    text = await send(editor, path, form | typed, 422)
    assert "Give a time in the future." in text
    assert version_in(text) == form["version"]

    other = await signed_in(app, olga)
    await answered(await put(other, video, publishAt="2030-05-06T07:08:00Z"))
    typed["publishAt"] = in_days(2)
    text = await send(editor, path, form | typed, 409)
    assert "Someone else has changed the schedule:" in words_of(text)
    assert words_of(text).count("Becomes public on 6 May 2030, 07:08 UTC") == 1
    assert [value_of(text, id) for id in FIELDS.values()] == [*typed.values()]
    assert (await read_times(video.id)).unpublish_at is None
    await save(editor, video, text, **typed)
    assert set((await read_times(video.id)).by_name) == {"publish_at", "unpublish_at"}


async def test_panel_returns_the_form_and_the_notice_of_the_page(
    editor: Sender, edith: Account
) -> None:
    video = await ready_video(edith)
    form = {"version": (await read_times(video.id)).version, "deleteAt": in_days(2)}
    text = await send(editor, f"/videos/{video.id}/schedule/panel", form, 200)
    assert re.search(r'<section id="schedule"[^>]*\bdata-saved\b', text)
    assert re.search(r'id="schedule-notice"\s+hx-swap-oob="outerHTML"', text)
    assert "This video will be deleted for good on" in words_of(text)


async def test_event_of_a_deletion_that_is_due_is_listed_and_described(
    client: Client, editor: Sender, edith: Account
) -> None:
    video = await ready_video(edith, **PRIVATE)
    delete_at = f"{in_days(2)}:00Z"
    await answered(await put(editor, video, deleteAt=delete_at))
    assert edith.role is Role.EDITOR
    listed = await answered(await editor.get("/api/events?type=video.deletion_due"))
    assert [event["data"]["id"] for event in listed["events"]] == [str(video.id)]
    spec = await answered(await client.get("/api/openapi.json"))
    assert "video.deletion_due" in spec["components"]["schemas"]["EventType"]["enum"]
