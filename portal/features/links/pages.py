"""Playback links in the workshop of a video: a form to make one, and a list to revoke them."""

from uuid import UUID

from quart import Blueprint, request
from quart.typing import ResponseReturnValue

from portal.database.models import Video, VideoStatus
from portal.errors import TooManyPlaybackLinks
from portal.features.workshop.pages import redirect_to_panel, render_workshop
from portal.http.addresses import link_addresses
from portal.http.auth import Policy, may_edit, policy, principal
from portal.http.languages import gettext
from portal.http.videos import read_video
from portal.locale.messages import Message
from portal.text import whole_number
from portal.videos import playback_links

blueprint = Blueprint("links", __name__)

# Lifetimes of playback links, by seconds.
LIVES = {
    3600: Message("1 hour"),
    24 * 3600: Message("1 day"),
    7 * 24 * 3600: Message("7 days"),
    30 * 24 * 3600: Message("30 days"),
    365 * 24 * 3600: Message("1 year"),
}
# Playback links on the page; the API lists all.
MAX_SHOWN_LINKS = 20


@blueprint.post("/videos/<video_id>/links")
@policy(Policy.EDIT)
async def make_link(video_id: str) -> ResponseReturnValue:
    """Create a playback link and show it, or show the form with its faults."""
    video = await read_video(video_id)
    fields = await request.form
    life_s = whole_number(fields.get("life", ""), max_digits=9)
    if life_s not in LIVES:
        choices = ", ".join(words for _, words in _lives())
        fault = gettext("Choose one of %(choices)s.", choices=choices)
        return await render_workshop(video, {"link_fault": fault}), 422
    try:
        link = await playback_links.make(
            video.id, life_s=life_s, by=await principal(), label=fields.get("label", "")
        )
    except TooManyPlaybackLinks as exc:
        return await render_workshop(video, {"link_fault": exc.detail}), exc.status
    return redirect_to_panel(video.id, "links", link=link.id)


@blueprint.post("/videos/<video_id>/links/<uuid:link_id>/revoke")
@policy(Policy.EDIT)
async def revoke_link(video_id: str, link_id: UUID) -> ResponseReturnValue:
    """Revoke a playback link, unless it is revoked already."""
    video = await read_video(video_id)
    await playback_links.revoke(link_id, video_id=video.id)
    return redirect_to_panel(video.id, "links")


async def read_panel(video: Video) -> dict[str, object]:
    """Return the values of the panel: `has_links` is False for people who can't share the video.

    On a portal without accounts there are no links, because everyone may watch everything.
    """
    may_share = (await principal()).is_signed_in and await may_edit(video)
    has_links = may_share and video.status is VideoStatus.READY
    links = await playback_links.list_links(video.id) if has_links else []
    shown_links = links[:MAX_SHOWN_LINKS]
    return {
        "has_links": has_links,
        "links": [(link, await link_addresses(link)) for link in shown_links],
        "more_links": len(links) - len(shown_links),
        "lives": _lives(),
        "opened_link": request.args.get("link", ""),
        "link_fault": "",
    }


def _lives() -> list[tuple[int, str]]:
    """Return the lifetimes in seconds and in words."""
    return [(life_s, gettext(words)) for life_s, words in LIVES.items()]
