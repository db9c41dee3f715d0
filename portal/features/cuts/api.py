"""JSON API of cuts: the intervals of a video's film that are kept."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http import HTTPStatus
from typing import Annotated

from pydantic import Field
from quart import Blueprint, Response, url_for
from quart_schema import document_headers, document_request, document_response, tag_blueprint

from portal.accounts.permissions import Action
from portal.database.models import Video
from portal.errors import FieldError, InvalidRequest
from portal.events.records import Shape, TranscodeFailure, Uri
from portal.features.cuts import copies
from portal.features.cuts import service as cuts
from portal.features.cuts.service import Cuts
from portal.films.versions import VersionState
from portal.http.auth import Policy, account_id, policy, principal
from portal.http.composition import web_context
from portal.http.json_bodies import json_response, named_versions, read_json, showing_present
from portal.http.schemas.base import ClosedShape, PatchHeaders, Problem, QuotaProblem
from portal.http.schemas.metadata import CreatedVideo, Title
from portal.http.schemas.validation import validated
from portal.http.server.headers import conditional_response
from portal.http.videos import read_video
from portal.transcoding.planning.kept import MAX_INTERVALS, Interval, InvalidIntervals, Kept
from portal.videos.reading import film_below

blueprint = Blueprint("api_cuts", __name__, url_prefix="/api")
tag_blueprint(blueprint, ["Videos"])

CUTS = "/videos/<id>/cuts"
Seconds = Annotated[float, Field(strict=True, allow_inf_nan=False)]


class KeptInterval(ClosedShape):
    """Part of the whole film, in seconds from its beginning."""

    start_seconds: Seconds = Field(description="Start of the interval.")
    end_seconds: Seconds = Field(description="End of the interval.")


class CutsRequest(ClosedShape):
    """Intervals of the whole film to keep."""

    keep: list[KeptInterval] | None = Field(
        max_length=MAX_INTERVALS,
        description="In order, and apart from each other. Null keeps the whole film.",
    )


class CopyRequest(ClosedShape):
    """Intervals of a whole film to keep in a new video, and its title."""

    keep: list[KeptInterval] = Field(
        max_length=MAX_INTERVALS, description="In order, and apart from each other."
    )
    title: Title


class CutsRecord(Shape):
    """Cuts of a video, always in times of the whole film."""

    keep: list[KeptInterval] | None = Field(
        description="What was saved last. Null is the whole film."
    )
    live_keep: list[KeptInterval] | None = Field(description="What viewers get now.")
    state: VersionState = Field(
        description="State of the cut that was saved last: `processing`, `failed` or `live`."
    )
    percent: float = Field(ge=0, le=100, description="Progress of the cut.")
    failure: TranscodeFailure | None = Field(
        description="Reason why the cut failed; null unless it did."
    )
    film_seconds: float | None = Field(
        description="Length of the whole film. Null until the video is ready."
    )
    film_url: Uri | None = Field(
        description="HLS master playlist of the whole film, for those who may edit the video."
    )


class CutsConflict(Problem):
    """Problem details with the recorded cuts, whose ETag the response has."""

    present: CutsRecord = Field(description="The recorded cuts.")


@blueprint.get(CUTS)
@policy(Policy.EDIT, headers=("ETag",))
@document_response(CutsRecord)
async def get_cuts(id: str) -> Response:
    """Read which intervals of a video's film are kept.

    `state` goes from processing to live or failed. Until it is live, viewers get `liveKeep`.
    """
    record, version = await _present_cuts(await read_video(id))
    return await conditional_response(record.model_dump_json(), version=version)


@blueprint.post("/videos/<id>/copies")
@policy(Policy.EDIT, headers=("Location",))
@document_headers(PatchHeaders)
@document_request(CopyRequest)
@document_response(CreatedVideo, 201)
@document_response(QuotaProblem, 409)
@document_response(CutsConflict, 412)
async def copy_video(id: str) -> Response:
    """Save intervals of a video's whole film as a new video, which is yours.

    It has the description, categories, tags and audience of the video, its captions and chapters,
    and shares the uploaded file: deleting either keeps the other whole. It is ready once its files
    are copied. With the ETag of the cuts in If-Match, nothing is saved if the video has other cuts
    or another file since then.
    """
    web = web_context()
    (await principal()).require(Action.PUBLISH)
    video = await read_video(id)
    versions = named_versions()
    requested = validated(CopyRequest, await read_json())
    intervals = [Interval(row.start_seconds, row.end_seconds) for row in requested.keep]
    async with showing_present(partial(_present_cuts, video)):
        with _naming_interval():
            copy = await copies.create(
                video.id,
                intervals,
                title=requested.title,
                expected=versions,
                owner_id=await account_id(),
                quota=web.quota,
            )
    response = json_response(CreatedVideo.model_validate(copy), HTTPStatus.CREATED)
    response.headers["Location"] = url_for("api_videos.get_video", id=copy.id)
    return response


@blueprint.put(CUTS)
@policy(Policy.EDIT, headers=("ETag",))
@document_headers(PatchHeaders)
@document_request(CutsRequest)
@document_response(CutsRecord, 202)
@document_response(CutsRecord, 200)
@document_response(QuotaProblem, 409)
@document_response(CutsConflict, 412)
async def put_cuts(id: str) -> Response:
    """Cut a ready video to intervals of its film, or show the whole film again.

    Only the segments at cuts are encoded, and the uploaded file stays. The response is 202 while
    the cut is made, and 200 if it is live at once, as the whole film is. Until then viewers get
    what they got before. If the cut fails, that stays. With the ETag in If-Match, nothing changes
    if someone else has saved other cuts since then.
    """
    web = web_context()
    video = await read_video(id)
    versions = named_versions()
    keep = validated(CutsRequest, await read_json()).keep
    intervals = None
    if keep is not None:
        intervals = [Interval(row.start_seconds, row.end_seconds) for row in keep]
    async with showing_present(partial(_present_cuts, video)):
        with _naming_interval():
            saved = await cuts.save(
                video.id, intervals, hooks=web.hooks, expected=versions, quota=web.quota
            )
    is_processing = saved.state is VersionState.PROCESSING
    status = HTTPStatus.ACCEPTED if is_processing else HTTPStatus.OK
    return json_response(_cuts_record(video, saved), status, etag=saved.version)


@contextmanager
def _naming_interval() -> Iterator[None]:
    """Raise `InvalidRequest` with the place of intervals that can't be kept."""
    try:
        yield
    except InvalidIntervals as exc:
        pointer = "/keep" if exc.number is None else f"/keep/{exc.number}"
        raise InvalidRequest([FieldError(pointer, exc.message)]) from exc


async def _present_cuts(video: Video) -> tuple[CutsRecord, str]:
    """Return the recorded cuts of a video, and their version."""
    present = await cuts.read(video.id)
    return _cuts_record(video, present), present.version


def _cuts_record(video: Video, recorded: Cuts) -> CutsRecord:
    base = web_context().config.public_url
    film_attempt = recorded.film_attempt
    return CutsRecord(
        keep=_kept_intervals(recorded.keep),
        live_keep=_kept_intervals(recorded.live_keep),
        state=recorded.state,
        percent=round(recorded.percent, 1),
        failure=recorded.failure,
        film_seconds=recorded.film_s,
        film_url=None if film_attempt is None else film_below(base, video.id, film_attempt),
    )


def _kept_intervals(keep: Kept | None) -> list[KeptInterval] | None:
    if keep is None:
        return None
    return [
        KeptInterval(start_seconds=start_s, end_seconds=end_s) for start_s, end_s in keep.intervals
    ]
