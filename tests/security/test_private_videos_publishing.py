"""Attacks on what is not public yet, or is said to be so: creation, processing, frames."""

import asyncio

import pytest
from api_client import answered, metadata, problem, put
from private_videos import Cast, make_ready
from quart import Quart
from signed_in import Sender, program, token_of

from portal.database.models import Video
from portal.database.states import Visibility
from portal.web.composition import WebContext

HOSTILE_ORIGINS = (
    "https://a.example; script-src *",
    "https://a.example\r\nSet-Cookie: evil=1",
    "https://a.example\nX-Evil: 1",
    "https://a.example, https://b.example",
    "https://a.example *",
    "*",
    "none",
    "'none'",
    "'unsafe-inline'",
    "data:",
    "https:",
    "https://",
    "",
    " ",
    "é" * 40,
    "https://\u202ea.example",
    "https://a.example\x01",
    "x" * 20_000,
    "https://a.example/?;report-uri https://evil.example",
)


@pytest.fixture
async def publisher(app: Quart, cast: Cast) -> Sender:
    """An editor's program."""
    return program(app, await token_of(cast.editor))


async def uploaded(sender: Sender) -> str:
    """The key of a file that is in storage."""
    body = {"fileName": "harbour.mp4", "contentType": "video/mp4"}
    upload = await answered(await sender.post("/api/videos/presign", json=body))
    assert await put(upload["uploadUrl"], b"a file") == 200
    return str(upload["key"])


async def ancestors(sender: Sender, video: Video) -> str:
    """Which sites may frame a video's player, if the header is what it should be."""
    answer = await sender.get(f"/embed/{video.id}")
    assert answer.status_code == 200
    names = {name.lower() for name, _ in answer.headers}
    assert not names & {"set-cookie", "x-evil"}
    policy = answer.headers["Content-Security-Policy"]
    assert policy.count("script-src") == 1
    assert "report-uri" not in policy
    assert policy.isascii()
    assert policy.isprintable()
    return policy.rpartition("frame-ancestors ")[2]


async def test_hostile_sites_in_the_database_stay_out_of_the_header(
    resources: WebContext, cast: Cast
) -> None:
    """Nineteen texts in place of a site, alone, beside a good one, and all at once."""
    video, nobody = await make_ready(resources, cast.editor, "public"), cast.senders["nobody"][0]
    good = "https://good.example"
    for text in HOSTILE_ORIGINS:
        for sites, expected in (([text], "'self'"), ([text, good], f"'self' {good}")):
            await Video.filter(id=video.id).update(embed_origins=sites)
            assert await ancestors(nobody, video) == expected, text
    await Video.filter(id=video.id).update(embed_origins=[*HOSTILE_ORIGINS, good])
    assert await ancestors(nobody, video) == f"'self' {good}"


@pytest.mark.parametrize(
    "query",
    [
        "visibility=hidden",
        "visibility=",
        "visibility=PRIVATE",
        "visibility=private%20",
        "visibility=private%00",
        "visibility=private,public",
        "visibility=public&visibility=private",
        "visibility=private&visibility=private",
        "visiblity=private",
        "Visibility=private",
        "visibility[]=private",
        "visibility=private&signedInOnly=true",
        "=",
    ],
)
async def test_visibility_that_is_none_publishes_nothing(publisher: Sender, query: str) -> None:
    """Six values, two that are repeated, five names: nobody gets public who asks for less."""
    body = metadata(await uploaded(publisher))
    answer = await publisher.post(f"/api/videos?{query}", json=body)
    await problem(answer, 422, "validation_failed")
    assert await Video.all().count() == 0


async def test_creation_sent_again_changes_no_visibility(publisher: Sender) -> None:
    """Three other ones, by one and by four at once."""
    body = metadata(await uploaded(publisher))
    first = await publisher.post("/api/videos?visibility=private", json=body)
    made = await answered(first, 201)
    for query in ("?visibility=public", "?visibility=unlisted", ""):
        again = await publisher.post(f"/api/videos{query}", json=body)
        assert (await answered(again, 200))["id"] == made["id"]
        assert (await Video.get(id=made["id"])).visibility is Visibility.PRIVATE, query
    body = metadata(await uploaded(publisher))
    answers = await asyncio.gather(
        *(publisher.post("/api/videos?visibility=private", json=body) for _ in range(4))
    )
    assert sorted(it.status_code for it in answers) == [200, 200, 200, 201]
    assert await Video.filter(visibility=Visibility.PUBLIC).count() == 0
