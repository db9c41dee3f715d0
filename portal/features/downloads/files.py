"""Files of a video to save: the permission to save each, and the addresses that lead to them.

Editors of a video can save all its files. `DOWNLOADS` decides about viewers: the uploaded
file may reveal a place, which the other files don't. If the video is cut, viewers never get the
uploaded file, which has the removed parts.
"""

from collections.abc import Collection, Mapping
from http import HTTPStatus
from uuid import UUID

from quart import Blueprint, Response, redirect
from werkzeug.wrappers import Response as WerkzeugResponse

from portal.database.models import Video
from portal.errors import DownloadNotAllowed, DownloadNotFound
from portal.features.downloads import service as downloads
from portal.features.downloads.service import DownloadKind, FileState, SavedFile
from portal.films.sources import SourceChanged, check_source
from portal.http.auth import Policy, account_id, may_edit, policy
from portal.http.composition import web_context
from portal.http.playlists import PRIVATE_URL_TTL_S
from portal.http.server.headers import conditional_response
from portal.http.server.limits import Rate
from portal.http.videos import read_video
from portal.locale.messages import Message
from portal.storage.presigning import attachment

blueprint = Blueprint("downloads", __name__)

# Kinds of files that viewers may save, by the setting `DOWNLOADS`.
OFFERED: Mapping[str, Collection[DownloadKind]] = {
    "off": (),
    "original": (DownloadKind.ORIGINAL,),
    "all": tuple(DownloadKind),
}
CAPTION_TYPES = {"vtt": "text/vtt; charset=utf-8", "srt": "application/x-subrip; charset=utf-8"}


@blueprint.app_template_global()
async def offers_files(video: Video) -> bool:
    """Return whether the caller may save any file of a video."""
    return bool(await _offered_kinds(video))


def kinds_for_viewers(video: Video) -> Collection[DownloadKind]:
    """Return the kinds of files that all viewers of a video may save."""
    kinds = OFFERED[web_context().config.downloads]
    if video.keep is None:
        return kinds
    return [kind for kind in kinds if kind is not DownloadKind.ORIGINAL]


async def read_files(video: Video) -> list[SavedFile]:
    """Return the files that the caller may save. Raises `DownloadNotAllowed` if there are none."""
    kinds = await _offered_kinds(video)
    if not kinds:
        raise DownloadNotAllowed
    return [file for file in await downloads.list_files(video) if file.kind in kinds]


async def request_file(video: Video, name: str) -> SavedFile:
    """Have a file made that the caller may save; raise as `read_file`."""
    await _read_file(video, name)
    web = web_context()
    return await downloads.request_file(
        video.id, name, account_id=await account_id(), quota=web.quota
    )


@blueprint.get("/videos/<uuid:video_id>/downloads/<file>")
@policy(Policy.PLAY, rate=Rate.DOWNLOADS)
async def save(video_id: UUID, file: str) -> WerkzeugResponse | Response:
    """Return captions, or redirect to another file in storage, which a browser saves."""
    video = await read_video(str(video_id))
    saved = await _read_file(video, file)
    if saved.kind is DownloadKind.CAPTIONS:
        text = await downloads.captions_text(video.id, saved)
        content_type = CAPTION_TYPES[file.rpartition(".")[2]]
        answer = await conditional_response(
            text, content_type=content_type, cache_control="private, no-cache"
        )
        answer.headers["Content-Disposition"] = attachment(saved.file_name)
        return answer
    if saved.key is None or saved.state is not FileState.READY:
        raise DownloadNotFound(
            Message("This file is not ready. Request it from the list of files.")
        )
    web = web_context()
    if saved.kind is DownloadKind.ORIGINAL:
        try:
            await check_source(await video.current_version(), web.storage)
        except SourceChanged as exc:
            message = Message("The uploaded file was changed or removed after the upload.")
            raise DownloadNotFound(message) from exc
    else:
        await downloads.keep_file(video.id, file)
    address = await web.storage.public.presign_download(
        saved.key,
        file_name=saved.file_name,
        # The lifetime of private addresses, because the video may become private.
        ttl_s=min(web.config.playback_url_ttl_s, PRIVATE_URL_TTL_S),
    )
    response = redirect(address, HTTPStatus.FOUND)
    response.headers["Cache-Control"] = "private, no-store"
    return response


async def _offered_kinds(video: Video) -> Collection[DownloadKind]:
    """Return the kinds of files that the caller may save."""
    return OFFERED["all"] if await may_edit(video) else kinds_for_viewers(video)


async def _read_file(video: Video, name: str) -> SavedFile:
    """Return a file that the caller may save. Raises `DownloadNotFound` or `DownloadNotAllowed`."""
    kinds = await _offered_kinds(video)
    if not kinds:
        raise DownloadNotAllowed
    file = await downloads.find_file(video, name)
    if file.kind not in kinds:
        raise DownloadNotAllowed
    return file
