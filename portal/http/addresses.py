"""Addresses of a video, its own and those that contain the permission to watch it, and of pages."""

from dataclasses import replace
from datetime import UTC, datetime
from uuid import UUID

from quart import url_for

from portal.accounts.permissions import ANYONE, Audience, audience_in, audience_of, is_private_in
from portal.database.connection import Row
from portal.database.models import Video
from portal.http.auth import principal, unlocked_ids
from portal.http.composition import WebContext, web_context
from portal.videos.playback_links import (
    PlaybackLink,
    PlaybackToken,
    account_token_expiry,
    unlock_digest,
)
from portal.videos.poster import poster_revision
from portal.videos.reading import stream_below

# Lifetime of addresses with an account's permission, which is checked on each request.
OWN_ADDRESS_LIFE_S = 12 * 3600


def public_url(path: str) -> str:
    """Return the absolute, public address of a path."""
    return f"{web_context().config.public_url}{path}"


def own_path(path: str) -> str:
    """Return a path to redirect to, if it is safe, or the path of the library."""
    is_plain = path.isascii() and path.isprintable()
    # Browsers read a backslash as a slash, and two slashes as another host.
    is_own = path.startswith("/") and not path.startswith("//") and "\\" not in path
    return path if is_own and is_plain else url_for("library.index")


def poster_url(video: Video) -> str | None:
    """Return the address of a video's poster, if it has one."""
    if video.published_attempt is None or not video.has_poster:
        return None
    return url_for("playback.poster", video_id=video.id, v=poster_revision(video))


async def link_addresses(link: PlaybackLink) -> dict[str, str]:
    """Return the addresses of a playback link: a video's stream and its embeddable player.

    The address of the stream is empty while there is none.
    """
    web = web_context()
    base = f"{web.config.public_url}/p/{await link.token(web.signing_keys)}"
    stream = stream_below(base, link.video_id, link.published_attempt)
    return {"playback_url": stream, "embed_url": f"{base}/embed/{link.video_id}"}


async def _token_base(token: PlaybackToken, web: WebContext) -> str:
    return f"{web.config.public_url}/p/{await web.signing_keys.sign(token)}"


def _own_expiry() -> datetime:
    return account_token_expiry(datetime.now(UTC), OWN_ADDRESS_LIFE_S)


async def own_base(video: Video) -> str:
    """Return the address below which the sender of the current request watches a video.

    For a private video and a sender with an account or the password, it has a playback token in it,
    which lasts for `OWN_ADDRESS_LIFE_S` at most. The password of a series puts none in it, because
    the token would outlast the video's place in the series.
    """
    return await _base_for_sender(video.id, audience_of(video))


async def _base_for_sender(video_id: UUID, audience: Audience) -> str:
    web = web_context()
    sender = await principal() if audience.is_private else ANYONE
    if audience.is_locked and audience.unlock_id in unlocked_ids():
        return await unlocked_base(video_id, audience.unlock_id)
    if sender.account_id is None or not replace(sender, unlocked_ids=frozenset()).may_see(audience):
        return web.config.public_url
    token = PlaybackToken(video_id, _own_expiry(), account_id=sender.account_id)
    return await _token_base(token, web)


async def unlocked_base(video_id: UUID, unlock_id: UUID) -> str:
    """Return the address below which somebody who knows the video's password watches it."""
    token = PlaybackToken(video_id, _own_expiry(), unlock_digest=unlock_digest(unlock_id))
    return await _token_base(token, web_context())


async def playback_url(record: Row) -> str:
    """Return the address to play a video from.

    On a portal with accounts the address of a private video contains permission to watch it.
    """
    video_id = UUID(str(record["id"]))
    base = await _base_for_sender(video_id, audience_in(record))
    return stream_below(base, video_id, record["published_attempt"])


async def playback_url_for(own_id: UUID | None, record: Row, *, web: WebContext) -> str:
    """Return the address of `playback_url` for an account, outside of its requests.

    `own_id` is None for readers without an account, whose address contains no permission. The
    address is empty while the video has no stream.
    """
    video_id = UUID(str(record["id"]))
    base = web.config.public_url
    if own_id is not None and is_private_in(record):
        token = PlaybackToken(video_id, _own_expiry(), account_id=own_id)
        base = await _token_base(token, web)
    return stream_below(base, video_id, record["published_attempt"])
