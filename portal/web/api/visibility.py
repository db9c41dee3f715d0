"""Who may see a video, and which sites may frame it: read and changed by its editors."""

from typing import Annotated, Self

from pydantic import ConfigDict, Field, StrictBool, model_validator
from pydantic_core import InitErrorDetails, PydanticCustomError, ValidationError
from quart import Blueprint, Response, request
from quart_schema import document_headers, document_request, document_response, tag_blueprint

from portal.database.models import Video, Visibility
from portal.text import MAX_SITE_LENGTH, SITE_PATTERN
from portal.videos.visibility import (
    MAX_EMBED_ORIGINS,
    VideoAccess,
    embed_origin_fault,
    recorded_access,
    save_access,
    signed_in_only_fault,
)
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
from portal.web.videos import read_video

blueprint = Blueprint("api_visibility", __name__, url_prefix="/api")
tag_blueprint(blueprint, ["Access"])

EmbedOrigin = Annotated[
    Text,
    reject_if(embed_origin_fault),
    Field(json_schema_extra={"pattern": SITE_PATTERN, "maxLength": MAX_SITE_LENGTH}),
]


class AccessRecord(Shape):
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


def access_record(access: VideoAccess) -> AccessRecord:
    """The public shape."""
    return AccessRecord(
        visibility=access.visibility,
        signed_in_only=access.signed_in_only,
        embed_origins=list(access.embed_origins),
    )


@blueprint.get("/videos/<id>/access")
@policy(Policy.EDIT)
@document_response(AccessRecord)
async def get_access(id: str) -> Response:
    """Read who may see a video.

    The ETag names this version of it; send it back in If-Match with a change.
    """
    response = _answer(await read_video(id))
    return await response.make_conditional(request)


@blueprint.put("/videos/<id>/access")
@policy(Policy.EDIT)
@document_headers(EditHeaders)
@document_request(AccessRecord)
@document_response(AccessRecord)
async def put_access(id: str) -> Response:
    """Change who may see a video.

    Once it is answered, it counts for every request; unless the video is public then, that takes
    2 s. If-Match must name the version that was read (or be `*`);
    when someone else has changed it since, nothing is written.
    """
    video = await read_video(id)
    version = version_read(recorded_access(video).version)
    sent = validated(AccessRecord, await read_json())
    return _answer(await save_access(video.id, sent.value(), version=version))


def _answer(video: Video) -> Response:
    access = recorded_access(video)
    return json_response(
        access_record(access), cache_control="private, no-cache", etag=access.version
    )
