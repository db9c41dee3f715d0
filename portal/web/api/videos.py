"""The four documented calls: categories, presigning, creating a video, reading its record.

And the list of videos: filtered, searched and sorted as the library, by cursors. `CreatedVideo` and
`RetrievedVideo` are separate on purpose: they may diverge.
"""

from collections.abc import Collection
from dataclasses import replace
from typing import Annotated, Any, ClassVar, Literal
from urllib.parse import urlencode
from uuid import UUID

from pydantic import BeforeValidator, Field
from quart import Blueprint, Response, request, url_for
from quart_schema import document_querystring, document_request, document_response, tag_blueprint

from portal.accounts.people import fetch_account_id
from portal.accounts.permissions import Audience, Principal
from portal.database.models import VideoStatus, Visibility
from portal.database.search import MAX_QUERY_LENGTH, query_words
from portal.errors import FieldError, InvalidRequest, NotAllowed, NotSignedIn
from portal.events.records import (
    RetrievedVideo,
    Shape,
    TranscodeFailure,
    Uri,
    VideoColumns,
    VideoDetails,
    VideoRecord,
    VideoRow,
    details_of,
)
from portal.videos import metadata, publishing
from portal.videos.library import LibraryPage
from portal.videos.library_queries import Cursor, LibraryQuery, Sort
from portal.videos.reading import audience_of, master_url, stream_below
from portal.videos.words import find_said
from portal.web.api import json_bodies
from portal.web.auth import Policy, account_id, policy, principal
from portal.web.composition import WebContext, web_context
from portal.web.playback import token_base
from portal.web.schemas.base import ClosedShape, Problem, QuotaProblem, Text, Timestamp, reject_if
from portal.web.schemas.metadata import VideoMetadata
from portal.web.schemas.validation import validated, validated_query
from portal.web.server.headers import conditional_response
from portal.web.server.limits import Rate
from portal.web.videos import find_videos, read_record

blueprint = Blueprint("api_videos", __name__, url_prefix="/api")
tag_blueprint(blueprint, ["Videos"])

MAX_LIMIT = 200
MAX_IDS = 100
# Has published nothing.
NOBODY = UUID(int=0)
OneOrMore = BeforeValidator(lambda value: value if isinstance(value, list) else [value])
CommaSeparated = BeforeValidator(
    lambda value: ",".join(value if isinstance(value, list) else [value]).split(",")
)
Included = Literal["passthrough", "details", "matches"]
FileName = Annotated[
    Text,
    Field(
        min_length=1,
        max_length=metadata.MAX_FILE_NAME_LENGTH,
        description="Original file name.",
        json_schema_extra={"pattern": metadata.FILE_NAME_PATTERN},
    ),
    reject_if(metadata.file_name_fault),
]


class CategoryRecord(Shape):
    """A category of the fixed table."""

    id: int = Field(ge=1, le=32767)
    name: str


class CategoryList(Shape):
    """All categories."""

    categories: list[CategoryRecord]


class PresignRequest(ClosedShape):
    """Asks for an address to upload one file to."""

    file_name: FileName
    content_type: Literal["video/mp4", "video/quicktime"]


class PresignResponse(Shape):
    """Where to PUT the file, and the key to send back when that is done."""

    upload_url: Uri = Field(
        description="Signed address; PUT the raw bytes with the announced Content-Type."
    )
    key: str = Field(description="Storage key, `videos/<unique id>.<extension>`.")


class CreateVideoRequest(VideoMetadata):
    """Says that the upload is complete, and describes the video. Text is kept as submitted."""

    elsewhere: ClassVar = {
        "visibility": "Give it in the address: POST /api/videos?visibility=private.",
        "passthrough": "Set it with PATCH /api/videos/{id} once the video is created.",
    }

    file_name: FileName
    key: Annotated[Text, Field(description="The key from POST /api/videos/presign.")]


class NewVideoQuery(ClosedShape):
    """What may be said of a new video in the address."""

    visibility: Visibility | None = Field(None, description="Who may see it from the start.")


class CreatedVideo(VideoRecord, from_attributes=True):
    """A video's record as answered to its creation."""


class ImportProblem(Problem):
    """Problem details that tell why the video's import failed, if that is the problem."""

    failure: TranscodeFailure | None = Field(default=None, description="With import_failed only.")


class SpokenMatch(Shape):
    """Where the words that were searched for are said, nearest to each other."""

    language: str = Field(description="Of the captions; BCP 47.")
    seconds: int = Field(description="When, from the start of the film.")
    text: str


class ListedVideo(RetrievedVideo):
    """A video's record, with the members that `include` names."""

    passthrough: str = Field(default="", description="See PATCH /api/videos/{id}.")
    details: VideoDetails | None = None
    matches: list[SpokenMatch] = Field(default=[], description="Where `q` is said.")


class VideoQuery(ClosedShape):
    """Members of a record besides the documented ones."""

    include: Annotated[tuple[Literal["passthrough", "details"], ...], CommaSeparated] = Field(
        (), description="Members that the record has besides; several are separated by commas."
    )


class VideosQuery(ClosedShape):
    """Which videos are asked for, in which order; what is left out is any."""

    q: Text = Field("", max_length=MAX_QUERY_LENGTH, description="Words to search for.")
    status: VideoStatus | None = None
    category: int | None = Field(None, ge=1, le=32767)
    tag: Text = ""
    created_after: Timestamp | None = None
    created_before: Timestamp | None = None
    updated_after: Timestamp | None = None
    visibility: Visibility | None = None
    owner: Text = Field(
        "", description="The e-mail address of who published them; another's for admins only."
    )
    id: Annotated[tuple[UUID, ...], Field(max_length=MAX_IDS), OneOrMore] = ()
    sort: Sort | None = Field(
        None, description="Without it the newest come first, or what matches `q` best."
    )
    include: Annotated[tuple[Included, ...], CommaSeparated] = Field(
        (), description="Members that records have besides; several are separated by commas."
    )
    limit: int = Field(50, ge=1, le=MAX_LIMIT)
    cursor: Text = Field("", description="`nextCursor` of the page before.")


class VideoList(Shape):
    """A page of videos."""

    videos: list[ListedVideo]
    next_cursor: str | None = Field(description="Where the next page begins; null after the last.")
    searched_for: str | None = Field(
        description="The nearest words that somebody wrote, if nothing has those of `q`."
    )


@blueprint.get("/categories")
@policy(Policy.ANYONE)
@document_response(CategoryList)
async def categories() -> Response:
    """List the categories a video may be filed under.

    The table is fixed; ids never change.
    """
    names = await web_context().categories.names()
    records = [CategoryRecord(id=number, name=name) for number, name in names.items()]
    return json_bodies.json_response(CategoryList(categories=records))


@blueprint.post("/videos/presign")
@policy(Policy.PUBLISH)
@document_request(PresignRequest)
@document_response(PresignResponse)
@document_response(QuotaProblem, 409)
async def presign() -> Response:
    """Ask for an address to upload a file to.

    PUT the raw bytes to `uploadUrl` with the announced Content-Type, then send `key` to
    POST /api/videos.
    """
    web = web_context()
    wanted = validated(PresignRequest, await json_bodies.read_json())
    upload = await publishing.begin_upload(
        wanted.file_name, wanted.content_type, owner_id=await account_id(), quota=web.quota
    )
    upload_url = await web.storage.public.presign_put(
        upload.key, content_type=upload.content_type, ttl_s=web.config.upload_url_ttl_s
    )
    if not await web.new_uploads.load(upload):
        raise NotSignedIn("Your account was removed.")
    return json_bodies.json_response(PresignResponse(upload_url=upload_url, key=upload.key))


@blueprint.post("/videos")
@policy(Policy.PUBLISH, headers=("Location",))
@document_querystring(NewVideoQuery)
@document_request(CreateVideoRequest)
@document_response(CreatedVideo, 201)
@document_response(CreatedVideo, 200)
@document_response(QuotaProblem, 409)
async def create_video() -> Response:
    """Create a video from an uploaded file and start its transcoding.

    Sending the same key with the same metadata again answers 200 with the same record, so a
    request whose answer was lost may be repeated. The visibility is the portal's setting, unless
    the address names another one; PATCH /api/videos/{id} changes it.
    """
    web = web_context()
    asked = validated_query(NewVideoQuery, request.args)
    visibility = asked.visibility or web.config.default_visibility
    categories = await web.categories.names()
    wanted = validated(CreateVideoRequest, await json_bodies.read_json(), context=categories)
    video, is_new = await publishing.publish(
        metadata.Submission(
            metadata=wanted.value(),
            file_name=wanted.file_name,
            key=wanted.key,
            visibility=asked.visibility,
        ),
        storage=web.storage,
        queue=web.queue,
        max_source_bytes=web.config.max_source_bytes,
        audience=Audience(Visibility(visibility), owner_id=await account_id()),
        quota=web.quota,
    )
    response = json_bodies.json_response(CreatedVideo.model_validate(video), 201 if is_new else 200)
    response.headers["Location"] = url_for("api_videos.get_video", id=video.id)
    return response


# Not `presign`, which is only posted to.
@blueprint.get("/videos/<string(minlength=8):id>")
@policy(Policy.WATCH, headers=("ETag",))
@document_querystring(VideoQuery)
@document_response(RetrievedVideo)
@document_response(ImportProblem, 404)
async def get_video(id: str) -> Response:
    """Read a video's record.

    Poll this until `status` is ready or failed. Send the ETag of the last answer in
    If-None-Match to get 304 while nothing changed. In the If-Match of PATCH and DELETE it stands
    for what PATCH changes: the progress of the video's processing does not outdate it.
    """
    include = validated_query(VideoQuery, request.args).include
    record = await read_record(id)
    shown = await _with_included(record, include)
    version = str(record.metadata_version)
    return await conditional_response(shown.model_dump_json(exclude_unset=True), version=version)


@blueprint.get("/videos")
@policy(Policy.WATCH, rate=Rate.SEARCH, headers=("ETag",))
@document_querystring(VideosQuery)
@document_response(VideoList)
async def list_videos() -> Response:
    """List videos that the library shows to who asks, a page at a time.

    What is there throughout a walk along the cursors is met exactly once, whatever is added or
    deleted meanwhile. Send the ETag in If-None-Match to get 304 while the page is the same.
    """
    asked = validated_query(VideosQuery, request.args)
    query = await _library_query(asked, await principal())
    after = Cursor.parse(asked.cursor, query) if asked.cursor else None
    if asked.cursor and after is None:
        fault = "This is no place in this list. Send `nextCursor` with an otherwise equal query."
        raise InvalidRequest([FieldError("/cursor", fault)])
    page = await find_videos(query, limit=asked.limit, after=after)
    cursor = str(page.next) if page.next else None
    shown = VideoList(
        videos=await _listed(page, asked), next_cursor=cursor, searched_for=page.text or None
    )
    response = await conditional_response(shown.model_dump_json(exclude_unset=True))
    if cursor:
        given: dict[str, Any] = {**request.args.to_dict(flat=False), "cursor": cursor}
        address = f"{request.path}?{urlencode(given, doseq=True)}"
        response.headers["Link"] = f'<{address}>; rel="next"'
    return response


async def _listed(page: LibraryPage, query: VideosQuery) -> list[ListedVideo]:
    rows = [VideoRow.model_validate(video) for video in page.videos]
    records = [await _with_included(row, query.include) for row in rows]
    if "matches" not in query.include:
        return records
    words = query_words(page.text or query.q)
    spoken = await find_said(words, [video.id for video in page.videos])
    matches = {
        str(video_id): SpokenMatch(language=match.language, seconds=match.at_s, text=match.text)
        for video_id, match in spoken.items()
    }
    return [
        record.model_copy(update={"matches": [matches[record.id]] if record.id in matches else []})
        for record in records
    ]


async def _with_included(record: VideoRow, include: Collection[Included]) -> ListedVideo:
    """Return a record with the members that `include` names; others are not set."""
    columns = dict(record)
    members = {name: columns[name] for name in VideoRecord.model_fields}
    # `matches` has always come with `passthrough`.
    if "passthrough" in include or "matches" in include:
        members["passthrough"] = record.passthrough
    if "details" in include:
        members["details"] = details_of(web_context().config, record.id, columns)
    return ListedVideo(**members, playback_url=await playback_url(record))


async def _library_query(asked: VideosQuery, who: Principal) -> LibraryQuery:
    query = LibraryQuery(
        text=asked.q,
        category_id=asked.category,
        status=asked.status,
        tag=asked.tag,
        visibility=asked.visibility,
        created_after=asked.created_after,
        created_before=asked.created_before,
        updated_after=asked.updated_after,
        ids=asked.id,
        sort=asked.sort or (Sort.RELEVANCE if asked.q else Sort.NEWEST),
        seen_by=who,
    )
    if not asked.owner:
        return query
    owner_id = await fetch_account_id(asked.owner)
    if owner_id != who.account_id and not who.sees_all:
        raise NotAllowed("Only admins and owners may ask for what someone else has published.")
    return replace(query, owner_id=owner_id or NOBODY)


async def playback_url(record: VideoColumns) -> str:
    """Return the address to play a video from.

    On a portal with accounts the address of a private video contains permission to watch it.
    """
    own_id = await account_id() if audience_of(record).is_private else None
    return await playback_url_for(own_id, record, web=web_context())


async def playback_url_for(own_id: UUID | None, record: VideoColumns, *, web: WebContext) -> str:
    """Return the address of `playback_url` for an account, outside of its requests."""
    attempt = record.published_attempt
    is_private = audience_of(record).is_private
    if not is_private or own_id is None or attempt is None:
        return master_url(web.config, record.id, attempt, is_private=is_private)
    video_id = UUID(record.id)
    return stream_below(await token_base(own_id, video_id, web=web), video_id, attempt)
