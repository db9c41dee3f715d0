"""Playing private videos: by cookies, by one's own address, and by playback links."""

import logging
import re

import aiohttp
import pytest
from api_client import UNKNOWN_VIDEO_ID, answered
from guarded_routes import Route, routes
from page_rows import change_video, make_segment
from playable_videos import LIFE, SEGMENT, Cast, links_of, token_in, told
from quart import Quart, Response
from signed_in import Sender, text_of
from yarl import URL

from portal.accounts import people
from portal.accounts.permissions import EVERYONES
from portal.database.account_models import Role
from portal.database.models import Video, VideoStatus
from portal.features.statistics import cmcd
from portal.http.auth import Policy
from portal.http.composition import WebContext
from portal.videos import playback_links

# Addresses below `/p/<token>` that return parts of a video.
OPENED = (
    "/hls/{}/master.m3u8",
    "/hls/{}/1/master.m3u8",
    "/hls/{}/1/low/playlist.m3u8",
    "/hls/{}/1/low/00000.m4s",
    "/videos/{}/poster.jpg",
    "/videos/{}/storyboard.vtt",
    "/embed/{}",
    "/embed/{}/stage",
)
pytestmark = pytest.mark.shared_app(downloads="all")


async def statuses(sender: Sender, token: str, video: Video) -> set[int]:
    """The answers to all that a token might open of a video."""
    return {(await sender.get(f"/p/{token}{path.format(video.id)}")).status_code for path in OPENED}


async def ask_as_player(sender: Sender, route: Route, token: str, video_id: str) -> Response:
    """Send a request about a video below a token; a report of a player names it in its body."""
    path = f"/p/{token}{route.path(video_id)}"
    if route.method != "POST":
        return await sender.ask(route.method, path)
    report = f'cid="{video_id}",sid="a",v=2,ts=1000,sta=p,pt=0'
    return await sender.ask("POST", path, data=report, headers={"Content-Type": cmcd.MIMETYPE})


async def test_private_video_is_played_from_the_portal_segment_by_segment(cast: Cast) -> None:
    video = await cast.make_ready()
    (sender, _) = cast.senders["its editor"]
    playlist = await sender.get(f"/hls/{video.id}/1/low/playlist.m3u8")
    text = await text_of(playlist)
    assert "\n00000.m4s\n" in text
    assert "://" not in text
    assert playlist.headers["Cache-Control"] == "private, no-cache"
    storyboard = await text_of(await sender.get(f"/videos/{video.id}/storyboard.vtt"))
    assert f"\n/hls/{video.id}/1/storyboard-000.jpg#xywh=" in storyboard
    for path in (
        f"/hls/{video.id}/1/low/00000.m4s",
        f"/hls/{video.id}/1/storyboard-000.jpg",
        f"/videos/{video.id}/poster.jpg",
    ):
        address = (await sender.get(path)).headers["Location"]
        async with aiohttp.ClientSession() as http, http.get(URL(address, encoded=True)) as stored:
            assert (stored.status, await stored.read()) == (200, SEGMENT)
        # Longest time for which a stream works after its viewer loses permission.
        expires = re.search(r"X-Amz-Expires=(\d+)", address)
        assert expires is not None
        assert int(expires[1]) <= 300


async def test_a_clip_of_a_private_video_keeps_the_token_and_needs_it(cast: Cast) -> None:
    video = await cast.make_ready()
    (sender, _) = cast.senders["its editor"]
    created = await sender.ask("POST", links_of(video), json=LIFE)
    token = token_in((await answered(created, 201))["playbackUrl"])
    player = cast.senders["nobody"][0]
    master = f"hls/{video.id}/master.m3u8?start=1&end=2"
    # The address is relative, so it keeps the token.
    text = await text_of(await player.get(f"/p/{token}/{master}"))
    assert "\n1/low/playlist.m3u8?start=1&end=2\n" in text
    cut = await player.get(f"/p/{token}/hls/{video.id}/1/low/playlist.m3u8?start=1&end=2")
    assert cut.headers["Cache-Control"] == "private, no-cache"
    text = await text_of(cut)
    assert "#EXT-X-START:TIME-OFFSET=1.000,PRECISE=YES" in text
    assert "\n00000.m4s\n" in text
    frame = await text_of(await player.get(f"/p/{token}/embed/{video.id}?start=1&end=2"))
    assert 'data-clip-start="1.0"' in frame
    # The times of a clip don't tell that the video exists.
    for query in ("start=1&end=2", "start=soon"):
        refused = await player.get(f"/{master.partition('?')[0]}?{query}")
        assert refused.status_code == 404


async def test_records_of_a_private_video_have_addresses_that_any_player_can_use(
    cast: Cast,
) -> None:
    video = await cast.make_ready("for members")
    sender = cast.senders["viewer's token"][0]
    player = cast.senders["nobody"][0]
    read = await sender.get(f"/api/videos/{video.id}")
    token = token_in((await answered(read))["playbackUrl"])
    # Polling it, one is not sent it anew.
    tag = {"If-None-Match": read.headers["ETag"]}
    assert (await sender.get(f"/api/videos/{video.id}", headers=tag)).status_code == 304
    assert await statuses(player, token, video) <= {200, 302}
    index = await text_of(await player.get(f"/p/{token}/videos/{video.id}/storyboard.vtt"))
    assert f"\n/p/{token}/hls/{video.id}/1/storyboard-000.jpg#xywh=" in index
    path = f"/api/videos/{video.id}/transcode"
    transcode = await answered(await sender.get(path))
    for name in ("posterUrl", "storyboardUrl"):
        assert (await player.get(URL(transcode[name]).path)).status_code in (200, 302), name
    await change_video(video.id, status=VideoStatus.PROCESSING)
    await make_segment(video, "low", 0)
    response = await sender.get(path)
    assert "private" in response.headers["Cache-Control"]
    preview = await answered(response)
    assert token_in(preview["previewUrl"]) == token_in(transcode["posterUrl"])


async def test_own_address_ends_with_the_right_to_watch(cast: Cast) -> None:
    """The next request after the change of an account gets nothing."""
    video = await cast.make_ready()
    owner = cast.senders["owner"][1]
    for name in ("admin", "its editor"):
        sender, viewer = cast.senders[name]
        record = await answered(await sender.get(f"/api/videos/{video.id}"))
        token = token_in(record["playbackUrl"])
        player = cast.senders["nobody"][0]
        assert await statuses(player, token, video) <= {200, 302}
        assert viewer.account_id is not None
        if name == "admin":
            await people.change_role(viewer.account_id, Role.VIEWER, by=owner)
        else:
            await people.disable(viewer.account_id, by=owner)
        assert await statuses(player, token, video) <= {404, 410}


async def test_token_grants_only_the_playback_of_its_video(
    app: Quart, resources: WebContext, cast: Cast
) -> None:
    """Every method of every route below it, with the cookies of an owner; and other videos."""
    video = await cast.make_ready()
    link = await playback_links.make(video.id, life_s=600, by=EVERYONES)
    token = await link.token(resources.signing_keys)
    sender = cast.senders["owner"][0]
    for route in routes(app):
        answer = await sender.ask(route.method, f"/p/{token}{route.path(str(video.id))}")
        is_played = route.policy is Policy.PLAY and route.method in ("GET", "HEAD")
        is_report = route.rule == "/api/playback"
        refused = 415 if is_report and route.method == "POST" else 404
        assert answer.status_code in ({200, 302} if is_played else {refused}), route
        assert answer.headers["Referrer-Policy"] == "no-referrer", route
        assert "private" in answer.headers["Cache-Control"], route
    frame = await text_of(await Sender(app).get(f"/p/{token}/embed/{video.id}"))
    assert f'data-src="/p/{token}/hls/{video.id}/master.m3u8"' in frame
    assert f'/videos/{video.id}"' not in frame
    for audience in ("private", "public"):
        other = await cast.make_ready(audience)
        assert await statuses(sender, token, other) <= {404, 410}, audience
    # The link ends immediately, and others continue.
    again = await playback_links.make(video.id, life_s=600, by=EVERYONES)
    assert await playback_links.revoke(link.id, video_id=video.id)
    assert await statuses(Sender(app), token, video) <= {404, 410}
    other_token = await again.token(resources.signing_keys)
    assert await statuses(Sender(app), other_token, video) <= {200, 302}


async def test_refusals_below_a_token_are_all_alike(
    app: Quart, resources: WebContext, cast: Cast
) -> None:
    """A void token tells no private video from an unknown one, and neither does a valid one.

    An editor's session changes nothing.
    """
    video, other = [await cast.make_ready() for _ in range(2)]
    link = await playback_links.make(video.id, life_s=600, by=EVERYONES)
    valid = await link.token(resources.signing_keys)
    listed = [route for route in routes(app) if route.policy is Policy.PLAY]
    editor = cast.senders["its editor"][0]
    nobodys = [(Sender(app), token) for token in (valid, f"{valid[:-3]}AAA", "none")]
    for sender, token in (*nobodys, (editor, valid)):
        for route in listed:
            private, unknown = [
                await told(await ask_as_player(sender, route, token, str(video_id)))
                for video_id in (other.id, UNKNOWN_VIDEO_ID)
            ]
            assert private == unknown, (token, route)


async def test_tokens_are_never_logged(cast: Cast, caplog: pytest.LogCaptureFixture) -> None:
    video = await cast.make_ready()
    sender = cast.senders["its editor"][0]
    with caplog.at_level(logging.DEBUG):
        link = await answered(await sender.post(links_of(video), json=LIFE), 201)
        token = token_in(link["playbackUrl"])
        for prefix in ("/p/", "/P/", "/behind/p/"):
            await sender.get(f"{prefix}{token}/hls/{video.id}/1/master.m3u8")
    logged = "\n".join(f"{record.getMessage()} {record.__dict__}" for record in caplog.records)
    assert logged.count(f"/hls/{video.id}/1/master.m3u8") > 0
    assert [part for part in token.split(".") if part and part in logged] == []
