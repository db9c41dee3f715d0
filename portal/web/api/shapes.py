"""What the API's shapes have in common: their base, texts, times, sizes, and problem details."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Annotated, Any, TypeVar

from pydantic import (
    AwareDatetime,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    StrictInt,
    StrictStr,
    WithJsonSchema,
)
from pydantic.alias_generators import to_camel
from pydantic.config import JsonDict
from pydantic_core import PydanticCustomError

from portal.videos.metadata import text_fault

Value = TypeVar("Value")

SIZE_FORMAT: JsonDict = {"format": "int64"}


def keeping(rule: Callable[[Value], str | None]) -> Callable[[Value], Value]:
    """A validator that refuses what breaks this rule, in the rule's words."""

    def check(value: Value) -> Value:
        if fault := rule(value):
            raise PydanticCustomError("rule", "{fault}", {"fault": fault})
        return value

    return check


def _storable(value: Any) -> Any:
    return keeping(text_fault)(value) if isinstance(value, str) else value


def _whole(value: Any) -> Any:
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _rfc3339(value: datetime) -> str:
    return value.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


# JSON has one kind of numbers: 60.0 is 60.
WholeNumber = Annotated[StrictInt, BeforeValidator(_whole)]
# Checked before pydantic sees the text, which has words of its own for surrogates.
Text = Annotated[StrictStr, BeforeValidator(_storable)]
Timestamp = Annotated[
    AwareDatetime,
    PlainSerializer(_rfc3339, return_type=str),
    WithJsonSchema({"type": "string", "format": "date-time"}),
]


class Shape(BaseModel):
    """What all shapes share: camelCase members, nothing changed after it was made."""

    model_config = ConfigDict(
        alias_generator=to_camel, populate_by_name=True, serialize_by_alias=True, frozen=True
    )


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
