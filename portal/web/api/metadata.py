"""The JSON API for editors: read and change a video's metadata, delete a video."""

from dataclasses import asdict, fields
from typing import Annotated

from pydantic import AfterValidator, Field, StrictInt, ValidationInfo
from pydantic_core import PydanticCustomError
from quart import Blueprint, Response, request
from quart_schema import document_headers, document_request, document_response, tag_blueprint

from portal.database.models import Video
from portal.videos import metadata
from portal.videos.deletion import delete_video
from portal.videos.metadata import EditableMetadata, title_fault
from portal.web.api.json_bodies import (
    EditHeaders,
    Shape,
    Text,
    json_response,
    read_json,
    reject_if,
    validated,
    version_read,
)
from portal.web.auth import Policy, policy
from portal.web.composition import web_context
from portal.web.videos import read_video

blueprint = Blueprint("api_metadata", __name__, url_prefix="/api")
tag_blueprint(blueprint, ["Editing"])


def _is_category(value: int, info: ValidationInfo) -> int:
    # The ids that there are; None where that is not asked.
    if info.context is not None and value not in info.context:
        raise PydanticCustomError(
            "category", "There is no category with this id. See GET /api/categories."
        )
    return value


CategoryId = Annotated[StrictInt, Field(ge=1, le=32767), AfterValidator(_is_category)]


class VideoMetadata(Shape):
    """What editors say of a video, and may change. Text is kept as submitted."""

    title: Annotated[
        Text, Field(min_length=1, max_length=metadata.MAX_TITLE_LENGTH), reject_if(title_fault)
    ]
    description: Annotated[Text, Field(max_length=metadata.MAX_DESCRIPTION_LENGTH)]
    category_ids: Annotated[
        list[CategoryId], Field(min_length=1, max_length=metadata.MAX_CATEGORIES)
    ]
    tags: Annotated[
        Text,
        Field(max_length=metadata.MAX_TAGS_LENGTH, description="Comma-separated by convention."),
    ]

    def value(self) -> EditableMetadata:
        """The same for services."""
        said = {it.name: getattr(self, it.name) for it in fields(EditableMetadata)}
        return EditableMetadata(**said | {"category_ids": tuple(self.category_ids)})


class DeletedVideo(Shape):
    """A video that was deleted; its files are removed from storage soon after."""

    id: str


def metadata_record(recorded: EditableMetadata) -> VideoMetadata:
    """The public shape, unchecked: what earlier rules allowed is still to be read."""
    columns = asdict(recorded) | {"category_ids": list(recorded.category_ids)}
    return VideoMetadata.model_construct(**columns)


@blueprint.get("/videos/<id>/metadata")
@policy(Policy.WATCH)
@document_response(VideoMetadata)
async def get_metadata(id: str) -> Response:
    """Read what editors may change of a video.

    The ETag names this version of it; send it back in If-Match with a change.
    """
    response = _answer(await read_video(id))
    return await response.make_conditional(request)


@blueprint.put("/videos/<id>/metadata")
@policy(Policy.EDIT)
@document_headers(EditHeaders)
@document_request(VideoMetadata)
@document_response(VideoMetadata)
async def put_metadata(id: str) -> Response:
    """Change a video's title, description, categories and tags.

    The same rules hold as for its creation. If-Match must name the version that was read (or be
    `*`, which overwrites whatever is there); when someone else has changed the metadata since,
    nothing is written. Sending a change again that is recorded already is no conflict.
    """
    video = await read_video(id)
    version = version_read(str(video.metadata_version))
    categories = await web_context().categories.names()
    sent = validated(VideoMetadata, await read_json(), context=categories)
    return _answer(await metadata.save_metadata(video.id, sent.value(), version=version))


@blueprint.post("/videos/<id>/deletion")
@policy(Policy.DELETE)
@document_response(DeletedVideo, 202)
async def delete(id: str) -> Response:
    """Delete a video for ever, with the file it was made from.

    No body is needed. The record is gone at once, and with it the playlists; the files follow
    soon after. The storage key is void: upload the file anew to publish it again.
    """
    video = await read_video(id)
    await delete_video(video.id, queue=web_context().queue)
    return json_response(DeletedVideo(id=id), 202)


def _answer(video: Video) -> Response:
    record = metadata_record(metadata.recorded(video))
    return json_response(record, cache_control="no-cache", etag=str(video.metadata_version))
