"""The API's description: for programs at /api/openapi.json, for people at /api/docs."""

from __future__ import annotations

from typing import Any

from quart import Blueprint, Response, current_app, jsonify, render_template

from portal.current import current_resources

blueprint = Blueprint("docs", __name__, url_prefix="/api")


@blueprint.get("/openapi.json")
async def openapi() -> Response:
    """The OpenAPI 3.1 document."""
    return jsonify(_document())


@blueprint.get("/docs")
async def docs() -> str:
    """The same as a page."""
    resources = current_resources()
    return await render_template(
        "api/docs.html", spec=_document(), base_url=resources.config.public_url
    )


def _document() -> dict[str, Any]:
    document: dict[str, Any] = current_app.extensions["QUART_SCHEMA"].openapi_provider.schema()
    return document
