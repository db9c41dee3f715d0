"""Addresses of a video, its own and those that contain the permission to watch it, and of pages."""

from datetime import UTC, datetime
from uuid import UUID

from quart import url_for

from portal.accounts.permissions import audience_of, is_private_in
from portal.database.connection import Row
from portal.database.models import Video
from portal.http.auth import account_id
from portal.http.composition import WebContext, web_context
from portal.videos.playback_links import PlaybackLink, PlaybackToken, account_token_expiry
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


async def token_base(own_id: UUID, video_id: UUID, *, web: WebContext) -> str:
    """Return the address below which this account watches a video, with a playback token in it."""
    expires_at = account_token_expiry(datetime.now(UTC), OWN_ADDRESS_LIFE_S)
    token = PlaybackToken(video_id, expires_at, account_id=own_id)
    return f"{web.config.public_url}/p/{await web.signing_keys.sign(token)}"


async def own_base(video: Video) -> str:
    """Return the address below which the sender of the current request watches a video.

    For a private video and a sender with an account, it has a playback token in it, which lasts for
    `OWN_ADDRESS_LIFE_S` at most.
    """
    web = web_context()
    own_id = await account_id() if audience_of(video).is_private else None
    return web.config.public_url if own_id is None else await token_base(own_id, video.id, web=web)


async def playback_url(record: Row) -> str:
    """Return the address to play a video from.

    On a portal with accounts the address of a private video contains permission to watch it.
    """
    own_id = await account_id() if is_private_in(record) else None
    return await playback_url_for(own_id, record, web=web_context())


async def playback_url_for(own_id: UUID | None, record: Row, *, web: WebContext) -> str:
    """Return the address of `playback_url` for an account, outside of its requests.

    `own_id` is None for readers without an account, whose address contains no permission. The
    address is empty while the video has no stream.
    """
    video_id = UUID(str(record["id"]))
    base = web.config.public_url
    if own_id is not None and is_private_in(record):
        base = await token_base(own_id, video_id, web=web)
    return stream_below(base, video_id, record["published_attempt"])
