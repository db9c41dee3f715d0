"""Parts of shapes: their base classes, the types of their members, and problem details."""

import re
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime
from typing import Annotated, Any, ClassVar, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, Field, StrictInt, StrictStr
from pydantic_core import PydanticCustomError

from portal.events.records import Shape, Size, Time
from portal.locale.messages import Message
from portal.videos.metadata import text_fault

Value = TypeVar("Value")

RFC3339 = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)")

DAY = re.compile(r"\d{4}-\d\d-\d\d")


def reject_if(fault: Callable[[Value], str | None]) -> AfterValidator:
    """Return a validator that rejects values for which `fault` returns a message."""
    return AfterValidator(lambda value: _check(value, fault(value)))


def fault_error(fault: str) -> PydanticCustomError:
    """Return the error with which a validator reports a fault; `field_errors` returns its text."""
    return PydanticCustomError("rule", "{fault}", {"fault": fault})


def _check(value: Value, message: str | None) -> Value:
    if message:
        raise fault_error(message)
    return value


def _check_storable(value: Any) -> Any:
    return _check(value, text_fault(value)) if isinstance(value, str) else value


def _to_whole_number(value: Any) -> Any:
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _check_rfc3339(value: Any) -> Any:
    # pydantic reads a number as seconds since 1970.
    is_valid = not isinstance(value, str) or RFC3339.fullmatch(value)
    return _check(value, None if is_valid else Message("Give a time like 2026-01-31T12:00:00Z."))


def _check_day(value: Any) -> Any:
    # pydantic reads digits as seconds since 1970.
    is_valid = not isinstance(value, str) or DAY.fullmatch(value)
    return _check(value, None if is_valid else Message("Give a day like 2026-01-31."))


def _to_utc(value: datetime) -> datetime:
    try:
        # PostgreSQL only takes offsets of up to 16 hours.
        return value.astimezone(UTC)
    except OverflowError:
        return _check(value, Message("Give a time between the years 1 and 9999."))


# JSON has one kind of number: 60.0 equals 60.
WholeNumber = Annotated[StrictInt, BeforeValidator(_to_whole_number)]
# Checked before pydantic, whose message about surrogates is less clear.
Text = Annotated[StrictStr, BeforeValidator(_check_storable)]
Day = Annotated[date, BeforeValidator(_check_day)]
Timestamp = Annotated[Time, BeforeValidator(_check_rfc3339), AfterValidator(_to_utc)]

CommaSeparated = BeforeValidator(
    lambda value: ",".join(value if isinstance(value, list) else [value]).split(",")
)


class ClosedShape(Shape, extra="forbid"):
    """Base of all shapes of requests, which refuse unknown members and parameters.

    Otherwise a request with a misspelt `visibility` would publish a private video.
    """

    # Remedies for members that another part of the API takes, by name.
    elsewhere: ClassVar[Mapping[str, str]] = {}


class EmptyShape(ClosedShape):
    """Body or query of a route that takes no members."""


class Fault(Shape):
    """Fault in a request's body, query or headers."""

    pointer: str = Field(description="RFC 6901 JSON pointer to the invalid member or parameter.")
    message: str = Field(description="Fault and remedy for people, in English.")


class Problem(Shape):
    """RFC 9457 problem details."""

    type: str = Field(description="Address of the error's description.")
    title: str = Field(description="Name of the error for people.")
    status: int = Field(description="Status of the response.")
    detail: str = Field(description="Reason and remedy for people, in English.")
    code: str = Field(description="Stable name of the error, for programs.")


class ValidationProblem(Problem):
    """Problem details that list every fault of the request at once."""

    errors: list[Fault] = Field(description="All faults of the request.")


class QuotaProblem(Problem):
    """Problem details with the account's quota, if a quota is exceeded."""

    limit: Size | None = Field(
        default=None,
        description="With video_quota_exceeded, the account's videos in 24 hours; with "
        "storage_quota_exceeded, its bytes of storage.",
    )
    used: Size | None = Field(
        default=None, description="With `limit`: the part of it that is used."
    )
    free_at: Timestamp | None = Field(
        default=None,
        description="With video_quota_exceeded only: when you can publish the next video.",
    )


class EditHeaders(BaseModel):
    """Headers of a change that requires If-Match."""

    if_match: str = Field(
        alias="If-Match", description="The ETag that you read, or `*` for any version."
    )


class PatchHeaders(BaseModel):
    """Headers of a change for which If-Match is optional."""

    if_match: str | None = Field(None, alias="If-Match", description="The ETag that you read.")
