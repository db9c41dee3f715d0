"""How errors are shown: RFC 9457 problem details under /api, an HTML page elsewhere.

People get the message; the log gets the cause and the request's id.
"""

import logging
import re

import psycopg
import psycopg_pool
from quart import Quart, Response, render_template, request
from tortoise.exceptions import DBConnectionError
from werkzeug.exceptions import HTTPException

from portal.errors import DatabaseUnavailable, PortalError
from portal.telemetry.logs import current_fields
from portal.web.server.error_responses import PROBLEM_TYPE, is_api, problem_document
from portal.web.server.request_context import state_of

logger = logging.getLogger(__name__)

DATABASE_ERRORS = (psycopg.OperationalError, psycopg_pool.PoolTimeout, DBConnectionError)
# For what the web framework itself refuses; the rest keeps its own description.
HTTP_MESSAGES = {
    404: "There is nothing at this address.",
    405: "This address does not take that method; see the Allow header.",
    413: "The request body is larger than the 64 KiB that are allowed.",
}


class _HttpError(PortalError):
    """An error that Quart or Werkzeug raised."""

    def __init__(self, error: HTTPException) -> None:
        self.status = error.code or 500
        self.title = error.name
        self.code = re.sub(r"\W+", "_", error.name).lower()
        super().__init__(HTTP_MESSAGES.get(self.status, error.description))
        self.headers = {
            name: value for name, value in error.get_headers() if name in ("Allow", "Retry-After")
        }


def install_error_handlers(app: Quart) -> None:
    """Every exception that leaves a view is turned into a response here."""

    @app.errorhandler(PortalError)
    async def portal_error(error: PortalError) -> Response:
        if error.__cause__ is not None and error.status >= 500:
            logger.warning("%s", error.code, exc_info=error, extra={"action": error.code})
        return await _response(error)

    @app.errorhandler(HTTPException)
    async def http_error(error: HTTPException) -> Response:
        return await _response(_HttpError(error))

    @app.errorhandler(Exception)
    async def unexpected(error: Exception) -> Response:
        if isinstance(error, DATABASE_ERRORS):
            logger.warning("Database: %s", error, extra={"action": "database_unavailable"})
            return await _response(DatabaseUnavailable())
        logger.error("Unexpected error", exc_info=error, extra={"action": "internal_error"})
        return await _response(PortalError())


async def render_page(app: Quart, error: PortalError) -> bytes:
    """The page of an error, for any request that fails like this."""
    async with app.test_request_context("/"):
        return (await _page(error)).encode()


async def _response(error: PortalError) -> Response:
    if is_api(request.path):
        response = Response(problem_document(error), error.status, content_type=PROBLEM_TYPE)
    else:
        response = Response(await _page(error), error.status)
    response.headers.extend(error.headers)
    return response


async def _page(error: PortalError) -> str:
    context = {
        "status": error.status,
        "title": error.title,
        "message": error.detail,
        "request_id": current_fields().get("request_id", ""),
    }
    if state_of(request.scope).is_frameable:
        # In a frame on another site, links to the rest of the portal would lead nowhere.
        return await render_template("embed/error.html", **context)
    return await render_template([f"errors/{error.status}.html", "errors/error.html"], **context)
