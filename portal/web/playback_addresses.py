"""Absolute addresses of streams and players: plain ones, and ones with leave to watch.

Those have a token in their path: `/p/<token>/…`. Whatever a playlist names by a relative address
has it, too, so every player that knows nothing of the portal sends it. They are the portal's own,
also where `PLAYBACK_BASE_URL` sends other players to a CDN.
"""

from dataclasses import dataclass
from uuid import UUID

from portal.config import Config
from portal.storage.objects import output_prefix
from portal.transcoding.packaging.master import MASTER_NAME
from portal.videos.playback_links import PlaybackLink
from portal.web.composition import web_context


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaybackAddresses:
    """Absolute addresses of a stream, empty while there is none, and of a player to be framed."""

    playback_url: str
    embed_url: str


async def link_addresses(link: PlaybackLink) -> PlaybackAddresses:
    """The addresses of a playback link."""
    web = web_context()
    token = await link.token(web.signing_keys)
    return signed_addresses(web.config, link.video_id, link.published_attempt, token=token)


def signed_addresses(
    config: Config, video_id: UUID, published_attempt: int | None, *, token: str
) -> PlaybackAddresses:
    """The addresses of a video that this token opens."""
    base = f"{config.public_url}/p/{token}"
    return PlaybackAddresses(
        playback_url=_stream(base, video_id, published_attempt),
        embed_url=f"{base}/embed/{video_id}",
    )


def master_url(
    config: Config, video_id: UUID | str, published_attempt: int | None, *, is_private: bool
) -> str:
    """Absolute address of the master playlist; empty while there is no published attempt."""
    is_plain = bool(config.playback_base_url) and not is_private
    base = config.playback_base_url if is_plain else config.public_url
    return _stream(base, video_id, published_attempt)


def _stream(base: str, video_id: UUID | str, published_attempt: int | None) -> str:
    if published_attempt is None:
        return ""
    return f"{base}/{output_prefix(video_id, published_attempt)}{MASTER_NAME}"
