"""Shapes of who may see a video."""

from typing import Annotated, Self

from pydantic import AfterValidator, ConfigDict, Field, StrictBool, model_validator
from pydantic.config import JsonDict
from pydantic_core import InitErrorDetails, PydanticCustomError, ValidationError

from portal.database.states import Visibility
from portal.text import MAX_SITE_LENGTH, SITE_PATTERN
from portal.videos.visibility import (
    MAX_EMBED_ORIGINS,
    VideoAccess,
    embed_origin_fault,
    signed_in_only_fault,
)
from portal.web.api.shapes import Shape, Text, keeping

EmbedOrigin = Annotated[
    Text,
    AfterValidator(keeping(embed_origin_fault)),
    Field(json_schema_extra={"pattern": SITE_PATTERN, "maxLength": MAX_SITE_LENGTH}),
]
# What `signed_in_only_fault` says.
FOR_PRIVATE_ALONE: JsonDict = {
    "if": {"properties": {"signedInOnly": {"const": True}}},
    "then": {"properties": {"visibility": {"const": Visibility.PRIVATE.value}}},
}


class AccessRecord(Shape):
    """Who may see a video, and which sites may show its player in a frame."""

    model_config = ConfigDict(json_schema_extra=FOR_PRIVATE_ALONE)

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
