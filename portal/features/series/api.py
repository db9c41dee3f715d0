"""JSON API of series: their records, their lists of videos, and lists of series."""

from dataclasses import replace
from typing import Annotated, Any, Self
from uuid import UUID

from pydantic import Field
from quart import Blueprint, Response, request, url_for
from quart_schema import (
    document_headers,
    document_querystring,
    document_request,
    document_response,
    tag_blueprint,
)

from portal.accounts.permissions import Audience, Principal, visible_to
from portal.database.models import Visibility
from portal.errors import AccessChanged, FieldError, InvalidRequest
from portal.events.records import Shape, Time, Uri
from portal.features.series import service
from portal.features.series.service import MAX_VIDEOS, Series, SeriesSummary
from portal.http import json_bodies
from portal.http.addresses import public_url
from portal.http.auth import Policy, account_id, policy, principal
from portal.http.composition import web_context
from portal.http.schemas.access import AudienceRecord, audience_record
from portal.http.schemas.base import ClosedShape, EditHeaders, Problem, Text, reject_if
from portal.http.schemas.metadata import Description
from portal.http.schemas.validation import validated, validated_query
from portal.http.server.headers import conditional_response
from portal.http.server.limits import Body
from portal.locale.messages import Message
from portal.text import is_blank
from portal.videos.metadata import MAX_TITLE_LENGTH
from portal.videos.visibility import access_of, audience_with

blueprint = Blueprint("api_series", __name__, url_prefix="/api")
tag_blueprint(blueprint, ["Series"])

MAX_LIMIT = 200
PATCH = Body(content_types=(json_bodies.JSON, "application/merge-patch+json"))
Title = Annotated[
    Text,
    Field(
        max_length=MAX_TITLE_LENGTH,
        description="Title of the series.",
        json_schema_extra={"minLength": 1},
    ),
    reject_if(lambda title: Message("Give the series a title.") if is_blank(title) else None),
]


class SeriesDetails(ClosedShape):
    """Title and description of a series."""

    title: Title
    description: Description = ""


class NewSeries(SeriesDetails):
    """Request to create a series."""

    visibility: Visibility | None = Field(
        None, description="`public`, `unlisted` or `private`. Default: the portal's setting."
    )


class SeriesPatch(ClosedShape):
    """JSON merge patch: members that it leaves out stay, and null empties the description."""

    title: Title = Field(default_factory=str)
    description: Description | None = Field(default_factory=str)
    visibility: Visibility = Field(
        default_factory=lambda: Visibility.PRIVATE, description="`public`, `unlisted` or `private`."
    )

    def applied(self, series: Series) -> Series:
        """Return a series with the named members changed.

        A series that becomes public or unlisted is no longer limited to accounts.
        """
        named: dict[str, Any] = {name: getattr(self, name) or "" for name in self.model_fields_set}
        visibility = named.pop("visibility", series.audience.visibility)
        is_private = visibility is Visibility.PRIVATE
        signed_in_only = series.audience.signed_in_only and is_private
        audience = replace(series.audience, visibility=visibility, signed_in_only=signed_in_only)
        return replace(series, audience=audience, **named)


class SeriesRecord(Shape):
    """Series, as its reader sees it."""

    id: UUID = Field(description="Unique identifier of the series.")
    title: str = Field(description="Title, as submitted.")
    description: str = Field(description="Free text, as submitted.")
    visibility: Visibility = Field(description="`public`, `unlisted` or `private`.")
    video_count: int = Field(description="Number of its videos that you can see.")
    owner_id: UUID | None = Field(
        description="Account that owns it. Null for others than its owner, admins and owners of "
        "the portal, and on a portal without accounts."
    )
    created_at: Time = Field(description="Time of the creation.")
    updated_at: Time = Field(description="Time of the last change of the series or of its list.")
    page_url: Uri = Field(description="Address of its page.")

    @classmethod
    def of(cls, series: SeriesSummary, reader: Principal, **members: Any) -> Self:
        """Return the record of a series for a reader, with more members."""
        owner_id = series.audience.owner_id
        is_told = reader.sees_all or owner_id == reader.account_id
        return cls(
            id=series.id,
            title=series.title,
            description=series.description,
            visibility=series.audience.visibility,
            video_count=series.video_count,
            owner_id=owner_id if is_told else None,
            created_at=series.created_at,
            updated_at=series.updated_at,
            page_url=public_url(url_for("series.page", series_id=series.id)),
            **members,
        )


class SeriesWithVideos(SeriesRecord):
    """Series with the ids of its videos, as its reader sees it."""

    video_ids: list[UUID] = Field(description="Its videos that you can see, in order.")


class SeriesList(Shape):
    """A page of series."""

    series: list[SeriesRecord] = Field(description="Records of the page.")
    next_cursor: str | None = Field(description="Start of the next page; null on the last page.")


class SeriesQuery(ClosedShape):
    """Page of the list of series."""

    limit: int = Field(50, ge=1, le=MAX_LIMIT, description="Most records of a page.")
    cursor: Text = Field("", description="`nextCursor` of the page before.")


class SeriesVideos(ClosedShape):
    """Videos of a series in their order."""

    video_ids: list[UUID] = Field(
        max_length=MAX_VIDEOS, description="Ids of videos that you can see, each once."
    )


@blueprint.get("/series")
@policy(Policy.WATCH, headers=("ETag",))
@document_querystring(SeriesQuery)
@document_response(SeriesList)
async def list_series() -> Response:
    """List the series that you can find, the newest first, page by page.

    They are the public ones, those for everyone with an account, your own, and those that are
    shared with you.
    """
    parameters = validated_query(SeriesQuery, request.args)
    reader = await principal()
    after = service.parse_place(parameters.cursor) if parameters.cursor else None
    if parameters.cursor and after is None:
        fault = Message("The cursor belongs to another query. Repeat the request without `cursor`.")
        raise InvalidRequest([FieldError("/cursor", fault)])
    page, following = await service.list_series(reader, limit=parameters.limit, after=after)
    cursor = str(following) if following else None
    records = [SeriesRecord.of(series, reader) for series in page]
    shape = SeriesList(series=records, next_cursor=cursor)
    response = await conditional_response(shape.model_dump_json())
    if cursor:
        json_bodies.link_to_next(response, cursor=cursor)
    return response


@blueprint.post("/series")
@policy(Policy.PUBLISH, headers=("Location", "ETag"))
@document_request(NewSeries)
@document_response(SeriesWithVideos, 201)
async def create_series() -> Response:
    """Create a series without videos.

    Add videos to it by POST /api/series/{id}/videos.
    """
    requested = validated(NewSeries, await json_bodies.read_json())
    visibility = requested.visibility or Visibility(web_context().config.default_visibility)
    series_id = await service.create(
        requested.title,
        requested.description,
        audience=Audience(visibility, owner_id=await account_id()),
    )
    response = await _record_response(str(series_id), 201)
    response.headers["Location"] = url_for("api_series.get_series", series_id=series_id)
    return response


@blueprint.get("/series/<series_id>")
@policy(Policy.WATCH, headers=("ETag",))
@document_response(SeriesWithVideos)
async def get_series(series_id: str) -> Response:
    """Read a series, with those of its videos that you can see.

    Send the ETag back in If-Match when you change the series.
    """
    return await _record_response(series_id)


@blueprint.patch("/series/<series_id>")
@policy(Policy.PUBLISH, body=PATCH, headers=("ETag",))
@document_headers(EditHeaders)
@document_request(SeriesPatch)
@document_response(SeriesWithVideos)
@document_response(Problem, 412)
async def patch_series(series_id: str) -> Response:
    """Change the members of a series that a JSON merge patch (RFC 7396) names.

    If-Match must name the version that you read, or be `*`. If someone else has changed the series
    or its list since, nothing is written, unless your values are recorded already.
    """
    series = await service.read_editable(series_id, await principal())
    versions = json_bodies.named_versions(is_required=True)
    body = await json_bodies.read_json(mimetypes=PATCH.content_types)
    patch = validated(SeriesPatch, body)
    await service.edit(series.id, patch.applied, versions=versions)
    return await _record_response(series_id)


@blueprint.delete("/series/<series_id>")
@policy(Policy.PUBLISH)
@document_headers(EditHeaders)
@document_response(Problem, 412)
async def delete_series(series_id: str) -> Response:
    """Delete a series, but none of its videos.

    If-Match must name the version that you read, or be `*`.
    """
    series = await service.read_editable(series_id, await principal())
    versions = json_bodies.named_versions(is_required=True)
    await service.remove(series.id, versions=versions)
    return Response(status=204)


@blueprint.put("/series/<series_id>/videos")
@policy(Policy.PUBLISH, headers=("ETag",))
@document_headers(EditHeaders)
@document_request(SeriesVideos)
@document_response(SeriesWithVideos)
@document_response(Problem, 412)
async def put_videos(series_id: str) -> Response:
    """Replace the videos of a series, and their order.

    If-Match must name the version that you read, or be `*`. Videos of the series that you can't
    see stay at their places.
    """
    editor = await principal()
    series = await service.read_editable(series_id, editor)
    versions = json_bodies.named_versions(is_required=True)
    chosen = validated(SeriesVideos, await json_bodies.read_json()).video_ids
    await service.replace_videos(series.id, chosen, by=editor, versions=versions)
    return await _record_response(series_id)


@blueprint.post("/series/<series_id>/videos")
@policy(Policy.PUBLISH, headers=("ETag",))
@document_request(SeriesVideos)
@document_response(SeriesWithVideos)
async def add_series_videos(series_id: str) -> Response:
    """Add videos at the end of a series, in this order.

    Videos that are in the series already stay at their places. Either all of them are added or
    none.
    """
    editor = await principal()
    series = await service.read_editable(series_id, editor)
    added = validated(SeriesVideos, await json_bodies.read_json()).video_ids
    await service.add_videos(series.id, added, by=editor)
    return await _record_response(series_id)


@blueprint.get("/series/<series_id>/access")
@policy(Policy.PUBLISH, headers=("ETag",))
@document_response(AudienceRecord)
async def get_series_access(series_id: str) -> Response:
    """Read the audience of a series that you may edit.

    Send the ETag back in If-Match when you change the audience.
    """
    series = await service.read_editable(series_id, await principal())
    response = await _access_response(series)
    return await response.make_conditional(request)


@blueprint.put("/series/<series_id>/access")
@policy(Policy.PUBLISH, headers=("ETag",))
@document_headers(EditHeaders)
@document_request(AudienceRecord)
@document_response(AudienceRecord)
async def put_series_access(series_id: str) -> Response:
    """Change the audience of a series; that of its videos stays.

    If-Match must name the version that you read, or be `*`. If someone else has changed the
    audience since, nothing is written.
    """
    series = await service.read_editable(series_id, await principal())
    versions = json_bodies.named_versions(is_required=True)
    record = validated(AudienceRecord, await json_bodies.read_json())
    access = await record.value()
    password = await record.password_change(web_context().passwords)

    def alter(recorded: Series) -> Series:
        present = access_of(recorded.audience)
        shares = present.shares if record.shares is None else access.shares
        changed = replace(access, shares=shares)
        return replace(recorded, audience=audience_with(changed, recorded.audience.owner_id))

    changed = await service.edit(
        series.id,
        alter,
        versions=versions,
        version_of=lambda recorded: access_of(recorded.audience).version,
        conflict=AccessChanged,
        password=password,
    )
    return await _access_response(changed)


async def _record_response(series_id: str, status: int = 200) -> Response:
    """Return a series as the caller sees it, with an ETag that begins with its version."""
    reader = await principal()
    series = await service.read_series(series_id, reader)
    videos = await service.fetch_videos_of(series.id, visible_to(reader))
    record = SeriesWithVideos.of(series, reader, video_ids=[video.id for video in videos])
    response = await conditional_response(record.model_dump_json(), version=str(series.version))
    if response.status_code == 200:
        response.status_code = status
    return response


async def _access_response(series: Series) -> Response:
    access = access_of(series.audience)
    record = await audience_record(access)
    return json_bodies.json_response(record, cache_control="private, no-cache", etag=access.version)
