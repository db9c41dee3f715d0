"""JSON bodies of the API, and queries: how they are read, checked and written."""

import json
from typing import Any, NoReturn, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails
from quart import Response, request

from portal.errors import FieldError, InvalidRequest, MalformedBody, NotJson

Shape = TypeVar("Shape", bound=BaseModel)

MAX_INTEGER_DIGITS = 30
# By pydantic's type of error; the rules of this API bring their own words.
MESSAGES = {
    "missing": "This member is required.",
    "string_type": "Give a string.",
    **dict.fromkeys(("int_type", "int_parsing_size", "int_from_float"), "Give an integer."),
    **dict.fromkeys(("greater_than_equal", "less_than_equal"), "Give an integer from 1 to 32767."),
    "list_type": "Give an array.",
    **dict.fromkeys(("model_type", "model_attributes_type", "dict_type"), "Send one JSON object."),
    **dict.fromkeys(("string_too_short", "too_short"), "This may not be empty."),
    "string_too_long": "Shorten this to at most {max_length:,} characters.",
    "too_long": "Give at most {max_length:,}.",
    **dict.fromkeys(("literal_error", "enum"), "Choose {expected}."),
    "bool_type": "Give true or false.",
}


async def read_json() -> Any:
    """The request's body, or `NotJson` or `MalformedBody`."""
    if request.mimetype != "application/json":
        raise NotJson
    body = await request.get_data(cache=True, as_text=False, parse_form_data=False)
    try:
        # Decoded here, because json.loads would accept other encodings of bytes too.
        return json.loads(body.decode("utf-8"), parse_int=_integer, parse_constant=_refuse)
    except (ValueError, RecursionError) as exc:
        raise MalformedBody from exc


def validated(shape: type[Shape], body: Any, *, context: object = None) -> Shape:
    """The body as this shape, or `InvalidRequest` with all its faults."""
    try:
        return shape.model_validate(body, context=context, by_alias=True, by_name=False)
    except ValidationError as exc:
        raise InvalidRequest(field_errors(exc)) from exc


def validated_query(shape: type[Shape]) -> Shape:
    """The parameters of the address as this shape, or `InvalidRequest`.

    One that is misspelt or given twice is refused: what it asks for would not be done.
    """
    given = request.args.to_dict(flat=False)
    known = {field.alias or name for name, field in shape.model_fields.items()}
    if unknown := sorted(given.keys() - known):
        words = f"There is no such parameter. The address takes {', '.join(sorted(known))}."
        raise InvalidRequest([FieldError(_pointer((name,)), words) for name in unknown])
    return validated(shape, {name: it[0] if len(it) == 1 else it for name, it in given.items()})


def json_response(shape: BaseModel, status: int = 200) -> Response:
    return Response(shape.model_dump_json(), status, content_type="application/json")


def field_errors(error: ValidationError) -> list[FieldError]:
    """All faults pydantic found, each with its JSON pointer and words that name the remedy."""
    return [FieldError(_pointer(fault["loc"]), _message(fault)) for fault in error.errors()]


def _pointer(location: tuple[int | str, ...]) -> str:
    escaped = (str(part).replace("~", "~0").replace("/", "~1") for part in location)
    return "".join(f"/{part}" for part in escaped)


def _message(fault: ErrorDetails) -> str:
    # pydantic has one type for a text and an array.
    is_text = fault["type"] == "too_long" and isinstance(fault["input"], str)
    words = MESSAGES.get("string_too_long" if is_text else fault["type"])
    return words.format(**fault.get("ctx", {})) if words else fault["msg"]


def _integer(digits: str) -> int:
    # Python refuses to read very long ones. Cut off they are out of every member's range still.
    return int(digits[:MAX_INTEGER_DIGITS])


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")
