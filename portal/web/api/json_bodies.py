"""JSON bodies of the API: what is taken as one, how it is checked, how an answer is written."""

from __future__ import annotations

import json
from typing import Any, NoReturn, TypeVar

from pydantic import BaseModel, ValidationError
from quart import Response, request

from portal.errors import InvalidRequest, MalformedBody, NotJson
from portal.web.api.schemas import field_errors

Shape = TypeVar("Shape", bound=BaseModel)

MAX_INTEGER_DIGITS = 30


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


def json_response(shape: BaseModel, status: int = 200) -> Response:
    return Response(shape.model_dump_json(), status, content_type="application/json")


def _integer(digits: str) -> int:
    # Python refuses to read very long ones. Cut off they are out of every member's range still.
    return int(digits[:MAX_INTEGER_DIGITS])


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")
