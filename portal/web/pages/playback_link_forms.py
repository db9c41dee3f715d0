"""The forms for playback links in a video's workshop; they work without scripts."""

from uuid import UUID

from quart import Blueprint, redirect, request, url_for
from quart.typing import ResponseReturnValue
from werkzeug.wrappers import Response as WerkzeugResponse

from portal.database.models import Video
from portal.errors import FieldError, InvalidRequest, PortalError, TooManyPlaybackLinks
from portal.text import whole_number
from portal.videos import playback_links
from portal.web.auth import Policy, policy, principal
from portal.web.pages.playback_link_views import LIVES, links_view
from portal.web.pages.workshop import workshop_page
from portal.web.videos import read_video

blueprint = Blueprint("playback_links", __name__)


@blueprint.post("/videos/<video_id>/links")
@policy(Policy.EDIT)
async def make(video_id: str) -> ResponseReturnValue:
    """Make a link, and show it on the page; or the page, which says at the form why not."""
    found = await read_video(video_id)
    life_s = whole_number((await request.form).get("life", ""), max_digits=9)
    if life_s is None or life_s not in LIVES:
        words = f"Choose one of {', '.join(LIVES.values())}."
        return await _again(found, InvalidRequest([FieldError("/life", words)]), words)
    try:
        link = await playback_links.make(found.id, life_s=life_s, by=await principal())
    except TooManyPlaybackLinks as exc:
        return await _again(found, exc, exc.detail)
    address = url_for("workshop.workshop", video_id=found.id, link=link.id, _anchor="links")
    return redirect(address, 303)


@blueprint.post("/videos/<video_id>/links/<uuid:link_id>/revoke")
@policy(Policy.EDIT)
async def revoke(video_id: str, link_id: UUID) -> WerkzeugResponse:
    """Make a link void, and show the page. One that is void already is no fault."""
    found = await read_video(video_id)
    await playback_links.revoke(link_id, video_id=found.id)
    return redirect(url_for("workshop.workshop", video_id=found.id, _anchor="links"), 303)


async def _again(found: Video, refusal: PortalError, words: str) -> ResponseReturnValue:
    """The page with the refusal at the form. Raises it where there is no form."""
    links = await links_view(found, fault=words)
    if links is None:
        raise refusal
    return await workshop_page(found, links=links), refusal.status
