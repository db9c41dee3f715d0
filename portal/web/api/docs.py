"""The API's description: for programs at /api/openapi.json, for people at /api/docs.

Both follow from the app alone and take a while to make, so each process makes them once; the frame
of the page is that of who asks.
"""

from typing import Any

from markupsafe import Markup
from quart import Blueprint, Response, current_app, jsonify, render_template

from portal.web.auth import Policy, policy
from portal.web.body_cache import cached_body
from portal.web.context import web_context

blueprint = Blueprint("docs", __name__, url_prefix="/api")


@blueprint.get("/openapi.json")
@policy(Policy.ANYONE)
async def openapi() -> Response:
    """The OpenAPI 3.1 document."""
    found = await web_context().documents.get("openapi", _json)
    return await found.answer(content_type="application/json", cache_control="no-cache")


@blueprint.get("/docs")
@policy(Policy.ANYONE)
async def docs() -> Response:
    """The same as a page."""
    found = await web_context().documents.get("docs", _reference)
    info = current_app.extensions["QUART_SCHEMA"].info
    reference = Markup(found.body.decode())  # noqa: S704 - rendered by a template
    page = cached_body(await render_template("api/docs.html", info=info, reference=reference))
    return await page.answer(content_type="text/html; charset=utf-8", cache_control="no-cache")


async def _json() -> str:
    return str(await jsonify(_document()).get_data(as_text=True))


async def _reference() -> str:
    base_url, spec = web_context().config.public_url, _document()
    given = {"spec": spec, "resources": _by_resource(spec), "base_url": base_url}
    return await render_template("api/_reference.html", **given)


def _by_resource(spec: dict[str, Any]) -> dict[str, list[tuple[str, str, dict[str, Any]]]]:
    """Method, path and description of each operation, by the first of its tags."""
    found: dict[str, list[tuple[str, str, dict[str, Any]]]] = {}
    for path, operations in spec["paths"].items():
        for method, operation in operations.items():
            found.setdefault(operation["tags"][0], []).append((method, path, operation))
    return found


def _document() -> dict[str, Any]:
    document: dict[str, Any] = current_app.extensions["QUART_SCHEMA"].openapi_provider.schema()
    return document
