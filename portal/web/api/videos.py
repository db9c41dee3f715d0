"""The four documented calls: categories, presigning, creating a video, reading its record."""

from datetime import UTC, datetime
from functools import lru_cache
from typing import Any
from uuid import UUID

from quart import Blueprint, Response, url_for
from quart.blueprints import BlueprintSetupState
from quart_schema import document_querystring, document_request, document_response, tag_blueprint
from werkzeug.routing import BaseConverter

from portal.accounts.permissions import Audience
from portal.config import Config
from portal.database.connection import Row
from portal.database.states import Visibility
from portal.videos import publishing
from portal.videos.playback_tokens import PlaybackToken, account_token_expiry
from portal.videos.rows import audience_of
from portal.web.api.json_bodies import json_response, read_json, validated, validated_query
from portal.web.api.metadata_shapes import References
from portal.web.api.openapi import document_problems
from portal.web.api.upload_shapes import QuotaProblem
from portal.web.api.video_shapes import (
    CategoryList,
    CategoryRecord,
    CreatedVideo,
    CreateVideoRequest,
    NewVideoQuery,
    PresignRequest,
    PresignResponse,
    RetrievedVideo,
    created_video,
)
from portal.web.auth import Policy, account_id, policy
from portal.web.body_cache import cached_body
from portal.web.context import web_context
from portal.web.playback_addresses import master_url, signed_addresses
from portal.web.videos import read_record

# Of an address with leave to watch in it; whether that is still given is asked with each request.
OWN_ADDRESS_LIFE_S = 12 * 3600

blueprint = Blueprint("api_videos", __name__, url_prefix="/api")
tag_blueprint(blueprint, ["Videos"])


@blueprint.get("/categories")
@policy(Policy.ANYONE)
@document_response(CategoryList)
@document_problems(503)
async def categories() -> Response:
    """List the categories a video may be filed under.

    The table is fixed; ids never change.
    """
    names = await web_context().categories.names()
    return Response(_category_list(tuple(names.items())), content_type="application/json")


@blueprint.post("/videos/presign")
@policy(Policy.PUBLISH)
@document_request(PresignRequest)
@document_response(PresignResponse)
@document_problems(400, 413, 415, 422, 503)
@document_response(QuotaProblem, 409)
async def presign() -> Response:
    """Ask for an address to upload a file to.

    PUT the raw bytes to `uploadUrl` with the announced Content-Type, then send `key` to
    POST /api/videos.
    """
    web = web_context()
    url_ttl_s = web.config.upload_url_ttl_s
    wanted = validated(PresignRequest, await read_json())
    upload = await publishing.begin_upload(
        wanted.file_name,
        wanted.content_type,
        storage=web.storage,
        url_ttl_s=url_ttl_s,
        owner_id=await account_id(),
        quota=web.quota,
    )
    return json_response(PresignResponse(upload_url=upload.upload_url, key=upload.key))


@blueprint.post("/videos")
@policy(Policy.PUBLISH)
@document_querystring(NewVideoQuery)
@document_request(CreateVideoRequest)
@document_response(CreatedVideo, 201)
@document_response(CreatedVideo, 200)
@document_problems(400, 413, 415, 422, 503)
@document_response(QuotaProblem, 409)
async def create_video() -> Response:
    """Create a video from an uploaded file and start its transcoding.

    Sending the same key with the same metadata again answers 200 with the same record, so a
    request whose answer was lost may be repeated. Who may see it is the portal's setting, unless
    the address says otherwise; PUT /api/videos/{id}/access changes it.
    """
    web = web_context()
    visibility = _visibility(web.config)
    body = await read_json()
    wanted = validated(CreateVideoRequest, body, context=await _references(body))
    published = await publishing.publish(
        wanted.submission(),
        storage=web.storage,
        queue=web.queue,
        max_source_bytes=web.config.max_source_bytes,
        audience=Audience(visibility, owner_id=await account_id()),
        quota=web.quota,
    )
    response = json_response(created_video(published.video), 201 if published.created else 200)
    response.headers["Location"] = url_for("api_videos.get_video", id=str(published.video.id))
    return response


class IdConverter(BaseConverter):
    """A video's id in a path; not the word that another route has in the same place."""

    regex = r"(?!presign$)[^/]+"
    part_isolating = True


@blueprint.record_once
def _install_converter(state: BlueprintSetupState) -> None:
    state.app.url_map.converters["video"] = IdConverter


@blueprint.get("/videos/<video:id>")
@policy(Policy.WATCH)
@document_response(RetrievedVideo)
@document_problems(404, 503)
async def get_video(id: str) -> Response:
    """Read a video's record.

    Poll this until `status` is ready or failed. Send the ETag of the last answer in
    If-None-Match to get 304 while nothing changed.
    """
    record = await read_record(id)
    address = await _playback_url(record)
    body = RetrievedVideo(**record, playback_url=address).model_dump_json()
    return await cached_body(body).answer(content_type="application/json", cache_control="no-cache")


def _visibility(config: Config) -> Visibility:
    """Who may see a new video: what the address asks for, or what the portal's setting says."""
    wanted = validated_query(NewVideoQuery).visibility
    return wanted or Visibility(config.default_visibility)


async def _playback_url(record: Row) -> str:
    """Of a private video it is an address with leave to watch in it, if there are accounts."""
    web, attempt = web_context(), record["published_attempt"]
    is_private = audience_of(record).is_private
    own_id = await account_id() if is_private else None
    if own_id is None or attempt is None:
        return master_url(web.config, record["id"], attempt, is_private=is_private)
    expires_at = account_token_expiry(datetime.now(UTC), OWN_ADDRESS_LIFE_S)
    said = PlaybackToken(UUID(record["id"]), expires_at, account_id=own_id)
    token = await web.signing_keys.sign(said)
    return signed_addresses(web.config, said.video_id, attempt, token=token).playback_url


@lru_cache(maxsize=1)
def _category_list(rows: tuple[tuple[int, str], ...]) -> str:
    records = [CategoryRecord(id=number, name=name) for number, name in rows]
    return CategoryList(categories=records).model_dump_json()


async def _references(body: Any) -> References:
    key = body.get("key") if isinstance(body, dict) else None
    return References(
        category_ids=(await web_context().categories.names()).keys(),
        key_is_issued=isinstance(key, str)
        and await publishing.is_issued(key, owner_id=await account_id()),
    )
