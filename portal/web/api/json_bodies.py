"""JSON of the API: the base of its shapes, how bodies and queries are read, checked and written."""

import json
import re
from collections.abc import Callable, Collection, Mapping
from datetime import UTC, datetime
from difflib import get_close_matches
from functools import lru_cache
from typing import Annotated, Any, ClassVar, NoReturn, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    Field,
    StrictInt,
    StrictStr,
    ValidationError,
)
from pydantic_core import ErrorDetails, PydanticCustomError
from quart import Response, current_app, request
from quart_schema.validation import (
    QUART_SCHEMA_QUERYSTRING_ATTRIBUTE,
    QUART_SCHEMA_REQUEST_ATTRIBUTE,
)

from portal.errors import FieldError, InvalidRequest, MalformedBody, NotJson, VersionRequired
from portal.events.records import Shape as Shape
from portal.events.records import Size as Size
from portal.events.records import Time
from portal.events.records import Uri as Uri
from portal.videos.metadata import text_fault
from portal.web.server.context import SAFE_METHODS

Model = TypeVar("Model", bound=BaseModel)
Sent = TypeVar("Sent", bound="ClosedShape")
Value = TypeVar("Value")

MAX_INTEGER_DIGITS = 30
RFC3339 = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)")
# By pydantic's type of error; the rules of this API bring their own words.
MESSAGES = {
    "missing": "This member is required.",
    "string_type": "Give a string.",
    **dict.fromkeys(("int_type", "int_parsing_size", "int_from_float"), "Give an integer."),
    "greater_than_equal": "Give {ge:,} or more.",
    "less_than_equal": "Give {le:,} or less.",
    "list_type": "Give an array.",
    **dict.fromkeys(("model_type", "model_attributes_type", "dict_type"), "Send one JSON object."),
    **dict.fromkeys(("string_too_short", "too_short"), "This may not be empty."),
    "string_too_long": "Shorten this to at most {max_length:,} characters.",
    "too_long": "Give at most {max_length:,}.",
    "string_pattern_mismatch": "Give text that matches {pattern}.",
    **dict.fromkeys(("literal_error", "enum"), "Choose {expected}."),
    "bool_type": "Give true or false.",
}
JSON = "application/json"
# No version has this name.
OUTDATED = "outdated"


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


async def read_json(*, mimetypes: Collection[str] = (JSON,)) -> Any:
    """The request's body, or `NotJson` or `MalformedBody`."""
    if request.mimetype not in mimetypes:
        raise NotJson
    body = await request.get_data(cache=True, as_text=False, parse_form_data=False)
    try:
        # Decoded here, because json.loads would accept other encodings of bytes too.
        return json.loads(
            body.decode("utf-8"),
            object_pairs_hook=_object,
            parse_int=_integer,
            parse_constant=_refuse,
        )
    except (ValueError, RecursionError) as exc:
        raise MalformedBody from exc


def _object(members: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(members)
    # Of two values for `visibility` the wrong one could count.
    if len(value) < len(members):
        raise ValueError("a member is named twice")
    return value


def _integer(digits: str) -> int:
    # Python refuses to read very long ones. Cut off they are out of every member's range still.
    return int(digits[:MAX_INTEGER_DIGITS])


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


def validated(shape: type[Sent], body: Any, *, context: object = None) -> Sent:
    """Return the body as this shape, or raise `InvalidRequest` with all its faults."""
    return _validated(shape, body, kind="member", context=context)


def validated_query(shape: type[Sent]) -> Sent:
    """Return the parameters of the address as this shape, or raise `InvalidRequest`.

    A parameter that is given twice is refused like a misspelt one, unless it takes several values.
    """
    parameters = request.args.to_dict(flat=False)
    query = {name: values[0] if len(values) == 1 else values for name, values in parameters.items()}
    return _validated(shape, query, kind="parameter")


def _validated(shape: type[Sent], value: Any, *, kind: str, context: object = None) -> Sent:
    try:
        return shape.model_validate(value, context=context, by_alias=True, by_name=False)
    except ValidationError as exc:
        raise InvalidRequest(field_errors(exc, shape, kind=kind), is_final=True) from exc


async def refuse_undocumented() -> None:
    """Raise `InvalidRequest` if the request has a query or JSON members but its route takes none.

    A route that documents a shape reads it itself.
    """
    view = current_app.view_functions[str(request.endpoint)]
    if request.args and not hasattr(view, QUART_SCHEMA_QUERYSTRING_ATTRIBUTE):
        validated_query(EmptyShape)
    if request.method in SAFE_METHODS or hasattr(view, QUART_SCHEMA_REQUEST_ATTRIBUTE):
        return
    body = await request.get_data(cache=True, as_text=False, parse_form_data=False)
    if body and request.mimetype == JSON:
        validated(EmptyShape, await read_json())


def recorded_shape(shape: type[Model], value: object) -> Model:
    """The public shape of a record, unchecked: what earlier rules allowed can still be read."""
    found = {name: getattr(value, name) for name in shape.model_fields}
    columns: Any = {name: list(it) if isinstance(it, tuple) else it for name, it in found.items()}
    return shape.model_construct(**columns)


def field_errors(
    error: ValidationError, shape: type[ClosedShape], *, kind: str = "member"
) -> list[FieldError]:
    """Return all faults that pydantic found in a shape, each with its JSON pointer and the remedy.

    `kind` is what the shape consists of: members of a body or parameters of an address.
    """
    errors = []
    for fault in error.errors():
        if fault["type"] == "extra_forbidden":
            message = _unknown_name_message(str(fault["loc"][-1]), shape, kind)
        else:
            message = _message(fault)
        errors.append(FieldError(_pointer(fault["loc"]), message))
    return errors


def _unknown_name_message(name: str, shape: type[ClosedShape], kind: str) -> str:
    message = f"This {kind} is not known here."
    members = _known_names(shape)
    for nearest in get_close_matches(name, {*members, *shape.elsewhere}, n=1):
        remedy = f"Did you mean `{nearest}`?" if nearest in members else shape.elsewhere[nearest]
        return f"{message} {remedy}"
    return message


@lru_cache
def _known_names(shape: type[ClosedShape]) -> frozenset[str]:
    """Return the names of a shape's members, and of the shapes inside it."""
    schema = shape.model_json_schema()
    parts = (schema, *schema.get("$defs", {}).values())
    return frozenset(name for part in parts for name in part.get("properties", {}))


def _pointer(location: tuple[int | str, ...]) -> str:
    escaped = (str(part).replace("~", "~0").replace("/", "~1") for part in location)
    return "".join(f"/{part}" for part in escaped)


def _message(fault: ErrorDetails) -> str:
    # pydantic has one type for a text and an array.
    is_text = fault["type"] == "too_long" and isinstance(fault["input"], str)
    words = MESSAGES.get("string_too_long" if is_text else fault["type"])
    return words.format(**fault.get("ctx", {})) if words else fault["msg"]


def version_read(newest: str, *, is_needed: bool = True) -> str | None:
    """Return the version that If-Match names (RFC 9110, 13.1.1).

    This is the newest, `OUTDATED`, or None for any. Another version than the newest is no conflict
    yet: perhaps only an answer was lost, and what is sent is what is recorded. The ETag of a record
    that also shows other things names the version before a dot. Raises `VersionRequired` if the
    header `is_needed` but missing.
    """
    if is_needed and "If-Match" not in request.headers:
        raise VersionRequired
    tags = request.if_match
    if tags.star_tag or "If-Match" not in request.headers:
        return None
    versions = {tag.partition(".")[0] for tag in tags.as_set()}
    return newest if newest in versions else OUTDATED


def json_response(
    shape: BaseModel, status: int = 200, *, cache_control: str = "", etag: str = ""
) -> Response:
    """An answer with this body."""
    response = Response(shape.model_dump_json(), status, content_type=JSON)
    if cache_control:
        response.headers["Cache-Control"] = cache_control
    if etag:
        response.set_etag(etag)
    return response
