"""Who sees a video: every address of it, the library, and what is told of it elsewhere."""

import re
from typing import Any

import pytest
from api_client import UNKNOWN_VIDEO_ID, answered, problem
from playable_videos import AUDIENCES, PEOPLE, Cast, about_videos, make_ready, told
from quart import Quart, Response
from signed_in import Sender, text_of

from portal.database.models import Video, Visibility
from portal.videos.reading import audience_of
from portal.web.composition import WebContext

pytestmark = pytest.mark.shared_app(downloads=True)


@pytest.mark.parametrize("audience", AUDIENCES)
async def test_every_address_of_a_video_is_there_for_its_audience_alone(
    app: Quart, resources: WebContext, cast: Cast, audience: str
) -> None:
    """Each cell of the table role x route x visibility; 404 tells what an unknown id tells."""
    video = await make_ready(resources, cast.editor, audience)
    found, wrong = about_videos(app), []
    for name in PEOPLE:
        sender, _ = cast.senders[name]
        for route in found:
            answer = await sender.ask(route.method, route.path(str(video.id)))
            is_there = answer.status_code < 400 or (
                # No file was uploaded for a download, there is no model, no stream is asked for.
                (route.rule.endswith("/original") and "removed after" in await text_of(answer))
                or "no speech to text" in await text_of(answer)
                or (route.rule.endswith("/events") and answer.status_code == 406)
            )
            if is_there is not cast.may_see(name, audience):
                wrong.append((name, route.method, route.rule, answer.status_code))
            elif not is_there:
                unknown = await sender.ask(route.method, route.path(UNKNOWN_VIDEO_ID))
                assert await told(answer) == await told(unknown), (name, route)
                assert answer.status_code in (404, 410)
    assert wrong == []
    assert len(found) > 25


def listed(page: str) -> set[str]:
    """The audiences of the videos that a page of the library shows."""
    return {it for it in AUDIENCES if re.search(rf">\s*Heron {it}\s*<", page)}


async def test_lists_polls_and_oembed_tell_of_what_is_there_and_count_nothing_else(
    app: Quart, resources: WebContext, cast: Cast
) -> None:
    for audience in AUDIENCES:
        video = await make_ready(resources, cast.editor, audience, tags="birds")
        # A search finds what `save` wrote.
        video.title = f"Heron {audience}"
        await video.save(update_fields=["title"])
    videos = await Video.all()
    query = "&".join(f"id={video.id}" for video in videos)
    public_url = resources.config.public_url
    for name in PEOPLE:
        sender, who = cast.senders[name]
        seen = {it for it in AUDIENCES if cast.may_see(name, it)}
        # Who has the address of an unlisted video sees it; lists have it for its editors alone.
        is_listed = seen if name in ("its editor", "admin", "owner") else seen - {"unlisted"}
        # As streams decide it, where lists do in SQL.
        found = {it.title for it in videos if who.may_list(audience_of(it))}
        assert found == {f"Heron {it}" for it in is_listed}
        for path in ("/", "/?sort=title", "/?tag=birds", "/?status=ready", "/?q=heron"):
            page = await text_of(await sender.get(path))
            assert listed(page) == is_listed, (name, path)
            assert re.search(rf"\b{len(is_listed)} videos?\b", page), (name, path)
        polls = ["/library/progress"]
        polls += ["/videos/progress"] if name in ("admin", "its editor", "another editor") else []
        for path in polls:
            page = await text_of(await sender.get(f"{path}?{query}"))
            assert listed(page) == seen, (name, path)
        for video in videos:
            for kind in ("videos", "embed"):
                answer = await sender.get(f"/oembed?url={public_url}/{kind}/{video.id}")
                is_told = video.title.removeprefix("Heron ") in seen
                assert answer.status_code == (200 if is_told else 404), (name, video.title)
    # What one may change: one's own, and everyone's for who may change those.
    for name, own, everyones in (
        ("its editor", set(AUDIENCES), set(AUDIENCES)),
        ("another editor", set(), set()),
        ("admin", set(), set(AUDIENCES)),
    ):
        for path, found in (("/videos", own), ("/videos?whose=all", everyones)):
            page = await text_of(await cast.senders[name][0].get(path))
            assert listed(page) == found, (name, path)


async def put_access(sender: Sender, video: Video, version: str = "*", **changes: Any) -> Response:
    body = {"visibility": "public", "signedInOnly": False, "embedOrigins": [], **changes}
    headers = {"If-Match": version}
    return await sender.ask("PUT", f"/api/videos/{video.id}/access", json=body, headers=headers)


async def test_access_is_read_and_changed_under_its_version(
    app: Quart, resources: WebContext, cast: Cast
) -> None:
    video, sender = await make_ready(resources, cast.editor), cast.senders["its editor"][0]
    address = f"/api/videos/{video.id}/access"
    read = await sender.get(address)
    assert await answered(read) == {
        "visibility": "private",
        "signedInOnly": False,
        "embedOrigins": [],
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
    found = await Video.get(id=video.id)
    assert (found.visibility, found.signed_in_only) == (Visibility.PUBLIC, False)
    # From the next request on.
    for visibility, status in (("public", 200), ("private", 404)):
        await answered(await put_access(sender, video, visibility=visibility))
        assert (await Sender(app).get(f"/videos/{video.id}")).status_code == status
    missing = await sender.ask("PUT", address, json={})
    await problem(missing, 428, "precondition_required")


async def test_sites_that_may_frame_the_player_are_named(
    app: Quart, resources: WebContext, cast: Cast
) -> None:
    video = await make_ready(resources, cast.editor, "public")
    sender, nobody = cast.senders["its editor"][0], Sender(app)

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
    # What the database has, however it came there, leaves the header as it should be.
    good = "https://good.example"
    for text in (
        *("https://a.example; script-src *", "https://a.example\r\nSet-Cookie: evil=1", "*", ""),
        *("'unsafe-inline'", "data:", "https:", "https://a.example *", "https://\u202ea.example"),
    ):
        await Video.filter(id=video.id).update(embed_origins=[text, good])
        assert await ancestors() == f"'self' {good}", text
