"""JSON API of the audience of a series."""

from dataclasses import replace

from quart import Blueprint, Response, request
from quart_schema import document_headers, document_request, document_response, tag_blueprint

from portal.errors import AccessChanged
from portal.features.series import service
from portal.features.series.service import Series
from portal.http.auth import Policy, policy, principal
from portal.http.json_bodies import json_response, named_versions, read_json
from portal.http.schemas.access import AudienceRecord, audience_record
from portal.http.schemas.base import EditHeaders
from portal.http.schemas.validation import validated
from portal.videos.visibility import access_of, audience_with

blueprint = Blueprint("api_series_access", __name__, url_prefix="/api")
tag_blueprint(blueprint, ["Series"])


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
    versions = named_versions(is_required=True)
    record = validated(AudienceRecord, await read_json())
    access = await record.value()

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
    )
    return await _access_response(changed)


async def _access_response(series: Series) -> Response:
    access = access_of(series.audience)
    record = await audience_record(access)
    return json_response(record, cache_control="private, no-cache", etag=access.version)
