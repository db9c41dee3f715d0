"""The JSON API for editors: a video's metadata, who may see it, and its deletion."""

from dataclasses import asdict, fields
from typing import Annotated, Any, Self

from pydantic import (
    AfterValidator,
    ConfigDict,
    Field,
    StrictBool,
    StrictInt,
    ValidationInfo,
    model_validator,
)
from pydantic_core import InitErrorDetails, PydanticCustomError, ValidationError
from quart import Blueprint, Response, request
from quart_schema import document_headers, document_request, document_response, tag_blueprint

from portal.database.models import Video, Visibility
from portal.text import MAX_SITE_LENGTH, SITE_PATTERN
from portal.videos import metadata
from portal.videos.deletion import delete_video
from portal.videos.metadata import EditableMetadata, title_fault
from portal.videos.visibility import (
    MAX_EMBED_ORIGINS,
    VideoAccess,
    embed_origin_fault,
    recorded_access,
    save_access,
    signed_in_only_fault,
)
from portal.web.api import json_bodies
from portal.web.auth import Policy, policy
from portal.web.composition import web_context
from portal.web.videos import read_video

blueprint = Blueprint("api_editing", __name__, url_prefix="/api")
tag_blueprint(blueprint, ["Editing"])


def _is_category(value: int, info: ValidationInfo) -> int:
    # The ids that there are; None where that is not asked.
    if info.context is not None and value not in info.context:
        raise PydanticCustomError(
            "category", "There is no category with this id. See GET /api/categories."
        )
    return value


CategoryId = Annotated[StrictInt, Field(ge=1, le=32767), AfterValidator(_is_category)]


class VideoMetadata(json_bodies.Shape):
    """What editors say of a video, and may change. Text is kept as submitted."""

    title: Annotated[
        json_bodies.Text,
        Field(min_length=1, max_length=metadata.MAX_TITLE_LENGTH),
        json_bodies.reject_if(title_fault),
    ]
    description: Annotated[json_bodies.Text, Field(max_length=metadata.MAX_DESCRIPTION_LENGTH)]
    category_ids: Annotated[
        list[CategoryId], Field(min_length=1, max_length=metadata.MAX_CATEGORIES)
    ]
    tags: Annotated[
        json_bodies.Text,
        Field(max_length=metadata.MAX_TAGS_LENGTH, description="Comma-separated by convention."),
    ]

    def value(self) -> EditableMetadata:
        """The same for services."""
        said = {it.name: getattr(self, it.name) for it in fields(EditableMetadata)}
        return EditableMetadata(**said | {"category_ids": tuple(self.category_ids)})


EmbedOrigin = Annotated[
    json_bodies.Text,
    json_bodies.reject_if(embed_origin_fault),
    Field(json_schema_extra={"pattern": SITE_PATTERN, "maxLength": MAX_SITE_LENGTH}),
]


class AccessRecord(json_bodies.Shape):
    """Who may see a video, and which sites may show its player in a frame."""

    # What `signed_in_only_fault` says.
    model_config = ConfigDict(
        json_schema_extra={
            "if": {"properties": {"signedInOnly": {"const": True}}},
            "then": {"properties": {"visibility": {"const": Visibility.PRIVATE.value}}},
        }
    )

    visibility: Annotated[
        Visibility,
        Field(
            description="`public`: listed; `unlisted`: by its address; `private`: its owner, "
            "admins, owners of the portal and, with `signedInOnly`, everyone with an account."
        ),
    ]
    signed_in_only: Annotated[
        StrictBool, Field(description="Whether everyone with an account may see a private video.")
    ]
    embed_origins: Annotated[
        list[EmbedOrigin],
        Field(
            max_length=MAX_EMBED_ORIGINS,
            description="Sites like `https://blog.example.org` or `https://*.example.org`. Empty "
            "leaves it to the portal's setting.",
        ),
    ]

    @model_validator(mode="after")
    def _check_signed_in_only(self) -> Self:
        fault = signed_in_only_fault(self.visibility, signed_in_only=self.signed_in_only)
        if fault:
            error = PydanticCustomError("rule", "{fault}", {"fault": fault})
            found = InitErrorDetails(type=error, loc=("signedInOnly",), input=self.signed_in_only)
            raise ValidationError.from_exception_data(type(self).__name__, [found])
        return self

    def value(self) -> VideoAccess:
        """The same for services; a site that is named twice counts once."""
        return VideoAccess(
            visibility=self.visibility,
            signed_in_only=self.signed_in_only,
            embed_origins=tuple(dict.fromkeys(self.embed_origins)),
        )


class DeletedVideo(json_bodies.Shape):
    """A video that was deleted; its files are removed from storage soon after."""

    id: str


def recorded_shape(
    shape: type[json_bodies.Model], value: EditableMetadata | VideoAccess
) -> json_bodies.Model:
    """The public shape, unchecked: what earlier rules allowed is still to be read."""
    columns: Any = {
        name: list(it) if isinstance(it, tuple) else it for name, it in asdict(value).items()
    }
    return shape.model_construct(**columns)


@blueprint.get("/videos/<id>/metadata")
@policy(Policy.WATCH)
@document_response(VideoMetadata)
async def get_metadata(id: str) -> Response:
    """Read what editors may change of a video.

    The ETag names this version of it; send it back in If-Match with a change.
    """
    response = _metadata(await read_video(id))
    return await response.make_conditional(request)


@blueprint.put("/videos/<id>/metadata")
@policy(Policy.EDIT)
@document_headers(json_bodies.EditHeaders)
@document_request(VideoMetadata)
@document_response(VideoMetadata)
async def put_metadata(id: str) -> Response:
    """Change a video's title, description, categories and tags.

    The same rules hold as for its creation. If-Match must name the version that was read (or be
    `*`, which overwrites whatever is there); when someone else has changed the metadata since,
    nothing is written. Sending a change again that is recorded already is no conflict.
    """
    video = await read_video(id)
    version = json_bodies.version_read(str(video.metadata_version))
    categories = await web_context().categories.names()
    sent = json_bodies.validated(VideoMetadata, await json_bodies.read_json(), context=categories)
    return _metadata(await metadata.save_metadata(video.id, sent.value(), version=version))


@blueprint.get("/videos/<id>/access")
@policy(Policy.EDIT)
@document_response(AccessRecord)
async def get_access(id: str) -> Response:
    """Read who may see a video.

    The ETag names this version of it; send it back in If-Match with a change.
    """
    response = _access(await read_video(id))
    return await response.make_conditional(request)


@blueprint.put("/videos/<id>/access")
@policy(Policy.EDIT)
@document_headers(json_bodies.EditHeaders)
@document_request(AccessRecord)
@document_response(AccessRecord)
async def put_access(id: str) -> Response:
    """Change who may see a video.

    Once it is answered, it counts for every request; unless the video is public then, that takes
    2 s. If-Match must name the version that was read (or be `*`); when someone else has changed it
    since, nothing is written.
    """
    video = await read_video(id)
    version = json_bodies.version_read(recorded_access(video).version)
    sent = json_bodies.validated(AccessRecord, await json_bodies.read_json())
    return _access(await save_access(video.id, sent.value(), version=version))


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
    return json_bodies.json_response(DeletedVideo(id=id), 202)


def _metadata(video: Video) -> Response:
    record = recorded_shape(VideoMetadata, metadata.recorded(video))
    return json_bodies.json_response(
        record, cache_control="no-cache", etag=str(video.metadata_version)
    )


def _access(video: Video) -> Response:
    access = recorded_access(video)
    record = recorded_shape(AccessRecord, access)
    return json_bodies.json_response(record, cache_control="private, no-cache", etag=access.version)
