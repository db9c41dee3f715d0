"""Attacks by playback addresses, `/p/<token>/…`, on other videos, routes and people."""

from dataclasses import dataclass
from urllib.parse import urlsplit

import pytest
from api_client import answered
from guarded_routes import routes
from private_videos import SEGMENT, Cast, make_ready
from quart import Quart, Response
from signed_in import Sender, text_of

from portal.accounts import people
from portal.accounts.permissions import EVERYONES
from portal.database.models import Video
from portal.database.states import Role
from portal.videos import playback_links
from portal.web.access import Policy
from portal.web.composition import WebContext

# What gets something of a video, below `/p/<token>`.
OPENED = (
    "/hls/{}/1/master.m3u8",
    "/hls/{}/1/low/playlist.m3u8",
    "/hls/{}/1/low/00000.m4s",
    "/videos/{}/poster.jpg",
    "/videos/{}/storyboard.vtt",
    "/embed/{}",
    "/embed/{}/stage",
)
pytestmark = pytest.mark.shared_app(downloads=True)


@dataclass(frozen=True)
class Leave:
    """A video and a link to it."""

    video: Video
    link: playback_links.PlaybackLink
    token: str

    def paths(self, of: Video | None = None) -> list[str]:
        """All addresses that this token opens; of another video, those that it must not."""
        return [f"/p/{self.token}{it.format((of or self.video).id)}" for it in OPENED]


@pytest.fixture
async def leave(resources: WebContext, cast: Cast) -> Leave:
    video = await make_ready(resources, cast.editor)
    link = await playback_links.make(video.id, life_s=600, by=EVERYONES)
    return Leave(video, link, await link.token(resources.signing_keys))


async def statuses(sender: Sender, paths: list[str]) -> set[int]:
    """Those of the answers, none of which is a server's fault."""
    found = {(await sender.get(path)).status_code for path in paths}
    assert max(found) < 500
    return found


async def is_refused(sender: Sender, paths: list[str]) -> bool:
    """Whether nothing is got by any of these."""
    return await statuses(sender, paths) <= {404, 410}


def changed_at_the_end(token: str) -> str:
    """The token with other characters at the end of its signature."""
    return token[:-3] + ("BBB" if token.endswith("AAA") else "AAA")


async def is_opened(sender: Sender, paths: list[str]) -> bool:
    """Whether all of these lead to something."""
    return await statuses(sender, paths) <= {200, 302}


async def test_token_opens_no_route_but_those_that_play(
    app: Quart, cast: Cast, leave: Leave
) -> None:
    """Every method of every route below a valid token, as nobody, and with the cookies of an
    owner beside it: some 200 requests.
    """
    found = routes(app)
    for name in ("nobody", "owner"):
        sender = cast.senders[name][0]
        for route in found:
            path = f"/p/{leave.token}{route.path(str(leave.video.id))}"
            answer = await sender.ask(route.method, path)
            is_played = route.policy is Policy.PLAY and route.method in ("GET", "HEAD")
            expected = {200, 302} if is_played else {404}
            assert answer.status_code in expected, (name, route)
            assert answer.headers["Referrer-Policy"] == "no-referrer", route
            assert "private" in answer.headers["Cache-Control"], route
    assert await Video.exists(id=leave.video.id)
    assert len(found) > 90


async def test_token_changes_nothing(cast: Cast, leave: Leave) -> None:
    """Four methods at all that it opens, with cookies of the owner and without."""
    for name in ("nobody", "owner"):
        for method in ("POST", "PUT", "PATCH", "DELETE"):
            for path in leave.paths():
                answer = await cast.senders[name][0].ask(method, path, json={})
                assert answer.status_code in (404, 405), (method, path)


async def test_token_of_one_video_opens_no_other(
    resources: WebContext, cast: Cast, leave: Leave
) -> None:
    """Seven addresses of three other videos, a public one among them, as three people."""
    for audience in ("private", "for members", "public"):
        other = await make_ready(resources, cast.editor, audience)
        for name in ("nobody", "viewer", "owner"):
            assert await is_refused(cast.senders[name][0], leave.paths(other)), (audience, name)


async def test_link_ends_at_once(app: Quart, resources: WebContext, leave: Leave) -> None:
    """Revoked between two segments, and by a second link beside it that goes on."""
    other = await playback_links.make(leave.video.id, life_s=600, by=EVERYONES)
    beside = Leave(leave.video, other, await other.token(resources.signing_keys))
    assert await is_opened(Sender(app), leave.paths())
    assert await playback_links.revoke(leave.link.id, video_id=leave.video.id)
    assert await is_refused(Sender(app), leave.paths())
    assert await is_opened(Sender(app), beside.paths())


async def own_address(sender: Sender, video: Video) -> list[str]:
    """The addresses below the one that someone's record of a video has."""
    record = await answered(await sender.get(f"/api/videos/{video.id}"))
    prefix = urlsplit(record["playbackUrl"]).path.partition("/hls/")[0]
    return [f"{prefix}{it.format(video.id)}" for it in OPENED]


@pytest.mark.parametrize("ended", ["lowered", "disabled", "removed"])
async def test_own_address_ends_with_the_account(
    app: Quart, cast: Cast, leave: Leave, ended: str
) -> None:
    """An admin plays an editor's video; the next request after the change gets nothing."""
    sender, who = cast.senders["admin"]
    assert who.account_id is not None
    owner = cast.senders["owner"][1]
    paths, player = await own_address(sender, leave.video), Sender(app)
    assert await is_opened(player, paths)
    if ended == "lowered":
        await people.change_role(who.account_id, Role.VIEWER, by=owner)
    elif ended == "disabled":
        await people.disable(who.account_id, by=owner)
    else:
        await people.remove(who.account_id, by=owner)
    assert await is_refused(player, paths)


async def test_refusals_below_a_token_are_all_alike(
    app: Quart, resources: WebContext, cast: Cast, leave: Leave
) -> None:
    """A void token tells no private video from an unknown one, and neither does a valid one."""
    other = await make_ready(resources, cast.editor)
    for token in (leave.token, changed_at_the_end(leave.token), "none", "a.b.c"):
        for path in OPENED:
            told = []
            for video_id in (other.id, "5d0e3b8a-2c41-4f6b-9a57-0c1d2e3f4a5b"):
                answer = await Sender(app).get(f"/p/{token}{path.format(video_id)}")
                told.append(await anatomy(answer))
            assert told[0] == told[1], (token, path)


async def anatomy(answer: Response) -> tuple[int, list[tuple[str, str]], int]:
    """Status, headers and length of an answer."""
    headers = [it for it in answer.headers if it[0] != "x-request-id"]
    text = await text_of(answer)
    assert SEGMENT.decode() not in text
    assert "#EXTM3U" not in text
    return answer.status_code, headers, len(text)
