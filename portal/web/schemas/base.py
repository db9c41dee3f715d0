"""Parts of shapes: their base classes, the types of their members, and problem details."""

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Annotated, Any, ClassVar, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, Field, StrictInt, StrictStr
from pydantic_core import PydanticCustomError

from portal.events.records import Shape, Size, Time
from portal.videos.metadata import text_fault

Value = TypeVar("Value")

RFC3339 = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)")


def reject_if(fault: Callable[[Value], str | None]) -> AfterValidator:
    """A validator that rejects a value for which `fault` has a message, with that message."""
    return AfterValidator(lambda value: _checked(value, fault(value)))


def _checked(value: Value, message: str | None) -> Value:
    if message:
        raise PydanticCustomError("rule", "{fault}", {"fault": message})
    return value


def _storable(value: Any) -> Any:
    return _checked(value, text_fault(value)) if isinstance(value, str) else value


def _whole(value: Any) -> Any:
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _is_rfc3339(value: Any) -> Any:
    # pydantic would take a number for seconds since 1970.
    is_told = not isinstance(value, str) or RFC3339.fullmatch(value)
    return _checked(value, None if is_told else "Give a time like 2026-01-31T12:00:00Z.")


def _in_utc(value: datetime) -> datetime:
    try:
        # PostgreSQL knows offsets up to 16 hours only.
        return value.astimezone(UTC)
    except OverflowError:
        return _checked(value, "Give a time between the years 1 and 9999.")


# JSON has one kind of numbers: 60.0 is 60.
WholeNumber = Annotated[StrictInt, BeforeValidator(_whole)]
# Checked before pydantic sees the text, which has words of its own for surrogates.
Text = Annotated[StrictStr, BeforeValidator(_storable)]
Timestamp = Annotated[Time, BeforeValidator(_is_rfc3339), AfterValidator(_in_utc)]


class ClosedShape(Shape, extra="forbid"):
    """Base of all shapes of requests: a member or parameter that it doesn't name is refused.

    Otherwise a request with a misspelt `visibility` would publish a private video.
    """

    # Remedies by the names of members that belong into another place of the API.
    elsewhere: ClassVar[Mapping[str, str]] = {}


class EmptyShape(ClosedShape):
    """Body or query of a route that takes none."""


class Fault(Shape):
    """One fault in a request body, or in the query of an address."""

    pointer: str = Field(description="RFC 6901 JSON pointer to what is at fault.")
    message: str


class Problem(Shape):
    """RFC 9457 problem details."""

    type: str
    title: str
    status: int
    detail: str
    code: str = Field(description="Stable name of the error, for programs.")


class ValidationProblem(Problem):
    """Problem details that list every fault of the request at once."""

    errors: list[Fault]


class QuotaProblem(Problem):
    """Problem details that tell how much an account may have, if that is the problem."""

    limit: Size | None = Field(
        default=None,
        description="With video_quota_exceeded videos in 24 hours, with storage_quota_exceeded "
        "bytes: how many the account may have.",
    )
    used: Size | None = Field(default=None, description="With limit: how many it has.")
    free_at: Timestamp | None = Field(
        default=None, description="With video_quota_exceeded only: when the next may be published."
    )


class EditHeaders(BaseModel):
    """What a change needs besides its body."""

    if_match: str = Field(alias="If-Match", description="The ETag of what was read, or `*`.")


class PatchHeaders(BaseModel):
    """What a change of what it names may need besides its body."""

    if_match: str = Field("*", alias="If-Match", description="The ETag of what was read.")
