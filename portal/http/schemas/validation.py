"""Validation of requests: bodies, queries and forms as shapes, and their faults by field."""

from collections.abc import Mapping
from difflib import get_close_matches
from functools import lru_cache
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails
from werkzeug.datastructures import MultiDict

from portal.errors import FieldError, InvalidRequest
from portal.http.schemas.base import ClosedShape
from portal.locale.messages import Message, numeral

Model = TypeVar("Model", bound=BaseModel)
Sent = TypeVar("Sent", bound=ClosedShape)

# Messages by pydantic's type of error. Rules of the portal have their own messages.
MESSAGES = {
    "missing": Message("This member is required."),
    "string_type": Message("Give a string."),
    **dict.fromkeys(
        ("int_type", "int_parsing_size", "int_from_float"), Message("Give an integer.")
    ),
    **dict.fromkeys(("float_type", "finite_number"), Message("Give a number.")),
    "list_type": Message("Give an array."),
    **dict.fromkeys(
        ("model_type", "model_attributes_type", "dict_type"), Message("Send one JSON object.")
    ),
    "string_too_short": Message("This may not be empty."),
    "too_short": Message("Choose at least one."),
    "bool_type": Message("Give true or false."),
}


def validated(shape: type[Sent], body: Any, *, context: object = None) -> Sent:
    """Return a body as a shape. Raises `InvalidRequest` with all its faults."""
    return _validate(shape, body, kind="member", context=context)


def validated_query(shape: type[Sent], parameters: MultiDict[str, str]) -> Sent:
    """Return the parameters of a query as a shape. Raises `InvalidRequest`.

    Repeated parameters are refused like misspelt ones, unless the shape takes several values.
    """
    query = {
        name: values[0] if len(values) == 1 else values
        for name, values in parameters.to_dict(flat=False).items()
    }
    return _validate(shape, query, kind="parameter")


def _validate(shape: type[Sent], value: Any, *, kind: str, context: object = None) -> Sent:
    try:
        return shape.model_validate(value, context=context, by_alias=True, by_name=False)
    except ValidationError as exc:
        raise InvalidRequest(field_errors(exc, shape, kind=kind), is_final=True) from exc


def recorded_shape(shape: type[Model], value: object) -> Model:
    """Return a record as a public shape, unchecked: earlier rules may have allowed its values."""
    columns: dict[str, Any] = {name: getattr(value, name) for name in shape.model_fields}
    for name, column in columns.items():
        if isinstance(column, tuple):
            columns[name] = list(column)
    return shape.model_construct(**columns)


def field_errors(
    error: ValidationError, shape: type[ClosedShape], *, kind: str = "member"
) -> list[FieldError]:
    """Return all faults that pydantic reported, each with its JSON pointer and a remedy.

    `kind` says what the shape consists of: members of a body, or parameters of a query.
    """
    errors = []
    for fault in error.errors():
        if fault["type"] == "extra_forbidden":
            message = _unknown_name_message(str(fault["loc"][-1]), shape, kind)
        else:
            message = _fault_message(fault)
        errors.append(FieldError(_json_pointer(fault["loc"]), message))
    return errors


def _unknown_name_message(name: str, shape: type[ClosedShape], kind: str) -> str:
    is_member = kind == "member"
    members = _known_names(shape)
    for nearest in get_close_matches(name, {*members, *shape.elsewhere}, n=1):
        if nearest not in members:
            remedy = shape.elsewhere[nearest]
            return Message("This member is not known here. %(remedy)s", remedy=remedy)
        if is_member:
            return Message("This member is not known here. Did you mean `%(name)s`?", name=nearest)
        return Message("This parameter is not known here. Did you mean `%(name)s`?", name=nearest)
    if is_member:
        return Message("This member is not known here.")
    return Message("This parameter is not known here.")


@lru_cache
def _known_names(shape: type[ClosedShape]) -> frozenset[str]:
    """Return the names of the members of a shape and of the shapes inside it."""
    schema = shape.model_json_schema()
    parts = (schema, *schema.get("$defs", {}).values())
    return frozenset(name for part in parts for name in part.get("properties", {}))


def _json_pointer(location: tuple[int | str, ...]) -> str:
    escaped = (str(part).replace("~", "~0").replace("/", "~1") for part in location)
    return "".join(f"/{part}" for part in escaped)


def _fault_message(fault: ErrorDetails) -> str:
    facts = fault.get("ctx", {})
    message: str | None = facts.get("fault") or _limit_message(fault, facts)
    return message or MESSAGES.get(fault["type"]) or fault["msg"]


def _limit_message(fault: ErrorDetails, facts: Mapping[str, Any]) -> Message | None:
    """Return the message of a type of error that has a limit or another value."""
    match fault["type"]:
        case "greater_than_equal":
            return Message("Give %(limit)s or more.", limit=numeral(facts["ge"]))
        case "less_than_equal":
            return Message("Give %(limit)s or less.", limit=numeral(facts["le"]))
        case "too_long" if not isinstance(fault["input"], str):
            return Message("Give at most %(limit)s.", limit=numeral(facts["max_length"]))
        # pydantic has one type of error for texts and arrays.
        case "string_too_long" | "too_long":
            return Message(
                "Shorten this to at most %(limit)s characters.",
                limit=numeral(facts["max_length"]),
            )
        case "string_pattern_mismatch":
            return Message("Give text that matches %(pattern)s.", pattern=facts["pattern"])
        case "literal_error" | "enum":
            # Such as 'public', 'unlisted' or 'private'.
            names, _, last = str(facts["expected"]).rpartition(" or ")
            return Message("Choose %(names)s or %(last)s.", names=names, last=last)
    return None
