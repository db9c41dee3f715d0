"""Playback links over HTTP: created, listed and revoked by editors of the video."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

import pytest
from api_client import answered, faults, problem, rows, run_sql
from playable_videos import LIFE, age_links, links_of, ready_video, token_in
from quart import Quart
from signed_in import Sender, make_account, make_video, person, program, signed_in, token_of

from portal.accounts import people
from portal.database.account_models import Account, Role, Scope
from portal.database.models import Video
from portal.errors import PlaybackTokenRefused
from portal.http.composition import WebContext
from portal.videos.playback_links import MAX_LIFE_S, MAX_LINKS, MIN_LIFE_S, Viewer, fetch_live_links

PUBLIC_URL = "http://videos.example.org"
CREATED = {"playbackUrl", "embedUrl", "expiresAt", "id", "viewer"}
LEARNER = {"id": "4711", "label": "Léna Lehmann 😀"}
LINK_LINES = "SELECT count(*) FROM events WHERE action = 'video.link_made'"
# Links up to the limit of a video.
FILL = """
INSERT INTO playback_links (id, video_id, created_at, expires_at)
SELECT gen_random_uuid(), '{id}', now(), now() + interval '1 hour'
FROM generate_series(1, {count})
"""
pytestmark = pytest.mark.shared_app(
    public_url=PUBLIC_URL, playback_base_url="https://cdn.example.org"
)


async def made(sender: Sender, video: Video, **body: Any) -> dict[str, Any]:
    return await answered(await sender.post(links_of(video), json=body or LIFE), 201)


async def listed(sender: Sender, video: Video) -> list[dict[str, Any]]:
    body = await answered(await sender.get(links_of(video)))
    links: list[dict[str, Any]] = body["links"]
    return links


async def test_link_has_the_addresses_of_a_stream_and_a_player(
    resources: WebContext, editor: Sender, edith: Account
) -> None:
    video = await ready_video(edith)
    before = datetime.now(UTC)
    response = await editor.post(links_of(video), json={"expiresInSeconds": 86_400})
    link = await answered(response, 201)
    assert set(link) == CREATED
    token = token_in(link["playbackUrl"])
    # The portal's own, although there is a CDN.
    assert link["playbackUrl"] == f"{PUBLIC_URL}/p/{token}/hls/{video.id}/master.m3u8"
    assert link["embedUrl"] == f"{PUBLIC_URL}/p/{token}/embed/{video.id}"
    verified = await resources.signing_keys.verify(token, video_id=video.id)
    assert (verified.link_id, verified.account_id) == (UUID(link["id"]), None)
    assert verified.expires_at == datetime.fromisoformat(link["expiresAt"])
    assert abs(verified.expires_at - before - timedelta(days=1)) < timedelta(minutes=5)
    assert "no-store" in response.headers["Cache-Control"]
    with pytest.raises(PlaybackTokenRefused):
        await resources.signing_keys.verify(token, video_id=(await ready_video(edith)).id)


async def test_list_has_the_links_that_work_the_newest_first(
    app: Quart, resources: WebContext, editor: Sender, edith: Account
) -> None:
    video = await ready_video(edith)
    other = await ready_video(edith)
    admin = await make_account("adam", Role.ADMIN)
    assert await listed(editor, video) == []
    first = await made(editor, video, expiresInSeconds=60, label="The Times")
    second = await made(program(app, await token_of(admin, [Scope.WRITE])), video)
    await made(editor, other)
    links = await listed(editor, video)
    assert [{name: record[name] for name in CREATED} for record in links] == [second, first]
    assert [record["madeBy"] for record in links] == [admin.email, edith.email]
    assert [set(record) for record in links] == [
        CREATED | {"createdAt", "label", "madeBy", "isForViewers"}
    ] * 2
    assert [record["label"] for record in links] == ["", "The Times"]
    for record in links:
        created_at = datetime.fromisoformat(record["createdAt"])
        assert abs(datetime.now(UTC) - created_at) < timedelta(seconds=30)
    await age_links(resources.config, 61)
    assert [link["id"] for link in await listed(editor, video)] == [second["id"]]
    assert set(await fetch_live_links([UUID(record["id"]) for record in links])) == {
        UUID(second["id"])
    }
    for link_id in ("none", "%00", str(UUID(int=0)), second["id"].replace("-", "")):
        answer = await editor.ask("DELETE", f"{links_of(video)}/{link_id}")
        await problem(answer, 404, "playback_link_not_found")


async def test_lifetime_has_limits_and_the_video_must_be_ready(
    editor: Sender, edith: Account
) -> None:
    video = await ready_video(edith)
    limits = {MIN_LIFE_S - 1: "Give 60 or more.", MAX_LIFE_S + 1: "Give 31,536,000 or less."}
    for life_s, words in limits.items():
        answer = await editor.post(links_of(video), json={"expiresInSeconds": life_s})
        assert await faults(answer) == {"/expiresInSeconds": words}
    assert await listed(editor, video) == []
    processing = await make_video(edith)
    await problem(await editor.post(links_of(processing), json=LIFE), 409, "not_playable")


async def test_no_more_than_a_thousand_links_even_with_simultaneous_requests(
    resources: WebContext, editor: Sender, edith: Account
) -> None:
    video = await ready_video(edith)
    database_url = resources.config.database_url
    await run_sql(database_url, FILL.format(id=video.id, count=MAX_LINKS - 3))
    answers = await asyncio.gather(*(editor.post(links_of(video), json=LIFE) for _ in range(10)))
    assert sorted(answer.status_code for answer in answers) == [201] * 3 + [409] * 7
    refused = next(answer for answer in answers if answer.status_code == 409)
    details = await problem(refused, 409, "too_many_playback_links")
    assert f"{MAX_LINKS:,}" in details["detail"]
    # Another video has its own, and what is revoked or has run out makes room.
    await made(editor, await ready_video(edith))
    [first, *_] = await listed(editor, video)
    await editor.ask("DELETE", f"{links_of(video)}/{first['id']}")
    await made(editor, video)
    await age_links(resources.config, 3601)
    await made(editor, video)
    assert len(await listed(editor, video)) == 1


async def test_links_of_viewers_share_a_row_and_are_revoked_together(
    resources: WebContext, editor: Sender, edith: Account, anyone: Sender
) -> None:
    video = await ready_video(edith)
    database_url = resources.config.database_url
    await run_sql(database_url, FILL.format(id=video.id, count=MAX_LINKS))
    learners = [LEARNER, LEARNER, {"id": "4712", "label": "Lars"}]
    links = [
        await made(editor, video, expiresInSeconds=life_s, viewer=learner, label="ignored")
        for life_s, learner in zip((7200, 60, 60), learners, strict=True)
    ]
    assert [link["viewer"] for link in links] == learners
    [link_id] = {link["id"] for link in links}
    for link in links:
        token = token_in(link["embedUrl"])
        verified = await resources.signing_keys.verify(token, video_id=video.id)
        assert verified.viewer == Viewer(**link["viewer"])
        assert verified.expires_at == datetime.fromisoformat(link["expiresAt"])
    [shared] = [link for link in await listed(editor, video) if link["isForViewers"]]
    assert (shared["id"], shared["viewer"], shared["label"]) == (link_id, None, "")
    assert shared["expiresAt"] == links[0]["expiresAt"]
    assert await rows(database_url, LINK_LINES) == [(1,)]
    # A link that is made later does not bring the revoked ones back.
    assert (await editor.ask("DELETE", f"{links_of(video)}/{link_id}")).status_code == 204
    renewed = await made(editor, video, **LIFE, viewer=LEARNER)
    paths = [urlsplit(link["embedUrl"]).path for link in (*links, renewed)]
    assert [(await anyone.get(path)).status_code for path in paths] == [404, 404, 404, 200]


async def test_viewer_needs_an_id_and_a_label_without_control_characters(
    editor: Sender, edith: Account, anyone: Sender
) -> None:
    video = await ready_video(edith)
    viewers = ({"id": "1"}, {"id": "", "label": "x" * 101}, {"id": "\n", "label": "a\x85"})
    pointers = []
    for viewer in viewers:
        answer = await editor.post(links_of(video), json={**LIFE, "viewer": viewer})
        pointers.append(set(await faults(answer)))
    assert pointers == [{"/viewer/label"}, *[{"/viewer/id", "/viewer/label"}] * 2]
    longest = {"id": "😀" * 100, "label": "👩" * 100}
    link = await made(editor, video, **LIFE, viewer=longest)
    assert (await anyone.get(urlsplit(link["embedUrl"]).path)).status_code == 200


async def test_link_outlives_the_account_and_ends_with_the_video(
    app: Quart, olga: Account, edith: Account
) -> None:
    video = await ready_video(edith)
    link = await made(await signed_in(app, edith), video)
    await people.remove(edith.id, by=person(olga))
    sender = await signed_in(app, olga)
    [remaining] = await listed(sender, video)
    assert (remaining["id"], remaining["madeBy"]) == (link["id"], None)
    assert (await sender.ask("DELETE", f"/api/videos/{video.id}")).status_code == 202
    assert await fetch_live_links([UUID(link["id"])]) == {}
