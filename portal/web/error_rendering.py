"""How errors are shown: RFC 9457 problem details under /api, an HTML page elsewhere.

People get the message; the log gets the cause and the request's id.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Mapping
from dataclasses import asdict

import psycopg
import psycopg_pool
from jinja2 import TemplateNotFound
from quart import Quart, Response, render_template, request
from tortoise.exceptions import DBConnectionError
from werkzeug.exceptions import HTTPException

from portal.errors import DatabaseUnavailable, InvalidRequest, PortalError
from portal.telemetry.logs import current_fields
from portal.web.server.prepared_answers import Refusal
from portal.web.server.request_context import may_be_framed

logger = logging.getLogger(__name__)

DATABASE_ERRORS = (psycopg.OperationalError, psycopg_pool.PoolTimeout, DBConnectionError)
# Plain words for what the web framework itself refuses; the rest keeps its own description.
HTTP_WORDS = {
    404: "There is nothing at this address.",
    405: "This address does not take that method; see the Allow header.",
    413: "The request body is larger than the 64 KiB that are allowed.",
}


class _HttpError(PortalError):
    """An error that Quart or Werkzeug raised."""

    def __init__(self, error: HTTPException) -> None:
        status = error.code or 500
        super().__init__(HTTP_WORDS.get(status, error.description))
        self.http_status = status
        self.http_title = error.name
        self.http_headers = {
            name: value for name, value in error.get_headers() if name in ("Allow", "Retry-After")
        }


def install_error_handlers(app: Quart) -> None:
    """Every exception that leaves a view is turned into an answer here."""

    @app.errorhandler(PortalError)
    async def portal_error(error: PortalError) -> Response:
        if error.__cause__ is not None and error.status >= 500:
            logger.warning("%s", error.code, exc_info=error, extra={"action": error.code})
        return await _answer(error)

    @app.errorhandler(HTTPException)
    async def http_error(error: HTTPException) -> Response:
        return await _answer(_HttpError(error))

    @app.errorhandler(Exception)
    async def unexpected(error: Exception) -> Response:
        if isinstance(error, DATABASE_ERRORS):
            logger.warning("Database: %s", error, extra={"action": "database_unavailable"})
            return await _answer(DatabaseUnavailable())
        logger.error("Unexpected error", exc_info=error, extra={"action": "internal_error"})
        return await _answer(PortalError())


async def prepared_refusal(app: Quart, error: PortalError) -> Refusal:
    """The answer to whoever is turned away, made beforehand."""
    async with app.test_request_context("/"):
        page = await (await _answer(error)).get_data(as_text=False)
    async with app.test_request_context("/api/"):
        problem = await (await _answer(error)).get_data(as_text=False)
    headers = [(name.lower().encode(), value.encode()) for name, value in error.headers.items()]
    return Refusal(error.status, headers, problem, page)


async def _answer(error: PortalError) -> Response:
    status, title, code, headers = _facts(error)
    if f"{request.path}/".startswith("/api/"):
        body = _problem(error, status=status, title=title, code=code)
        response = Response(json.dumps(body), status, content_type="application/problem+json")
    else:
        response = Response(await _page(error, status=status, title=title), status)
    response.headers.extend(headers)
    return response


def _facts(error: PortalError) -> tuple[int, str, str, Mapping[str, str]]:
    if isinstance(error, _HttpError):
        code = re.sub(r"\W+", "_", error.http_title).lower()
        return error.http_status, error.http_title, code, error.http_headers
    return error.status, error.title, error.code, error.headers


def _problem(error: PortalError, *, status: int, title: str, code: str) -> dict[str, object]:
    problem: dict[str, object] = {
        "type": f"/api/docs#{code}",
        "title": title,
        "status": status,
        "detail": error.detail,
        "code": code,
        **error.extensions,
    }
    if isinstance(error, InvalidRequest):
        problem["errors"] = [asdict(fault) for fault in error.errors]
    return problem


async def _page(error: PortalError, *, status: int, title: str) -> str:
    context = {
        "status": status,
        "title": title,
        "message": error.detail,
        "request_id": current_fields().get("request_id", ""),
    }
    if may_be_framed(request.scope):
        # In a frame on another site, links to the rest of the portal would lead nowhere.
        return await render_template("embed/error.html", **context)
    try:
        return await render_template(f"errors/{status}.html", **context)
    except TemplateNotFound:
        return await render_template("errors/error.html", **context)
