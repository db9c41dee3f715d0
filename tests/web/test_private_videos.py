"""Who sees a video: every address of it, the library, and what is told of it elsewhere."""

import re
from typing import Any
from uuid import uuid4

import pytest
from api_client import answered, metadata, problem
from private_videos import (
    AUDIENCES,
    PEOPLE,
    Cast,
    about_videos,
    make_ready,
    told,
)
from quart import Quart, Response
from signed_in import Sender, program, text_of, token_of

from portal.database.models import Video
from portal.database.states import Visibility
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
                # No file was uploaded for a download.
                route.rule.endswith("/original") and "removed after" in await text_of(answer)
            )
            if is_there is not cast.may_see(name, audience):
                wrong.append((name, route.method, route.rule, answer.status_code))
            elif not is_there:
                unknown = await sender.ask(route.method, route.path(str(uuid4())))
                assert await told(answer) == await told(unknown), (name, route)
                assert answer.status_code in (404, 410)
    assert wrong == []
    assert len(found) > 25


async def test_library_lists_what_is_there_and_counts_nothing_else(
    app: Quart, resources: WebContext, cast: Cast
) -> None:
    for audience in AUDIENCES:
        await make_ready(resources, cast.editor, audience, title=f"Heron {audience}", tags="birds")
    everything = set(AUDIENCES)
    expected = {
        "nobody": {"public"},
        "viewer": {"public", "for members"},
        "viewer's token": {"public", "for members"},
        "another editor": {"public", "for members"},
        "its editor": everything,
        "admin": everything,
        "owner": everything,
    }
    for name in PEOPLE:
        sender, _ = cast.senders[name]
        for query in ("", "?sort=oldest", "?sort=title", "?tag=birds", "?status=ready"):
            page = await text_of(await sender.get(f"/{query}"))
            assert listed(page) == expected[name], (name, query)
            count = len(expected[name])
            assert ("1 video" if count == 1 else f"{count} videos") in page
    # Searched rows are written by `save`.
    for video in await Video.all():
        await video.save(update_fields=["title"])
    for name in PEOPLE:
        page = await text_of(await cast.senders[name][0].get("/?q=heron"))
        assert listed(page) == expected[name], name


def listed(page: str) -> set[str]:
    """The audiences of the videos that a page of the library shows."""
    return {it for it in AUDIENCES if re.search(rf">\s*Heron {it}\s*<", page)}


async def test_own_videos_are_listed_whatever_their_audience(
    app: Quart, resources: WebContext, cast: Cast
) -> None:
    for audience in AUDIENCES:
        await make_ready(resources, cast.editor, audience, title=f"Heron {audience}")
    own = await text_of(await cast.senders["its editor"][0].get("/videos"))
    assert listed(own) == set(AUDIENCES)
    for name in ("admin", "another editor"):
        assert listed(await text_of(await cast.senders[name][0].get("/videos"))) == set()
    # Everyone's are for who may change them.
    for name, seen in (("admin", set(AUDIENCES)), ("another editor", set())):
        asked = await cast.senders[name][0].get("/videos?whose=all")
        assert listed(await text_of(asked)) == seen, name
    for name, status in (("viewer", 403), ("nobody", 303)):
        assert (await cast.senders[name][0].get("/videos")).status_code == status, name


async def test_progress_of_cards_is_told_to_the_audience_alone(
    app: Quart, resources: WebContext, cast: Cast
) -> None:
    videos = [
        await make_ready(resources, cast.editor, audience, title=f"Heron {audience}")
        for audience in AUDIENCES
    ]
    query = "&".join(f"id={video.id}" for video in videos)
    for name in PEOPLE:
        page = await text_of(await cast.senders[name][0].get(f"/library/progress?{query}"))
        assert listed(page) == {it for it in AUDIENCES if cast.may_see(name, it)}, name
    for name in ("admin", "its editor", "another editor"):
        page = await text_of(await cast.senders[name][0].get(f"/videos/progress?{query}"))
        assert listed(page) == {it for it in AUDIENCES if cast.may_see(name, it)}, name


@pytest.mark.parametrize("audience", AUDIENCES)
async def test_oembed_tells_of_a_video_to_its_audience_alone(
    app: Quart, resources: WebContext, cast: Cast, audience: str
) -> None:
    video = await make_ready(resources, cast.editor, audience)
    for kind in ("videos", "embed"):
        address = f"/oembed?url={resources.config.public_url}/{kind}/{video.id}"
        for name in PEOPLE:
            response = await cast.senders[name][0].get(address)
            is_told = cast.may_see(name, audience)
            assert response.status_code == (200 if is_told else 404), name


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
    missing = await sender.ask("PUT", address, json={})
    await problem(missing, 428, "precondition_required")


@pytest.mark.parametrize(
    ("changes", "pointer", "remedy"),
    [
        ({"visibility": "hidden"}, "/visibility", "Choose 'public', 'unlisted' or 'private'."),
        ({"visibility": None}, "/visibility", "Choose"),
        ({"signedInOnly": True}, "/signedInOnly", "Choose private"),
        ({"signedInOnly": 1}, "/signedInOnly", "Give true or false."),
        ({"embedOrigins": "https://a.example"}, "/embedOrigins", "Give an array."),
        ({"embedOrigins": ["https://a.example/b"]}, "/embedOrigins/0", "without a path"),
        ({"embedOrigins": ["https://*.com"]}, "/embedOrigins/0", "https://*.example.org"),
        ({"embedOrigins": ["https://a.example", "*"]}, "/embedOrigins/1", "Give a site like"),
        ({"embedOrigins": ["https://a.example; x"]}, "/embedOrigins/0", "Give a site like"),
        ({"embedOrigins": ["https://A.example"]}, "/embedOrigins/0", "small letters"),
        ({"embedOrigins": ["javascript:alert(1)"]}, "/embedOrigins/0", "Give a site like"),
        ({"embedOrigins": ["https://u:p@a.example"]}, "/embedOrigins/0", "Give a site like"),
        ({"embedOrigins": [f"https://{it}.example" for it in range(21)]}, "/embedOrigins", "20"),
    ],
)
async def test_access_at_fault_is_refused_with_the_remedy(
    app: Quart, resources: WebContext, cast: Cast, changes: Any, pointer: str, remedy: str
) -> None:
    video, sender = await make_ready(resources, cast.editor), cast.senders["its editor"][0]
    body = await problem(await put_access(sender, video, **changes), 422, "validation_failed")
    [fault] = body["errors"]
    assert fault["pointer"] == pointer
    assert remedy in fault["message"]
    assert (await Video.get(id=video.id)).visibility is Visibility.PRIVATE


async def test_made_private_is_private_from_the_next_request_on(
    app: Quart, resources: WebContext, cast: Cast
) -> None:
    video = await make_ready(resources, cast.editor, "public")
    sender, nobody = cast.senders["its editor"][0], Sender(app)
    paths = [f"/videos/{video.id}", f"/videos/{video.id}/status", f"/embed/{video.id}", "/"]
    # Often enough for their answers to be shared.
    for _ in range(3):
        for path in paths:
            assert str(video.id) in await text_of(await nobody.get(path))
    await answered(await put_access(sender, video, visibility="private"))
    for path in paths:
        text = await text_of(await nobody.get(path))
        assert str(video.id) not in text.replace(f"/sign-in?next={path}", ""), path
    await answered(await put_access(sender, video, visibility="public"))
    for path in paths:
        assert str(video.id) in await text_of(await nobody.get(path)), path


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
    assert "frame-ancestors 'none'" in page.headers["Content-Security-Policy"]
    # What the database has, however it came there, leaves the header as it should be.
    good = "https://good.example"
    for text in (
        *("https://a.example; script-src *", "https://a.example\r\nSet-Cookie: evil=1", "*", ""),
        *("'unsafe-inline'", "data:", "https:", "https://a.example *", "https://\u202ea.example"),
    ):
        await Video.filter(id=video.id).update(embed_origins=[text, good])
        assert await ancestors() == f"'self' {good}", text


@pytest.mark.parametrize(
    "query",
    [
        "visibility=hidden",
        "visibility=PRIVATE",
        "visibility=private%00",
        "visibility=public&visibility=private",
        "visiblity=private",
        "visibility=private&signedInOnly=true",
    ],
)
async def test_visibility_that_is_none_publishes_nothing(
    app: Quart, cast: Cast, query: str
) -> None:
    """Nobody gets public who asks for less."""
    publisher = program(app, await token_of(cast.editor))
    answer = await publisher.post(f"/api/videos?{query}", json=metadata("uploads/none.mp4"))
    await problem(answer, 422, "validation_failed")
    assert not await Video.all().exists()


async def test_metrics_and_lists_for_machines_name_nothing_private(
    app: Quart, resources: WebContext, cast: Cast
) -> None:
    video = await make_ready(resources, cast.editor, title="Zanzibar ledger", tags="axolotl")
    for path in ("/sitemap.xml", "/robots.txt", "/api/openapi.json", "/readyz", "/"):
        text = await text_of(await cast.senders["nobody"][0].get(path))
        assert not [it for it in ("Zanzibar", "axolotl", str(video.id)) if it in text], path
