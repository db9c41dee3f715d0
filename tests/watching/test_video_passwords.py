"""Password of a private video: every address asks for it, once for each browser."""

import re
from typing import Any

import pytest
from api_client import answered, problem
from page_texts import page, send, words_of
from playable_videos import PLAYLIST_TYPE, Cast, about_videos
from quart import Quart, Response
from signed_in import OWN_PAGE, Sender, pass_time, send_fields, text_of

from portal.database.connection import fetch_rows
from portal.database.models import Video
from portal.http.cookies import UNLOCKED

pytestmark = pytest.mark.shared_app(downloads="all", feeds=True)
WORD = "open sesame"


async def put_access(cast: Cast, video: Video, **members: Any) -> Response:
    body = {"visibility": "private", "signedInOnly": False, "embedOrigins": [], **members}
    address = f"/api/videos/{video.id}/access"
    own = cast.senders["its editor"][0]
    return await own.ask("PUT", address, json=body, headers={"If-Match": "*"})


async def locked_video(cast: Cast, **members: Any) -> Video:
    video = await cast.make_ready()
    access = await answered(await put_access(cast, video, password=WORD, **members))
    assert access["hasPassword"] is True
    assert "password" not in access
    return video


async def unlock(sender: Sender, video: Video, word: str = WORD, path: str = "") -> Response:
    fields = {"password": word, "next": path or f"/videos/{video.id}"}
    return await send_fields(sender, f"/videos/{video.id}/unlock", **fields)


async def knowing(sender: Sender, *videos: Video) -> Sender:
    """Return a browser in which the passwords of these videos were entered one after another."""
    for video in videos:
        [cookie] = (await unlock(sender, video)).headers.getlist("Set-Cookie")
        sender = Sender(sender.app, {**OWN_PAGE, "Cookie": cookie.partition(";")[0]})
    return sender


async def test_every_address_needs_the_password_and_opens_with_it(
    app: Quart, cast: Cast, anyone: Sender
) -> None:
    video = await locked_video(cast)
    other = await locked_video(cast)
    routes = [route for route in about_videos(app) if not route.rule.endswith("/events")]
    response = await unlock(anyone, video)
    assert (response.status_code, response.location) == (303, f"/videos/{video.id}")
    knowing_one = await knowing(anyone, video)
    for sender, is_open in ((anyone, False), (knowing_one, True)):
        for route in routes:
            answer = await sender.ask(route.method, route.path(str(video.id)))
            if not is_open and route.method == "GET":
                assert answer.status_code in (403, 410), route
                assert "Harbour" not in await text_of(answer), route
            elif is_open:
                assert answer.status_code != 403, route
    opened = await knowing_one.get(f"/videos/{video.id}")
    assert opened.headers["Cache-Control"] == "private, no-store"
    # The password opens its own video alone, and lists contain no video with a password.
    assert (await knowing_one.get(f"/videos/{other.id}")).status_code == 403
    assert (await answered(await knowing_one.get("/api/videos")))["videos"] == []
    refused = await knowing_one.get(f"/api/videos/{other.id}")
    await problem(refused, 403, "password_required")
    # The video's own editor needs no password. Other editors need it to watch, and can't edit.
    assert (await cast.senders["its editor"][0].get(f"/videos/{video.id}")).status_code == 200
    assert (await cast.senders["another editor"][0].get(f"/videos/{video.id}")).status_code == 403
    refused = await cast.senders["another editor"][0].get(f"/videos/{video.id}/edit")
    assert refused.status_code == 404


async def test_players_get_addresses_that_end_with_the_password(cast: Cast, anyone: Sender) -> None:
    video = await locked_video(cast)
    viewer = await knowing(anyone, video)
    record = await answered(await viewer.get(f"/api/videos/{video.id}"))
    path = record["playbackUrl"].partition("//")[2].partition("/")[2]
    player = cast.senders["nobody"][0]
    stream = await player.get(f"/{path}")
    assert (stream.status_code, stream.mimetype) == (200, PLAYLIST_TYPE)
    # The address doesn't contain the secret that opens the page.
    assert str((await Video.get(id=video.id)).unlock_id) not in path
    await answered(await put_access(cast, video, password="another word"))
    assert (await player.get(f"/{path}")).status_code == 403
    assert (await viewer.get(f"/videos/{video.id}")).status_code == 403


async def test_player_in_a_frame_is_sent_to_an_address_with_the_permission(
    cast: Cast, anyone: Sender
) -> None:
    video = await locked_video(cast)
    path = f"/embed/{video.id}?start=1"
    locked = await anyone.get(path)
    assert locked.status_code == 403
    assert "frame-ancestors *" in locked.headers["Content-Security-Policy"]
    response = await unlock(anyone, video, path=path)
    assert "Set-Cookie" not in response.headers
    embed = re.sub("^https?://[^/]+", "", str(response.location))
    assert re.fullmatch(rf"/p/[^/]+/embed/{video.id}\?start=1", embed)
    player = await cast.senders["nobody"][0].get(embed)
    assert player.status_code == 200


async def test_ten_guesses_then_a_wait(cast: Cast, anyone: Sender) -> None:
    video = await locked_video(cast)
    for _ in range(10):
        response = await unlock(anyone, video, "guess")
        assert response.status_code == 403
        assert "This password is wrong" in words_of(await text_of(response))
    response = await unlock(anyone, video)
    assert "Try again in 1 s" in words_of(await text_of(response))
    elsewhere = Sender(anyone.app, OWN_PAGE, address="203.0.113.9")
    assert (await unlock(elsewhere, video)).status_code == 403
    await pass_time(2)
    assert (await unlock(anyone, video)).status_code == 303


async def test_password_is_hashed_and_leaves_with_the_privacy(cast: Cast, anyone: Sender) -> None:
    video = await locked_video(cast)
    stored = (await Video.get(id=video.id)).password_hash
    assert stored is not None
    assert stored.startswith("$argon2id$")
    viewer = await knowing(anyone, video)
    for members, has_password in (
        ({"hasPassword": True}, True),
        ({"password": ""}, False),
        ({"password": WORD}, True),
        ({"visibility": "unlisted"}, False),
        ({}, False),
    ):
        access = await answered(await put_access(cast, video, **members))
        assert access["hasPassword"] is has_password, members
    assert (await Video.get(id=video.id)).password_hash is None
    assert (await viewer.get(f"/videos/{video.id}")).status_code == 404
    events = await fetch_rows("SELECT data::text FROM events WHERE data IS NOT NULL")
    assert "admitted_ids" in str(events)
    assert "unlock" not in str(events)


@pytest.mark.parametrize(
    ("members", "fault"),
    [
        ({"visibility": "unlisted", "password": WORD}, "Only a private video"),
        ({"password": "short"}, "6 characters or more"),
        ({"password": "x" * 1001}, "at most 1,000"),
    ],
    ids=["public", "short", "long"],
)
async def test_unusable_password_is_refused(cast: Cast, members: Any, fault: str) -> None:
    video = await cast.make_ready()
    body = await problem(await put_access(cast, video, **members), 422, "validation_failed")
    assert body["errors"][0]["pointer"] == "/password"
    assert fault in body["errors"][0]["message"]


async def test_form_sets_and_removes_the_password(cast: Cast, anyone: Sender) -> None:
    video = await cast.make_ready()
    own = cast.senders["its editor"][0]
    path = f"/videos/{video.id}/access/panel"
    fields = {"base.visibility": "private", "visibility": "private"}
    words = words_of(await send(own, path, {**fields, "password": WORD}, 200))
    assert "Visible to: anyone with the link and the password" in words
    assert WORD not in await page(own, path)
    viewer = await knowing(anyone, video)
    assert (await viewer.get(f"/videos/{video.id}")).status_code == 200
    # Other changes leave it alone.
    await send(own, path, {**fields, "embedOrigins": "https://a.example"}, 200)
    assert (await viewer.get(f"/videos/{video.id}")).status_code == 200
    await send(own, path, {**fields, "removePassword": "on"}, 200)
    assert (await viewer.get(f"/videos/{video.id}")).status_code == 404


async def test_cookie_keeps_the_last_passwords(cast: Cast, anyone: Sender) -> None:
    first, second = await locked_video(cast), await locked_video(cast)
    response = await unlock(await knowing(anyone, first), second)
    ids = [str((await Video.get(id=video.id)).unlock_id) for video in (first, second)]
    [cookie] = response.headers.getlist("Set-Cookie")
    assert cookie.startswith(f"{UNLOCKED.plain_name}={'.'.join(ids)};")
    assert "HttpOnly" in cookie
    # Rubbish in it opens nothing and breaks nothing.
    rubbish = {"Cookie": f"{UNLOCKED.plain_name}=..{first.id}.x\x01"}
    nobody = Sender(anyone.app, {**OWN_PAGE, **rubbish})
    assert (await nobody.get(f"/videos/{first.id}")).status_code == 403
