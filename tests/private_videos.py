"""Ready videos with files in storage, seen by one audience or another, and who asks for them."""

import re
from dataclasses import dataclass
from typing import Any

from guarded_routes import Route, routes
from quart import Quart, Response
from signed_in import (
    Sender,
    browser,
    make_account,
    make_video,
    program,
    session_of,
    text_of,
    token_of,
)

from portal.accounts.permissions import ANYONE, Principal
from portal.database.account_models import Account
from portal.database.models import Rendition, Video
from portal.database.states import RenditionState, Role, Scope, VideoStatus, Visibility
from portal.transcoding.packaging.master import Kind
from portal.web.auth import SEEN, VIDEO_IDS
from portal.web.composition import WebContext

MASTER = "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1\nlow/playlist.m3u8\n"
MEDIA = """#EXTM3U
#EXT-X-TARGETDURATION:4
#EXT-X-MAP:URI="init.mp4"
#EXTINF:4.0,
00000.m4s
#EXT-X-ENDLIST
"""
STORYBOARD = """WEBVTT

00:00:00.000 --> 00:00:01.000
storyboard-000.jpg#xywh=0,0,192,108
"""
SEGMENT = b"the bytes of a segment"
FILES = {
    "master.m3u8": MASTER.encode(),
    "low/playlist.m3u8": MEDIA.encode(),
    "low/init.mp4": SEGMENT,
    "low/00000.m4s": SEGMENT,
    "storyboard.vtt": STORYBOARD.encode(),
    "storyboard-000.jpg": SEGMENT,
    "poster.jpg": SEGMENT,
}
AUDIENCES = {
    "public": (Visibility.PUBLIC, False),
    "unlisted": (Visibility.UNLISTED, False),
    "private": (Visibility.PRIVATE, False),
    "for members": (Visibility.PRIVATE, True),
}
# Of answers, what no two share.
UNLIKE = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]{22}|[0-9a-f]{32}")
PEOPLE = ("nobody", "viewer", "another editor", "its editor", "admin", "owner", "viewer's token")


@dataclass(frozen=True)
class Cast:
    """Who asks, by name, and the account of the editor who publishes."""

    senders: dict[str, tuple[Sender, Principal]]
    editor: Account

    def may_see(self, name: str, audience: str) -> bool:
        """By the words of the documentation, not by the code."""
        everyone = audience in ("public", "unlisted")
        always = name in ("its editor", "admin", "owner")
        return everyone or always or (audience == "for members" and name != "nobody")


async def make_cast(app: Quart) -> Cast:
    """People of each kind, and a program."""
    owner, viewer = await make_account("olga"), await make_account("vera", Role.VIEWER)
    editor = await make_account("ed", Role.EDITOR)
    accounts = {
        "viewer": viewer,
        "another editor": await make_account("eve", Role.EDITOR),
        "its editor": editor,
        "admin": await make_account("ada", Role.ADMIN),
        "owner": owner,
    }
    senders: dict[str, tuple[Sender, Principal]] = {"nobody": (Sender(app), ANYONE)}
    for name, account in accounts.items():
        who = Principal(account_id=account.id, role=account.role)
        senders[name] = browser(app, await session_of(account)), who
    token = program(app, await token_of(viewer, [Scope.READ]))
    senders["viewer's token"] = token, Principal(account_id=viewer.id, role=Role.VIEWER)
    return Cast(senders, editor)


async def make_ready(
    context: WebContext, owner: Account | None, audience: str = "private", **columns: Any
) -> Video:
    """A video of an account that can be played, with its files in storage."""
    video = await make_video(owner)
    visibility, signed_in_only = AUDIENCES[audience]
    changed = {
        "status": VideoStatus.READY,
        "published_attempt": 1,
        "visibility": visibility,
        "signed_in_only": signed_in_only,
        "has_poster": True,
        "has_storyboard": True,
        **columns,
    }
    await video.update_from_dict(changed).save(update_fields=list(changed))
    made = {"kind": Kind.VIDEO, "name": "low", "position": 0, "attempt_number": 1}
    await Rendition.create(video=video, state=RenditionState.COMPLETE, width=16, height=9, **made)
    for name, body in FILES.items():
        await context.storage.put(f"hls/{video.id}/1/{name}", body, content_type="text/plain")
    return video


def about_videos(app: Quart) -> list[Route]:
    """The routes by which a video is seen."""
    names = re.compile(rf"[:<]({'|'.join(VIDEO_IDS)})>")
    return [it for it in routes(app) if it.policy in SEEN and names.search(it.rule)]


async def told(response: Response) -> tuple[Any, ...]:
    """All that an answer tells, without the ids in it."""
    headers = {(name, UNLIKE.sub("", value)) for name, value in response.headers.items()}
    return response.status_code, headers, UNLIKE.sub("", await text_of(response))
