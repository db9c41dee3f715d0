"""Audience of a video, as the API and the form of its page take it."""

from typing import Annotated, Self

from pydantic import ConfigDict, Field, StrictBool, model_validator
from pydantic_core import InitErrorDetails, ValidationError

from portal.database.models import Visibility
from portal.http.schemas.base import ClosedShape, Text, fault_error, reject_if
from portal.locale.messages import Message
from portal.text import MAX_SITE_LENGTH, SITE_PATTERN, shown
from portal.videos import visibility
from portal.videos.visibility import MAX_EMBED_ORIGINS, VideoAccess


def _named_fault(origin: str) -> str | None:
    """Return the fault of a site with its name: a form takes many sites in one field."""
    fault = visibility.embed_origin_fault(origin)
    return Message("“%(site)s”: %(fault)s", site=shown(origin), fault=fault) if fault else None


EmbedOrigin = Annotated[
    Text,
    reject_if(_named_fault),
    Field(json_schema_extra={"pattern": SITE_PATTERN, "maxLength": MAX_SITE_LENGTH}),
]


class AccessRecord(ClosedShape):
    """Audience of a video, and the sites that may show its player in a frame."""

    # The rule of `signed_in_only_fault`.
    model_config = ConfigDict(
        json_schema_extra={
            "if": {"properties": {"signedInOnly": {"const": True}}},
            "then": {"properties": {"visibility": {"const": Visibility.PRIVATE.value}}},
        }
    )

    visibility: Visibility = Field(
        description="`public`: listed; `unlisted`: by its address; `private`: its owner, admins, "
        "owners of the portal and, with `signedInOnly`, everyone with an account."
    )
    signed_in_only: StrictBool = Field(
        description="Whether everyone with an account may see a private video."
    )
    embed_origins: list[EmbedOrigin] = Field(
        max_length=MAX_EMBED_ORIGINS,
        description="Sites like `https://blog.example.org` or `https://*.example.org`. Empty "
        "leaves it to the portal's setting.",
    )

    @model_validator(mode="after")
    def _check_signed_in_only(self) -> Self:
        fault = visibility.signed_in_only_fault(self.visibility, signed_in_only=self.signed_in_only)
        if fault:
            error = fault_error(fault)
            detail = InitErrorDetails(type=error, loc=("signedInOnly",), input=self.signed_in_only)
            raise ValidationError.from_exception_data(type(self).__name__, [detail])
        return self

    def value(self) -> VideoAccess:
        """Return the audience without repeated sites, as services take it."""
        return VideoAccess(
            visibility=self.visibility,
            signed_in_only=self.signed_in_only,
            embed_origins=tuple(dict.fromkeys(self.embed_origins)),
        )
