"""JSON API of videos: the four documented calls, and the list of videos.

The documented calls read the categories, presign an upload, create a video and read its record.
`CreatedVideo` and `RetrievedVideo` are separate on purpose: they may diverge.
"""

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Annotated, Any, ClassVar, Literal
from uuid import UUID

from pydantic import BeforeValidator, Field
from quart import Blueprint, Response, request, url_for
from quart_schema import document_querystring, document_request, document_response, tag_blueprint

from portal.accounts.people import fetch_account_id
from portal.accounts.permissions import Action, Audience, Principal, Right
from portal.database.connection import Row
from portal.database.models import Approval, VideoStatus, Visibility
from portal.database.search import MAX_QUERY_LENGTH, query_words
from portal.errors import FieldError, InvalidRequest, NotAllowed, NotSignedIn
from portal.events.records import (
    DETAILS,
    Shape,
    TranscodeFailure,
    Uri,
    VideoColumns,
    VideoDetails,
    VideoWithPassthrough,
    details_of,
)
from portal.http import json_bodies
from portal.http.addresses import playback_url, playback_url_for
from portal.http.auth import Policy, account_id, policy, principal
from portal.http.composition import web_context
from portal.http.schemas.base import (
    ClosedShape,
    CommaSeparated,
    Problem,
    QuotaProblem,
    Text,
    Timestamp,
)
from portal.http.schemas.metadata import CreatedVideo, FileName, UploadKey, VideoMetadata
from portal.http.schemas.validation import validated, validated_query
from portal.http.server.headers import conditional_response
from portal.http.server.limits import Rate
from portal.http.videos import find_videos, read_record
from portal.locale.messages import Message
from portal.videos import metadata, publishing
from portal.videos.library import LibraryPage
from portal.videos.library_queries import BY_VIEWS, Cursor, LibraryQuery, Sort
from portal.videos.series import require_series
from portal.videos.visibility import MAX_SHARES, private_only_fault
from portal.videos.words import SpokenMatch, find_said

blueprint = Blueprint("api_videos", __name__, url_prefix="/api")
tag_blueprint(blueprint, ["Videos"])

MAX_LIMIT = 200
MAX_IDS = 100
# Owner without videos.
NOBODY = UUID(int=0)
OneOrMore = BeforeValidator(lambda value: value if isinstance(value, list) else [value])
IncludedInOne = Literal["passthrough", "details", "views"]
Included = Literal[IncludedInOne, "matches"]


class CategoryRecord(Shape):
    """Category of the fixed table."""

    id: int = Field(ge=1, le=32767, description="Identifier, which `categoryIds` contains.")
    name: str = Field(description="Name for people.")


class CategoryList(Shape):
    """All categories."""

    categories: list[CategoryRecord] = Field(description="The categories.")


class PresignRequest(ClosedShape):
    """Request for an address to upload one file to."""

    file_name: FileName
    content_type: Literal["video/mp4", "video/quicktime"] = Field(
        description="Content-Type of the upload."
    )


class PresignResponse(Shape):
    """Address to PUT the file to, and the key to create the video with."""

    upload_url: Uri = Field(
        description="Signed address. PUT the raw bytes with the announced Content-Type."
    )
    key: str = Field(description="Storage key, `videos/<unique id>.<extension>`.")


class CreateVideoRequest(VideoMetadata):
    """Request to create a video from a completed upload. Text is kept as submitted."""

    elsewhere: ClassVar = {
        "visibility": Message("Put it into the query: POST /api/videos?visibility=private."),
        "signedInOnly": Message(
            "Put it into the query: POST /api/videos?visibility=private&signedInOnly=true."
        ),
        "hasPublicPage": Message(
            "Put it into the query: POST /api/videos?visibility=private&hasPublicPage=true."
        ),
        "shares": Message("Put each name into the query: POST /api/videos?share=NAME."),
        "passthrough": Message("Set it with PATCH /api/videos/{id} after you create the video."),
    }

    file_name: FileName
    key: UploadKey


class NewVideoQuery(ClosedShape):
    """Options of a new video."""

    visibility: Visibility | None = Field(None, description="Initial visibility of the video.")
    signed_in_only: bool = Field(
        False, description="Whether everyone with an account may see the private video."
    )
    has_public_page: bool = Field(
        False, description="Whether everyone may see the page of the private video, not the film."
    )
    share: Annotated[tuple[Text, ...], Field(max_length=MAX_SHARES), OneOrMore] = Field(
        (),
        description="E-mail address of an account, or name of a group, that may watch the video "
        "whatever its visibility. Repeat the parameter for more.",
    )


class ImportProblem(Problem):
    """Problem details with the reason why the video's import failed, if it did."""

    failure: TranscodeFailure | None = Field(default=None, description="With import_failed only.")


class RetrievedVideo(VideoWithPassthrough):
    """A video's record as read by its id, with the members that `include` names."""

    details: VideoDetails | None = Field(None, description="Details beside the record.")
    views: int | None = Field(None, description="Null where the portal does not show them.")


class ListedVideo(RetrievedVideo):
    """A video's record in a list, with the members that `include` names."""

    matches: tuple[SpokenMatch, ...] = Field(
        default=(), description="Moments at which `q` is spoken."
    )


class VideoQuery(ClosedShape):
    """Members of a record in addition to the documented ones."""

    include: Annotated[tuple[IncludedInOne, ...], CommaSeparated] = Field(
        (), description="Additional members of the record, separated by commas."
    )


class VideosQuery(ClosedShape):
    """Filters, order and page of the list of videos."""

    q: Text = Field("", max_length=MAX_QUERY_LENGTH, description="Words to search for.")
    status: VideoStatus | None = Field(None, description="State of the transcoding.")
    category: int | None = Field(None, ge=1, le=32767, description="Id of a category.")
    tag: Text = Field("", description="One of the tags.")
    created_after: Timestamp | None = Field(
        None, description="Earliest time of creation, exclusive."
    )
    created_before: Timestamp | None = Field(
        None, description="Latest time of creation, exclusive."
    )
    updated_after: Timestamp | None = Field(
        None, description="Earliest time of the last change, exclusive."
    )
    visibility: Visibility | None = Field(None, description="Visibility of the videos.")
    approval: Approval | None = Field(
        None, description="Approved videos, those that wait for approval, or refused ones."
    )
    owner: Text = Field(
        "", description="E-mail address of the owner. Only admins may name other accounts."
    )
    shared: bool = Field(
        False, description="Only videos of others that are shared with you or your groups."
    )
    series: UUID | None = Field(
        None, description="Videos of this series that you can see, also unlisted ones."
    )
    id: Annotated[tuple[UUID, ...], Field(max_length=MAX_IDS), OneOrMore] = Field(
        (), description="Identifiers of videos."
    )
    sort: Sort | None = Field(
        None, description="Default: that of `series`, the best match with `q`, or the newest first."
    )
    include: Annotated[tuple[Included, ...], CommaSeparated] = Field(
        (), description="Additional members of the records, separated by commas."
    )
    limit: int = Field(50, ge=1, le=MAX_LIMIT, description="Most records of a page.")
    cursor: Text = Field("", description="`nextCursor` of the page before.")


class VideoList(Shape):
    """A page of videos."""

    videos: list[ListedVideo] = Field(description="Records of the page.")
    next_cursor: str | None = Field(description="Start of the next page; null on the last page.")
    searched_for: str | None = Field(description="The closest words with results, if `q` has none.")


@blueprint.get("/categories")
@policy(Policy.ANYONE)
@document_response(CategoryList)
async def categories() -> Response:
    """List the categories of videos.

    The table is fixed, and ids never change.
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
    """Get an address to upload a file to.

    PUT the raw bytes to `uploadUrl` with the announced Content-Type, then send `key` to
    POST /api/videos.
    """
    web = web_context()
    requested = validated(PresignRequest, await json_bodies.read_json())
    upload = await publishing.begin_upload(
        requested.file_name, requested.content_type, owner_id=await account_id(), quota=web.quota
    )
    upload_url = await web.storage.public.presign_put(
        upload.key, content_type=upload.content_type, ttl_s=web.config.upload_url_ttl_s
    )
    if not await web.new_uploads.load(upload):
        raise NotSignedIn(Message("Your account was removed."))
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

    If you repeat the request with the same key and metadata, it returns 200 with the same record,
    whose audience stays as it is. The visibility is the portal's default unless the query names
    another one. To change it later, use PATCH /api/videos/{id}; to change the whole audience, use
    PUT /api/videos/{id}/access.
    """
    web = web_context()
    options = validated_query(NewVideoQuery, request.args)
    visibility = Visibility(options.visibility or web.config.default_visibility)
    for member, is_chosen in (
        ("signedInOnly", options.signed_in_only),
        ("hasPublicPage", options.has_public_page),
    ):
        if fault := private_only_fault(visibility, member, is_chosen=is_chosen):
            raise InvalidRequest([FieldError(f"/{member}", fault)])
    categories = await web.categories.names()
    requested = validated(CreateVideoRequest, await json_bodies.read_json(), context=categories)
    video, is_new = await publishing.publish(
        metadata.Submission(
            metadata=requested.value(),
            file_name=requested.file_name,
            key=requested.key,
            visibility=options.visibility,
        ),
        storage=web.storage,
        max_source_bytes=web.config.max_source_bytes,
        audience=Audience(
            visibility,
            options.signed_in_only,
            owner_id=await account_id(),
            has_public_page=options.has_public_page,
        ),
        shared_with=options.share,
        quota=web.quota,
    )
    response = json_bodies.json_response(CreatedVideo.model_validate(video), 201 if is_new else 200)
    response.headers["Location"] = url_for("api_videos.get_video", id=video.id)
    return response


# Ids are longer than `presign`, which is another route.
@blueprint.get("/videos/<string(minlength=8):id>")
@policy(Policy.WATCH, headers=("ETag",))
@document_querystring(VideoQuery)
@document_response(RetrievedVideo)
@document_response(ImportProblem, 404)
async def get_video(id: str) -> Response:
    """Read the record of a video.

    Poll this until `status` is ready or failed. Send the last ETag in If-None-Match to get 304
    while the record is unchanged. You can also send the ETag in the If-Match of PATCH and DELETE:
    there, only changes by PATCH outdate it, not the progress of processing.
    """
    include = validated_query(VideoQuery, request.args).include
    record = await read_record(id)
    members = _members(
        record, include, address=await playback_url(record), sees_views=await _sees_views()
    )
    shape = RetrievedVideo(**members)
    version = str(record["metadata_version"])
    return await conditional_response(shape.model_dump_json(exclude_unset=True), version=version)


@blueprint.get("/videos")
@policy(Policy.WATCH, rate=Rate.SEARCH, headers=("ETag",))
@document_querystring(VideosQuery)
@document_response(VideoList)
@document_response(Problem, 404)
async def list_videos() -> Response:
    """List the videos that you can see in the library, page by page.

    Following `nextCursor`, you get each video exactly once if it exists all the while, even if
    others are added or deleted. Send the ETag in If-None-Match to get 304 while the page is
    unchanged.
    """
    parameters = validated_query(VideosQuery, request.args)
    query = await _library_query(parameters, await principal())
    after = Cursor.parse(parameters.cursor, query) if parameters.cursor else None
    if parameters.cursor and after is None:
        fault = Message("The cursor belongs to another query. Repeat the request without `cursor`.")
        raise InvalidRequest([FieldError("/cursor", fault)])
    page = await find_videos(query, limit=parameters.limit, after=after)
    cursor = str(page.next) if page.next else None
    records = await _records_of(page, parameters)
    # Validating all records at once takes half as long.
    videos = VideoList.model_validate(
        {"videos": records, "next_cursor": cursor, "searched_for": page.text or None}
    )
    response = await conditional_response(videos.model_dump_json(exclude_unset=True))
    if cursor:
        json_bodies.link_to_next(response, cursor=cursor)
    return response


async def _records_of(page: LibraryPage, query: VideosQuery) -> list[dict[str, Any]]:
    """Return the members of `ListedVideo` for the videos of a page."""
    web = web_context()
    own_id = await account_id()
    sees_views = await _sees_views()
    matches: Mapping[UUID, SpokenMatch] = {}
    if "matches" in query.include:
        matches = await find_said(query_words(page.text or query.q), page.video_ids)
    records = []
    for row in page.rows:
        address = await playback_url_for(own_id, row, web=web)
        record = _members(row, query.include, address=address, sees_views=sees_views)
        if "matches" in query.include:
            record["matches"] = [matches[row["id"]]] if row["id"] in matches else []
        records.append(record)
    return records


def _members(
    record: Row, include: Collection[Included], *, address: str, sees_views: bool
) -> dict[str, Any]:
    """Return the members of `ListedVideo` that `include` names, and the documented ones."""
    # The shape leaves the other columns out.
    members = {**record, "playback_url": address}
    # `matches` has always come with `passthrough`.
    if "passthrough" not in include and "matches" not in include:
        del members["passthrough"]
    if "details" in include:
        members["details"] = details_of(web_context().config, record["id"], record)
    views = members.pop("views", None)
    if "views" in include:
        members["views"] = views if sees_views else None
    return members


async def _sees_views() -> bool:
    """Return whether the caller sees how often videos were watched."""
    return web_context().config.has_views or (await principal()).may(Action.PUBLISH)


async def _library_query(parameters: VideosQuery, viewer: Principal) -> LibraryQuery:
    if parameters.sort in BY_VIEWS and not await _sees_views():
        raise NotAllowed(Message("This portal does not show views. Choose another order."))
    if parameters.series:
        await require_series(parameters.series, viewer)
    included = DETAILS if "details" in parameters.include else ()
    if "views" in parameters.include:
        included = (*included, "views")
    in_series_order = parameters.series is not None and parameters.sort is None
    is_ranked = bool(parameters.q) and not in_series_order
    query = LibraryQuery(
        text=parameters.q,
        category_id=parameters.category,
        status=parameters.status,
        tag=parameters.tag,
        visibility=parameters.visibility,
        approval=parameters.approval,
        shared=Right.WATCH if parameters.shared else None,
        created_after=parameters.created_after,
        created_before=parameters.created_before,
        updated_after=parameters.updated_after,
        ids=parameters.id,
        series_id=parameters.series,
        in_series_order=in_series_order,
        sort=parameters.sort or (Sort.RELEVANCE if is_ranked else Sort.NEWEST),
        seen_by=viewer,
        columns=(*VideoColumns.model_fields, *included),
    )
    if not parameters.owner:
        return query
    owner_id = await fetch_account_id(parameters.owner)
    # The answer must not tell whether the account exists.
    is_own = owner_id is not None and owner_id == viewer.account_id
    if not is_own and not viewer.sees_all:
        raise NotAllowed(Message("Only admins and owners may list the videos of other accounts."))
    return replace(query, owner_id=owner_id or NOBODY)
