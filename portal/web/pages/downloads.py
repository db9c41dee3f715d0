"""Downloading the file that was uploaded, where the operator allows that."""

from quart import Blueprint, redirect
from werkzeug.wrappers import Response as WerkzeugResponse

from portal.errors import NotFound
from portal.processing.sources import SourceChanged, check_source
from portal.web.auth import Policy, policy
from portal.web.composition import web_context
from portal.web.playlists import PRIVATE_URL_TTL_S
from portal.web.videos import read_video

blueprint = Blueprint("downloads", __name__)


@blueprint.get("/videos/<video_id>/original")
@policy(Policy.WATCH)
async def original(video_id: str) -> WerkzeugResponse:
    """Redirects to the uploaded file."""
    web = web_context()
    if not web.config.downloads:
        raise NotFound
    found = await read_video(video_id)
    try:
        await check_source(found, web.storage)
    except SourceChanged as exc:
        raise NotFound("The uploaded file was changed or removed after it was sent.") from exc
    address = await web.storage.public.presign_download(
        found.storage_key,
        file_name=found.file_name,
        # Whoever may see it: it stays where it is when the video becomes private.
        ttl_s=min(web.config.playback_url_ttl_s, PRIVATE_URL_TTL_S),
    )
    response = redirect(address)
    response.headers["Cache-Control"] = "no-store"
    return response
