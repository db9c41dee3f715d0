"""JSON API of a video's files to save."""

from http import HTTPStatus

from pydantic import Field
from quart import Blueprint, Response
from quart_schema import document_response, tag_blueprint

from portal.database.models import Video
from portal.events.records import Shape, Uri
from portal.features.downloads.files import kinds_for_viewers, read_files, request_file
from portal.features.downloads.service import DownloadFacts, FileState, SavedFile
from portal.http.addresses import own_base
from portal.http.auth import Policy, policy
from portal.http.composition import web_context
from portal.http.json_bodies import json_response
from portal.http.schemas.base import Problem, QuotaProblem
from portal.http.server.limits import Rate
from portal.http.videos import read_video

blueprint = Blueprint("api_downloads", __name__, url_prefix="/api")
tag_blueprint(blueprint, ["Videos"])


class DownloadRecord(DownloadFacts):
    """File of a video to save."""

    url: Uri | None = Field(description="Address that leads to the file; null until it is ready.")


class DownloadList(Shape):
    """Files of a video to save."""

    downloads: list[DownloadRecord] = Field(description="The files.")


@blueprint.get("/videos/<id>/downloads")
@policy(Policy.WATCH)
@document_response(DownloadList)
@document_response(Problem, 403)
async def list_downloads(id: str) -> Response:
    """List the files of a video that you can save.

    These are all files if you may edit the video. The portal's operator decides which ones viewers
    can save; if there are none, the answer is 403 `download_not_allowed`. Viewers of a cut video
    never get its uploaded file.
    """
    video = await read_video(id)
    files = await read_files(video)
    base = await own_base(video)
    records = [_record_of(file, video, base) for file in files]
    return json_response(DownloadList(downloads=records), cache_control="no-cache")


@blueprint.post("/videos/<id>/downloads/<file>")
@policy(Policy.WATCH, rate=Rate.DOWNLOADS)
@document_response(DownloadRecord)
@document_response(DownloadRecord, 202)
@document_response(Problem, 403)
@document_response(QuotaProblem, 409)
@document_response(Problem, 503)
async def request_download(id: str, file: str) -> Response:
    """Request a file to save by its name.

    Returns 202 while the file is being prepared: list the files until its `state` is `ready`.
    Returns 200 if it is ready. It is kept for a day after the last request. A failed file is
    prepared again. Returns 503 `downloads_busy` while too many files wait, of all or of yours.
    Until it is removed, the file counts in the storage quota of the account that requests it.
    """
    video = await read_video(id)
    requested = await request_file(video, file)
    is_ready = requested.state is FileState.READY
    record = _record_of(requested, video, await own_base(video))
    return json_response(record, HTTPStatus.OK if is_ready else HTTPStatus.ACCEPTED)


def _record_of(file: SavedFile, video: Video, base: str) -> DownloadRecord:
    """Return the record of a file, with an address below the caller's base."""
    if file.kind not in kinds_for_viewers(video):
        # A playback token in the base grants only what viewers may save. Editors send credentials.
        base = web_context().config.public_url
    url = f"{base}/videos/{video.id}/downloads/{file.name}"
    return DownloadRecord(**dict(file), url=url if file.state is FileState.READY else None)
