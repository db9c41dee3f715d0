"""JSON bodies of the API: how they are read and written, and the versions that requests name."""

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from contextlib import asynccontextmanager
from typing import Any, NoReturn
from urllib.parse import urlencode

from pydantic import BaseModel
from quart import Response, current_app, request
from quart_schema.validation import (
    QUART_SCHEMA_QUERYSTRING_ATTRIBUTE,
    QUART_SCHEMA_REQUEST_ATTRIBUTE,
)

from portal.errors import MalformedBody, NotJson, VersionConflict, VersionRequired
from portal.events.records import Shape
from portal.http.schemas.base import EmptyShape
from portal.http.schemas.validation import validated, validated_query
from portal.http.server.context import SAFE_METHODS

MAX_INTEGER_DIGITS = 30
JSON = "application/json"
# Cache-Control of a response that contains a secret, such as an address that lets anyone watch.
NO_STORE = "no-store"


async def read_json(*, mimetypes: Collection[str] = (JSON,)) -> Any:
    """Return the JSON body of the current request. Raises `NotJson` or `MalformedBody`."""
    if request.mimetype not in mimetypes:
        raise NotJson
    body = await request.get_data(cache=True, as_text=False, parse_form_data=False)
    try:
        # Decoded here, because json.loads also accepts other encodings.
        return json.loads(
            body.decode("utf-8"),
            object_pairs_hook=_parse_object,
            parse_int=_parse_integer,
            parse_constant=_refuse_constant,
        )
    except (ValueError, RecursionError) as exc:
        raise MalformedBody from exc


def _parse_object(members: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(members)
    # A second value for `visibility` could replace the intended one.
    if len(value) < len(members):
        raise ValueError("a member is named twice")
    return value


def _parse_integer(digits: str) -> int:
    # Python refuses very long integers. Cut off, they are still out of range for every member.
    return int(digits[:MAX_INTEGER_DIGITS])


def _refuse_constant(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


async def refuse_undocumented() -> None:
    """Raise `InvalidRequest` for a query or JSON members that the route does not document.

    Routes that document a shape validate it themselves.
    """
    view = current_app.view_functions[str(request.endpoint)]
    if request.args and not hasattr(view, QUART_SCHEMA_QUERYSTRING_ATTRIBUTE):
        validated_query(EmptyShape, request.args)
    if request.method in SAFE_METHODS or hasattr(view, QUART_SCHEMA_REQUEST_ATTRIBUTE):
        return
    body = await request.get_data(cache=True, as_text=False, parse_form_data=False)
    if body and request.mimetype == JSON:
        validated(EmptyShape, await read_json())


def named_versions(*, is_required: bool = False) -> Collection[str] | None:
    """Return the versions that If-Match names (RFC 9110, 13.1.1); None for any.

    An ETag of an answer that shows more than the changed resource begins with the version of that
    resource and a dot. Raises `VersionRequired` if the header is required and missing.
    """
    if "If-Match" not in request.headers:
        if is_required:
            raise VersionRequired
        return None
    tags = request.if_match
    return None if tags.star_tag else {tag.partition(".")[0] for tag in tags.as_set()}


@asynccontextmanager
async def showing_present(
    read_present: Callable[[], Awaitable[tuple[Shape, str]]],
) -> AsyncIterator[None]:
    """Show the recorded values and their version in the answer to a conflicting change."""
    try:
        yield
    except VersionConflict as exc:
        present, version = await read_present()
        raise exc.with_present(present.model_dump(mode="json"), version=version) from None


def link_to_next(response: Response, **changes: str) -> None:
    """Add a Link header (RFC 8288) with the address of the next page: this one with changes."""
    arguments = {**request.args.to_dict(flat=False), **changes}
    address = f"{request.path}?{urlencode(arguments, doseq=True)}"
    response.headers["Link"] = f'<{address}>; rel="next"'


def json_response(
    shape: BaseModel, status: int = 200, *, cache_control: str = "", etag: str = ""
) -> Response:
    """Return a response with this body."""
    response = Response(shape.model_dump_json(), status, content_type=JSON)
    if cache_control:
        response.headers["Cache-Control"] = cache_control
    if etag:
        response.set_etag(etag)
    return response
