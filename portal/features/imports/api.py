"""JSON API of imports: files that the portal fetches itself."""

from datetime import UTC, datetime
from typing import Literal
from uuid import UUID

from pydantic import Field
from quart import Blueprint, Response, request, url_for
from quart_schema import document_querystring, document_request, document_response, tag_blueprint

from portal.accounts.permissions import Audience
from portal.database.models import Visibility
from portal.database.work_models import Import
from portal.errors import FieldError, InvalidRequest
from portal.events.records import Shape, Size, TranscodeFailure
from portal.features.imports import service as imports
from portal.http import json_bodies
from portal.http.auth import Policy, account_id, policy, principal
from portal.http.composition import web_context
from portal.http.schemas.base import ClosedShape, QuotaProblem, Text, Timestamp
from portal.http.schemas.metadata import Description, MetadataRecord, Tags
from portal.http.schemas.validation import validated, validated_query
from portal.http.schemas.webhooks import Address
from portal.locale.messages import Message
from portal.text import rfc3339

blueprint = Blueprint("api_imports", __name__, url_prefix="/api/imports")
tag_blueprint(blueprint, ["Videos"])

MAX_LIMIT = 200


class ImportRequest(MetadataRecord):
    """Request to fetch a file from a public https address, with the video's metadata."""

    url: Address
    description: Description = ""
    tags: Tags = ""
    visibility: Visibility | None = Field(None, description="Initial visibility of the video.")


class ImportsQuery(ClosedShape):
    """Page of the list of imports."""

    limit: int = Field(50, ge=1, le=MAX_LIMIT, description="Most records of a page.")
    cursor: Text = Field("", description="`nextCursor` of the page before.")


class ListedImport(Shape):
    """Import that is in progress, or has failed."""

    id: UUID = Field(description="Identifier of the future video.")
    state: Literal["importing", "failed"] = Field(description="`importing` or `failed`.")
    failure: TranscodeFailure | None = Field(
        description="Reason why the import failed; null unless it did."
    )
    title: str = Field(description="Title of the future video.")
    received_bytes: Size = Field(description="Bytes fetched so far.")
    size_bytes: Size | None = Field(description="Null until the server reports it.")
    created_at: Timestamp = Field(description="Time of the request.")


class ImportList(Shape):
    """A page of imports, the newest first."""

    imports: list[ListedImport] = Field(description="The imports.")
    next_cursor: str | None = Field(description="Start of the next page; null on the last page.")


class ImportRecord(Shape):
    """Video that an import will create."""

    id: UUID = Field(description="Identifier of the future video.")
    url: str = Field(description="Address of the record, which exists once the file is fetched.")


@blueprint.post("")
@policy(Policy.PUBLISH, headers=("Location",))
@document_request(ImportRequest)
@document_response(ImportRecord, 202)
@document_response(QuotaProblem, 409)
async def create_import() -> Response:
    """Import an MP4 or QuickTime file from an address and publish it.

    Follow the progress with GET /api/videos/{id}/transcode. The stage is `importing` until the
    video exists, or failed with `import_unreachable`, `import_too_slow`, `import_not_video` or
    `import_too_large`. To cancel, DELETE the video's address. Up to five redirects are followed.
    """
    web = web_context()
    categories = await web.categories.names()
    requested = validated(ImportRequest, await json_bodies.read_json(), context=categories)
    visibility = Visibility(requested.visibility or web.config.default_visibility)
    video_id = await imports.create(
        requested.url,
        requested.value(),
        audience=Audience(visibility, owner_id=await account_id()),
        passthrough=requested.passthrough,
        quota=web.quota,
    )
    address = url_for("api_videos.get_video", id=video_id)
    response = json_bodies.json_response(ImportRecord(id=video_id, url=address), 202)
    response.headers["Location"] = address
    return response


@blueprint.get("")
@policy(Policy.PUBLISH)
@document_querystring(ImportsQuery)
@document_response(ImportList)
async def list_imports() -> Response:
    """List your imports that are in progress or have failed within the last day.

    Admins and owners of the portal see all imports. Once an import succeeds, its video is in the
    list of videos instead.
    """
    query = validated_query(ImportsQuery, request.args)
    after = _parse_cursor(query.cursor) if query.cursor else None
    rows = await imports.list_imports(await principal(), limit=query.limit + 1, after=after)
    page = rows[: query.limit]
    next_cursor = None
    if len(rows) > query.limit:
        next_cursor = f"{rfc3339(page[-1].upload.created_at)}_{page[-1].id}"
    listed = ImportList(imports=[_listed_import(row) for row in page], next_cursor=next_cursor)
    return json_bodies.json_response(listed)


def _listed_import(row: Import) -> ListedImport:
    failure = TranscodeFailure.of(row.error_code, row.error_message)
    return ListedImport(
        id=row.id,
        state="failed" if failure else "importing",
        failure=failure,
        title=row.asked["title"],
        received_bytes=row.received_bytes,
        size_bytes=row.whole_bytes,
        created_at=row.upload.created_at,
    )


def _parse_cursor(cursor: str) -> tuple[datetime, UUID]:
    """Return the time and the id after which a page begins. Raises `InvalidRequest`."""
    time, _, import_id = cursor.partition("_")
    try:
        created_at = datetime.fromisoformat(time)
        # PostgreSQL only takes offsets of up to 16 hours.
        return created_at.replace(tzinfo=created_at.tzinfo or UTC).astimezone(UTC), UUID(import_id)
    except (ValueError, OverflowError):
        fault = Message("This cursor belongs to another list. Repeat the request without `cursor`.")
        raise InvalidRequest([FieldError("/cursor", fault)]) from None
