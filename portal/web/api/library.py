"""The list of videos for programs: filtered, searched and sorted as the library, by cursors."""

from dataclasses import replace
from typing import Annotated, Any, Literal
from urllib.parse import urlencode
from uuid import UUID

from pydantic import BeforeValidator, Field
from quart import Blueprint, Response, request
from quart_schema import document_querystring, document_response, tag_blueprint

from portal.accounts.people import fetch_account_id
from portal.accounts.permissions import Principal
from portal.database.models import VideoStatus, Visibility
from portal.database.search import MAX_QUERY_LENGTH
from portal.errors import FieldError, InvalidRequest, NotAllowed
from portal.videos.library_queries import Cursor, LibraryQuery, Sort
from portal.web.api import json_bodies
from portal.web.api.videos import (
    RetrievedVideo,
    VideoWithPassthrough,
    playback_url,
    record_of,
)
from portal.web.auth import Policy, policy, principal
from portal.web.server.headers import conditional_response
from portal.web.videos import find_videos

blueprint = Blueprint("api_library", __name__, url_prefix="/api")
tag_blueprint(blueprint, ["Videos"])

MAX_LIMIT = 200
MAX_IDS = 100
# Has published nothing.
NOBODY = UUID(int=0)
OneOrMore = BeforeValidator(lambda value: value if isinstance(value, list) else [value])


class VideosQuery(json_bodies.Shape, extra="forbid"):
    """Which videos are asked for, in which order; what is left out is any."""

    q: json_bodies.Text = Field("", max_length=MAX_QUERY_LENGTH, description="Words to search for.")
    status: VideoStatus | None = None
    category: int | None = Field(None, ge=1, le=32767)
    tag: json_bodies.Text = ""
    created_after: json_bodies.Timestamp | None = None
    created_before: json_bodies.Timestamp | None = None
    updated_after: json_bodies.Timestamp | None = None
    visibility: Visibility | None = None
    owner: json_bodies.Text = Field(
        "", description="The e-mail address of who published them; another's for admins only."
    )
    id: Annotated[tuple[UUID, ...], Field(max_length=MAX_IDS), OneOrMore] = ()
    sort: Sort | None = Field(
        None, description="Without it the newest come first, or what matches `q` best."
    )
    include: Literal["passthrough"] | None = Field(None, description="What records have besides.")
    limit: int = Field(50, ge=1, le=MAX_LIMIT)
    cursor: json_bodies.Text = Field("", description="`nextCursor` of the page before.")


class VideoList(json_bodies.Shape):
    """A page of videos."""

    videos: list[VideoWithPassthrough | RetrievedVideo]
    next_cursor: str | None = Field(description="Where the next page begins; null after the last.")


@blueprint.get("/videos")
@policy(Policy.WATCH)
@document_querystring(VideosQuery)
@document_response(VideoList)
async def list_videos() -> Response:
    """List videos that the library shows to who asks, a page at a time.

    What is there throughout a walk along the cursors is met exactly once, whatever is added or
    deleted meanwhile. Send the ETag in If-None-Match to get 304 while the page is the same.
    """
    asked = json_bodies.validated_query(VideosQuery)
    query = await _library_query(asked, await principal())
    after = Cursor.parse(asked.cursor, query) if asked.cursor else None
    if asked.cursor and after is None:
        fault = "This is no place in this list. Send `nextCursor` with an otherwise equal query."
        raise InvalidRequest([FieldError("/cursor", fault)])
    page = await find_videos(query, limit=asked.limit, after=after)
    records = [record_of(video) for video in page.videos]
    shape = VideoWithPassthrough if asked.include else RetrievedVideo
    told: list[VideoWithPassthrough | RetrievedVideo] = [
        shape(**it, playback_url=await playback_url(it)) for it in records
    ]
    cursor = str(page.next) if page.next else None
    response = await conditional_response(
        VideoList(videos=told, next_cursor=cursor).model_dump_json(),
        content_type="application/json",
        cache_control="no-cache",
    )
    if cursor:
        given: dict[str, Any] = {**request.args.to_dict(flat=False), "cursor": cursor}
        address = f"{request.path}?{urlencode(given, doseq=True)}"
        response.headers["Link"] = f'<{address}>; rel="next"'
    return response


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
