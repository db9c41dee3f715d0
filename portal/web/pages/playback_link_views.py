"""What the templates see of a video's playback links."""

from dataclasses import dataclass

from quart import url_for

from portal.database.models import Video
from portal.database.states import VideoStatus
from portal.text import shown
from portal.videos import playback_links
from portal.videos.playback_links import PlaybackLink
from portal.web.auth import may_edit, principal
from portal.web.pages.formatting import Moment, moment
from portal.web.playback_addresses import link_addresses

# How long a link may be made to work, by seconds, in words.
LIVES = {
    3600: "1 hour",
    24 * 3600: "1 day",
    7 * 24 * 3600: "7 days",
    30 * 24 * 3600: "30 days",
    365 * 24 * 3600: "1 year",
}
LIFE_AT_FIRST = 7 * 24 * 3600
# A page lists so many; the API lists all.
MAX_SHOWN = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkRow:
    """A link that works."""

    id: str
    playback_url: str
    embed_url: str
    expires: Moment
    made_by: str
    is_open: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class LinksView:
    """A video's newest links, how many more there are, and what can be chosen for another one.

    `fault` is why none was made.
    """

    video_id: str
    url: str
    rows: list[LinkRow]
    more: int
    lives: dict[int, str]
    life_at_first: int
    fault: str


async def links_view(video: Video, *, opened: str = "", fault: str = "") -> LinksView | None:
    """The links of a ready video, for who is signed in and may edit it; None for others.

    `opened` is the id of the link whose addresses are shown at once. On a portal without accounts
    everyone may watch everything.
    """
    is_for_them = (await principal()).is_signed_in and await may_edit(video)
    if video.status is not VideoStatus.READY or not is_for_them:
        return None
    found = await playback_links.list_links(video.id)
    return LinksView(
        video_id=str(video.id),
        url=url_for("playback_links.make", video_id=video.id),
        rows=[await _row(link, opened) for link in found[:MAX_SHOWN]],
        more=len(found[MAX_SHOWN:]),
        lives=LIVES,
        life_at_first=LIFE_AT_FIRST,
        fault=fault,
    )


async def _row(link: PlaybackLink, opened: str) -> LinkRow:
    addresses = await link_addresses(link)
    return LinkRow(
        id=str(link.id),
        playback_url=addresses.playback_url,
        embed_url=addresses.embed_url,
        expires=moment(link.expires_at),
        made_by=shown(link.made_by or ""),
        is_open=str(link.id) == opened,
    )
