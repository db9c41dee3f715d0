"""Playable videos, with or without files in storage, and senders of each kind."""

import re
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID, uuid4

from api_client import run_sql
from guarded_routes import Route, caption_id, routes
from page_rows import READY
from quart import Quart, Response
from signed_in import (
    ADDRESS,
    OWN_PAGE,
    Sender,
    browser,
    make_account,
    make_video,
    program,
    session_of,
    text_of,
    token_of,
)

from portal.accounts import groups, guests
from portal.accounts.directory import find_by_names
from portal.accounts.permissions import ANYONE, Principal
from portal.config import Config
from portal.database.account_models import Account, Guest, Role, Scope
from portal.database.models import Approval, Caption, Rendition, RenditionState, Video, Visibility
from portal.http.auth import SEEN, VIDEO_IDS
from portal.http.composition import WebContext
from portal.http.cookies import GUESTS
from portal.transcoding.packaging.master import Kind

LIFE = {"expiresInSeconds": 3600}
PLAYLIST_TYPE = "application/vnd.apple.mpegurl"
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
PENDING = "pending"
# Visibility, whether it is for everyone signed in, and the account or group it is shared with.
AUDIENCES = {
    "public": (Visibility.PUBLIC, False, ""),
    "unlisted": (Visibility.UNLISTED, False, ""),
    "private": (Visibility.PRIVATE, False, ""),
    "for members": (Visibility.PRIVATE, True, ""),
    "for a group": (Visibility.PRIVATE, False, "Choir"),
    "for one person": (Visibility.PRIVATE, False, "paul@example.org"),
    "for a guest": (Visibility.PRIVATE, False, "gina@example.org"),
    # The owner has chosen a public video, shared with a group; it still waits for approval.
    PENDING: (Visibility.PUBLIC, False, "Choir"),
    "with a page": (Visibility.PRIVATE, False, ""),
    "with a password": (Visibility.PRIVATE, False, ""),
}
# Audiences that nothing but visibility and shares tells apart.
PLAIN_AUDIENCES = {name: AUDIENCES[name] for name in list(AUDIENCES)[:-2]}
# Routes of a public page, which everyone may ask for.
PAGE_ROUTES = (
    "/videos/<video_id>",
    "/videos/<video_id>/",
    "/videos/<uuid:video_id>/poster.jpg",
    "/embed/<video_id>",
    "/embed/<video_id>/stage",
)
# Audiences that include each of these people, beside those that include everyone.
INCLUDED_IN = {
    "nobody": (),
    "viewer": ("for members",),
    "viewer's token": ("for members",),
    "another editor": ("for members", PENDING),
    "contributor": ("for members",),
    "choir member": ("for members", "for a group"),
    "choir member's token": ("for members", "for a group"),
    "named person": ("for members", "for one person"),
    "guest": ("for a guest",),
}
EDITORS = ("its editor", "admin", "owner")
PEOPLE = (*INCLUDED_IN, *EDITORS)
# Ids in responses; no two responses share them.
UNLIKE = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]{22}|[0-9a-f]{32}|\d{15}-1(?=/|%2F)")


@dataclass(frozen=True)
class Cast:
    """Senders by name, the account of the editor who publishes, and the editor's videos."""

    senders: dict[str, tuple[Sender, Principal]]
    editor: Account
    context: WebContext

    async def make_ready(self, audience: str = "private", **columns: Any) -> Video:
        """Create a ready video of the editor with its files in storage."""
        return await make_ready(self.context, self.editor, audience, **columns)

    def may_see(self, name: str, audience: str) -> bool:
        """Return whether the documentation lets this sender see videos of this audience."""
        everyone = audience in ("public", "unlisted")
        return everyone or name in EDITORS or audience in INCLUDED_IN[name]


async def make_cast(app: Quart) -> Cast:
    """Create an account and a sender for each role, and a program."""
    accounts = {
        "owner": await make_account("olga"),
        "viewer": await make_account("vera", Role.VIEWER),
        "choir member": await make_account("chloe", Role.VIEWER),
        "named person": await make_account("paul", Role.VIEWER),
        "another editor": await make_account("eve", Role.EDITOR),
        "contributor": await make_account("cora", Role.CONTRIBUTOR),
        "its editor": await make_account("ed", Role.EDITOR),
        "admin": await make_account("ada", Role.ADMIN),
    }
    choir = await groups.create("Choir")
    await groups.replace_members(choir.id, [accounts["choir member"].email], versions=None)
    senders: dict[str, tuple[Sender, Principal]] = {"nobody": (Sender(app), ANYONE)}
    for name, account in accounts.items():
        group_ids = frozenset({choir.id} if name == "choir member" else ())
        principal = Principal(account_id=account.id, role=account.role, group_ids=group_ids)
        senders[name] = (browser(app, await session_of(account)), principal)
    link = await guests.invite("gina@example.org")
    secret = await guests.confirm(link.secret, link.code, address=ADDRESS)
    sender = Sender(app, {**OWN_PAGE, "Cookie": f"{GUESTS.plain_name}={secret}"})
    senders["guest"] = (sender, Principal(group_ids=frozenset({link.id})))
    for name in ("viewer", "choir member"):
        token = await token_of(accounts[name], [Scope.READ])
        senders[f"{name}'s token"] = (program(app, token), senders[name][1])
    return Cast(senders, accounts["its editor"], app.extensions["portal"])


async def ids_named(name: str) -> list[UUID]:
    """Return the ids of the account, group or guest with this name."""
    guest = await Guest.get_or_none(email=name)
    holders = [*(await find_by_names([name])).values(), *([guest] if guest else [])]
    return [holder.id for holder in holders]


async def ready_video(owner: Account | None = None, **columns: Any) -> Video:
    """Create a video that is ready in the database, without files."""
    return await make_video(owner, **READY, **columns)


async def make_ready(
    context: WebContext, owner: Account | None = None, audience: str = "private", **columns: Any
) -> Video:
    """Create a ready video with its files in storage."""
    visibility, signed_in_only, name = AUDIENCES[audience]
    ids = await ids_named(name)
    seen_by = {
        "visibility": visibility,
        "signed_in_only": signed_in_only,
        "admitted_ids": ids,
        "has_public_page": audience == "with a page",
        "unlock_id": uuid4() if audience == "with a password" else None,
        "approval": Approval.WAITING if audience == PENDING else None,
    }
    video = await ready_video(owner, **seen_by, has_storyboard=True, **columns)
    rendition = {"kind": Kind.VIDEO, "name": "low", "position": 0, "attempt_number": 1}
    await Rendition.create(
        version_id=video.version_id, state=RenditionState.COMPLETE, width=16, height=9, **rendition
    )
    track = {"language": "en", "label": "English", "source": "upload", "text": "WEBVTT\n"}
    await Caption.create(id=caption_id(str(video.id)), video=video, **track)
    for name, body in FILES.items():
        await context.storage.put(f"hls/{video.id}/1/{name}", body, content_type="text/plain")
    key = f"hls/{video.id}/captions/{caption_id(str(video.id))}-1/playlist.m3u8"
    await context.storage.put(key, MEDIA.encode(), content_type="text/plain")
    return video


def about_videos(app: Quart) -> list[Route]:
    """Return the routes that show a video."""
    names = re.compile(rf"[:<]({'|'.join(VIDEO_IDS)})>")
    return [route for route in routes(app) if route.policy in SEEN and names.search(route.rule)]


async def told(response: Response) -> tuple[Any, ...]:
    """Return status, headers and text of a response, without the ids in them."""
    headers = {(name, UNLIKE.sub("", value)) for name, value in response.headers.items()}
    return response.status_code, headers, UNLIKE.sub("", await text_of(response))


def links_of(video: Video) -> str:
    """Return the API's path of a video's playback links."""
    return f"/api/videos/{video.id}/playback-links"


def token_in(address: str) -> str:
    """Return the token in a playback address."""
    _, prefix, token, *_ = urlsplit(address).path.split("/")
    assert prefix == "p"
    return token


async def age_links(config: Config, seconds: float) -> None:
    """Move the creation and the end of every link into the past."""
    await run_sql(
        config.database_url,
        f"UPDATE playback_links SET created_at = created_at - interval '{seconds} s',"
        f" expires_at = expires_at - interval '{seconds} s'",
    )
