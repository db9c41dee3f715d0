"""Audience of a video: all its addresses, the library, and mentions elsewhere."""

import re
from typing import Any

import pytest
from api_client import UNKNOWN_VIDEO_ID, answered, problem
from library_pages import FAILED
from page_rows import READY, change_video
from playable_videos import AUDIENCES, EDITORS, PAGE_ROUTES, PEOPLE, Cast, about_videos, told
from quart import Quart, Response
from signed_in import Sender, make_video, text_of

from portal.accounts.permissions import audience_of
from portal.database.models import Video, Visibility
from portal.database.work_models import Download, DownloadState
from portal.http.composition import WebContext

pytestmark = pytest.mark.shared_app(downloads="all", feeds=True)


@pytest.mark.parametrize("audience", AUDIENCES)
async def test_every_address_of_a_video_is_limited_to_its_audience(
    app: Quart, cast: Cast, audience: str
) -> None:
    """Each cell of the table role x route x visibility; 404 tells what an unknown id tells."""
    video = await cast.make_ready(audience)
    # A stored file that feeds name.
    key = f"hls/{video.id}/1/low/00000.m4s"
    await Download.create(video=video, name="low.mp4", state=DownloadState.READY, key=key)
    video_routes = about_videos(app)
    wrong = []
    is_for_everyone = cast.may_see("nobody", audience)
    for name in ("nobody", "viewer's token") if is_for_everyone else PEOPLE:
        sender, _ = cast.senders[name]
        for route in video_routes:
            answer = await sender.ask(route.method, route.path(str(video.id)))
            is_there = answer.status_code < 400 or (
                # There is no model, no stream is asked for.
                "no speech to text" in await text_of(answer)
                or (route.rule.endswith("/events") and answer.status_code == 406)
            )
            is_of_page = audience == "with a page" and route.rule in PAGE_ROUTES
            if is_there is not (is_of_page or cast.may_see(name, audience)):
                wrong.append((name, route.method, route.rule, answer.status_code))
            elif not is_there and audience == "with a password":
                assert answer.status_code == 403, (name, route)
            elif not is_there:
                unknown = await sender.ask(route.method, route.path(UNKNOWN_VIDEO_ID))
                assert await told(answer) == await told(unknown), (name, route)
                assert answer.status_code in (404, 410)
    assert wrong == []
    assert len(video_routes) > 25


def listed(page: str) -> set[str]:
    """The audiences of the videos that a page of the library shows."""
    return {title for title in AUDIENCES if re.search(rf">\s*Heron {title}\s*<", page)}


async def test_lists_polls_and_oembed_show_and_count_visible_videos_only(
    resources: WebContext, cast: Cast
) -> None:
    for audience in AUDIENCES:
        video = await cast.make_ready(audience, tags="birds")
        await change_video(video.id, title=f"Heron {audience}")
    videos = await Video.all()
    query = "&".join(f"id={video.id}" for video in videos)
    public_url = resources.config.public_url
    for name in PEOPLE:
        sender, viewer = cast.senders[name]
        visible = {title for title in AUDIENCES if cast.may_see(name, title)}
        # Anyone with the address sees an unlisted video; only its editors see it in lists.
        is_listed = visible if name in EDITORS else visible - {"unlisted"}
        pages = is_listed | {"with a page"}
        # Streams decide this in Python, lists in SQL.
        titles = {video.title for video in videos if viewer.may_list(audience_of(video))}
        assert titles == {f"Heron {title}" for title in is_listed}
        for path in ("/", "/?sort=title", "/?tag=birds", "/?status=ready", "/?q=heron"):
            page = await text_of(await sender.get(path))
            assert listed(page) == pages, (name, path)
            assert re.search(rf"\b{len(pages)} videos?\b", page), (name, path)
        records = await answered(await sender.get("/api/videos"))
        assert {record["title"] for record in records["videos"]} == titles, name
        polls = {"/library/progress": visible | {"with a page"}}
        if name in ("admin", "its editor", "another editor", "contributor"):
            polls["/videos/progress"] = visible
        for path, titles_shown in polls.items():
            page = await text_of(await sender.get(f"{path}?{query}"))
            assert listed(page) == titles_shown, (name, path)
        for video in videos:
            for kind in ("videos", "embed"):
                answer = await sender.get(f"/oembed?url={public_url}/{kind}/{video.id}")
                is_told = video.title.removeprefix("Heron ") in visible
                refusal = 403 if video.title == "Heron with a password" else 404
                assert answer.status_code == (200 if is_told else refusal), (name, video.title)
    # Editable videos: a person's own, and everyone's for admins.
    for name, own, everyones in (
        ("its editor", set(AUDIENCES), set(AUDIENCES)),
        ("another editor", set(), set()),
        ("admin", set(), set(AUDIENCES)),
    ):
        for path, expected in (("/videos", own), ("/videos?whose=all", everyones)):
            page = await text_of(await cast.senders[name][0].get(path))
            assert listed(page) == expected, (name, path)


async def test_failed_video_is_shown_to_people_who_can_edit_it(cast: Cast) -> None:
    video = await make_video(cast.editor, **FAILED)
    await make_video(cast.editor, **READY)
    for name in PEOPLE:
        sender = cast.senders[name][0]
        is_editor = name in EDITORS
        for path in ("/", "/?status=failed"):
            library = await text_of(await sender.get(path))
            assert (f"/videos/{video.id}" in library) is is_editor, (name, path)
        count = 2 if is_editor else 1
        assert re.search(rf"\b{count} videos?\b", await text_of(await sender.get("/"))), name
        watch = await text_of(await sender.get(f"/videos/{video.id}"))
        assert "couldn\u2019t be processed" in watch
        card = await text_of(await sender.get(f"/library/progress?id={video.id}"))
        for text in (watch, card):
            assert (FAILED["failure_message"] in text) is is_editor, name


async def put_access(sender: Sender, video: Video, version: str = "*", **changes: Any) -> Response:
    body = {"visibility": "public", "signedInOnly": False, "embedOrigins": [], **changes}
    headers = {"If-Match": version}
    return await sender.ask("PUT", f"/api/videos/{video.id}/access", json=body, headers=headers)


async def test_access_is_read_and_changed_under_its_version(cast: Cast) -> None:
    video = await cast.make_ready()
    sender = cast.senders["its editor"][0]
    address = f"/api/videos/{video.id}/access"
    read = await sender.get(address)
    assert await answered(read) == {
        "visibility": "private",
        "signedInOnly": False,
        "hasPublicPage": False,
        "embedOrigins": [],
        "hasPassword": False,
        "shares": [],
    }
    version = read.headers["ETag"]
    again = await sender.get(address, headers={"If-None-Match": version})
    assert again.status_code == 304
    first = await put_access(sender, video, version, signedInOnly=True, visibility="private")
    assert (await answered(first))["signedInOnly"] is True
    # Sent again it asks for nothing new; anything else is a conflict.
    again = await put_access(sender, video, version, signedInOnly=True, visibility="private")
    assert again.headers["ETag"] == first.headers["ETag"] != version
    await problem(await put_access(sender, video, version), 412, "access_changed")
    assert (await Video.get(id=video.id)).visibility is Visibility.PRIVATE
    await answered(await put_access(sender, video, first.headers["ETag"]))
    stored = await Video.get(id=video.id)
    assert (stored.visibility, stored.signed_in_only) == (Visibility.PUBLIC, False)
    # From the next request on.
    for visibility, status in (("public", 200), ("private", 404)):
        await answered(await put_access(sender, video, visibility=visibility))
        assert (await cast.senders["nobody"][0].get(f"/videos/{video.id}")).status_code == status
    missing = await sender.ask("PUT", address, json={})
    await problem(missing, 428, "precondition_required")


async def test_sites_that_may_frame_the_player_are_named(cast: Cast) -> None:
    video = await cast.make_ready("public")
    sender = cast.senders["its editor"][0]
    nobody = cast.senders["nobody"][0]

    async def ancestors() -> str:
        response = await nobody.get(f"/embed/{video.id}")
        assert "X-Frame-Options" not in response.headers
        return response.headers["Content-Security-Policy"].rpartition("frame-ancestors ")[2]

    assert await ancestors() == "*"
    sites = ["https://blog.example.org", "https://*.school.example:8443"]
    await answered(await put_access(sender, video, embedOrigins=[*sites, sites[0]]))
    assert await ancestors() == f"'self' {sites[0]} {sites[1]}"
    # The page itself may be framed by nobody.
    page = await nobody.get(f"/videos/{video.id}")
    assert page.headers["X-Frame-Options"] == "DENY"
    assert "frame-ancestors 'none'" in page.headers["Content-Security-Policy"]
    # Any value in the database gives a valid header.
    good = "https://good.example"
    for text in (
        "https://a.example; script-src *",
        "https://a.example\r\nSet-Cookie: evil=1",
        "*",
        "",
        "'unsafe-inline'",
        "data:",
        "https:",
        "https://a.example *",
        "https://\u202ea.example",
    ):
        await change_video(video.id, embed_origins=[text, good])
        assert await ancestors() == f"'self' {good}", text
