"""Rendering of errors: RFC 9457 problem details for programs, an HTML page for people.

People get the message; the log gets the cause and the request's id. A fragment declares a template
that replaces it once its video is deleted.
"""

import json
import logging
import re
from contextlib import suppress
from http import HTTPStatus
from uuid import UUID

import psycopg
from quart import Quart, Response, current_app, g, render_template, request, url_for
from tortoise.exceptions import IntegrityError
from werkzeug.exceptions import HTTPException

from portal import errors
from portal.database.outages import is_outage
from portal.http.auth import declaration_of, named_video_id, principal
from portal.http.composition import web_context
from portal.http.languages import translated
from portal.http.server.context import state_of
from portal.locale.messages import Message
from portal.telemetry.logs import current_fields

logger = logging.getLogger(__name__)

PROBLEM_TYPE = "application/problem+json"
# Beginnings of the paths whose errors are problem documents.
FOR_PROGRAMS = ("/api/", "/audit.jsonl/", "/feeds/", "/hand-in-files/", "/hls/")
# A request's own value: whether its refusal is final (`PortalError.is_final`).
REFUSED_FINALLY = "refused_finally"

# Foreign keys from a row to the account of its owner.
OWNERS = frozenset(
    {
        "hand_ins_owner_id_fkey",
        "series_owner_id_fkey",
        "uploads_owner_id_fkey",
        "videos_owner_id_fkey",
        "watch_positions_account_id_fkey",
    }
)
# Errors of addresses that only people in an audience can open.
NOT_THERE = (errors.VideoNotFound, errors.SeriesNotFound)
# Errors of addresses that a password opens.
LOCKED = (errors.VideoLocked, errors.SeriesLocked)
# Titles and messages for errors of the web framework. Others keep its name and description.
HTTP_TITLES = {
    404: Message("Not Found"),
    405: Message("Method Not Allowed"),
    408: Message("Request Timeout"),
    413: Message("Request Entity Too Large"),
}
HTTP_MESSAGES = {
    404: Message("There is nothing at this address."),
    405: Message(
        "This address doesn't accept this method. The Allow header names those it accepts."
    ),
    408: Message("The request body did not arrive within 20 seconds."),
    413: Message("The request body is too large. Most addresses accept at most 64 KiB."),
}


class _HttpError(errors.PortalError):
    """Error that Quart or Werkzeug raised."""

    def __init__(self, error: HTTPException) -> None:
        self.status = error.code or 500
        self.title = HTTP_TITLES.get(self.status, error.name)
        self.code = re.sub(r"\W+", "_", error.name).lower()
        super().__init__(HTTP_MESSAGES.get(self.status, error.description))
        self.headers = {
            name: value for name, value in error.get_headers() if name in ("Allow", "Retry-After")
        }


def install_error_handlers(app: Quart) -> None:
    """Turn every exception that leaves a view into a response."""

    @app.errorhandler(errors.PortalError)
    async def portal_error(error: errors.PortalError) -> Response:
        if error.__cause__ is not None and error.status >= 500:
            cause = repr(error.__cause__)
            logger.warning("%s: %s", error.code, cause, extra={"action": error.code})
        setattr(g, REFUSED_FINALLY, error.is_final)
        if type(error) is errors.VideoNotFound:
            error = await _explained(error)
        return await _error_response(error)

    @app.errorhandler(HTTPException)
    async def http_error(error: HTTPException) -> Response:
        return await _error_response(_HttpError(error))

    @app.errorhandler(Exception)
    async def unexpected(error: Exception) -> Response:
        if _is_owner_gone(error):
            return await _error_response(errors.NotSignedIn(Message("Your account was removed.")))
        if is_outage(error):
            logger.warning(
                "Database unreachable: %s", error, extra={"action": "database_unavailable"}
            )
            return await _error_response(errors.DatabaseUnavailable())
        if isinstance(error, psycopg.errors.QueryCanceled):
            logger.warning(
                "A statement exceeded its time limit", extra={"action": "statement_timeout"}
            )
            return await _error_response(errors.Overloaded())
        logger.error("Unexpected error", exc_info=error, extra={"action": "internal_error"})
        return await _error_response(errors.PortalError())


async def _explained(error: errors.VideoNotFound) -> errors.VideoNotFound:
    """Return why there is no video of the requested id yet, or else the error."""
    video_id = named_video_id()
    if video_id is None:
        return error
    pending = await web_context().find_pending(video_id, await principal())
    return pending.absence if pending else error


def _is_owner_gone(error: Exception) -> bool:
    """Return whether an insert failed because the account of its owner was removed."""
    cause = error.args[0] if isinstance(error, IntegrityError) and error.args else None
    if not isinstance(cause, psycopg.errors.ForeignKeyViolation):
        return False
    return cause.diag.constraint_name in OWNERS


def problem_document(error: errors.PortalError) -> bytes:
    """Return the error as problem details (RFC 9457), in English unless a page asks."""
    problem: dict[str, object] = {
        "type": f"/api/docs#{error.code}",
        "title": error.title,
        "status": error.status,
        "detail": translated(error.detail),
        "code": error.code,
        **error.extensions,
    }
    if isinstance(error, errors.InvalidRequest):
        problem["errors"] = [
            {"pointer": fault.pointer, "message": translated(fault.message)}
            for fault in error.errors
        ]
    return json.dumps(problem).encode()


def page_above(path: str) -> str:
    """Return the nearest page above an address that only takes forms.

    Fragments don't count as pages. Forms of the workshop lead to the workshop.
    """
    addresses = current_app.create_url_adapter(request)
    if addresses is None:
        return "/"
    parts = path.strip("/").split("/")
    ancestors = ["/" + "/".join(parts[:count]) for count in range(len(parts) - 1, 0, -1)]
    if parts[0] == "videos" and len(parts) > 2 and parts[2] not in ("retry", "status"):
        ancestors.insert(0, f"/videos/{parts[1]}/edit")
    for address in ancestors:
        with suppress(HTTPException):
            endpoint, _ = addresses.match(address, method="GET")
            declaration = declaration_of(current_app, endpoint)
            if declaration is not None and not declaration.unavailable_template:
                return address
    return "/"


async def _error_response(error: errors.PortalError) -> Response:
    is_api = f"{request.path}/".startswith(FOR_PROGRAMS)
    # A program with a refused token can't use a sign-in form.
    is_signed_out = isinstance(error, errors.NotSignedIn) and not isinstance(
        error, errors.TokenRefused
    )
    if is_signed_out and not is_api and _is_page():
        sign_in = url_for("signing_in.form", next=request.full_path.rstrip("?"))
        return Response(status=303, headers={"Location": sign_in})
    if error.status == HTTPStatus.METHOD_NOT_ALLOWED and not is_api and _is_page():
        return Response(status=303, headers={"Location": page_above(request.path)})
    declaration = declaration_of(current_app, request.endpoint) if request.endpoint else None
    if declaration and declaration.unavailable_template and isinstance(error, errors.VideoNotFound):
        return Response(await render_template(declaration.unavailable_template), 410)
    video_id = named_video_id()
    series_id = (request.view_args or {}).get("series_id")
    if is_api:
        response = Response(problem_document(error), error.status, content_type=PROBLEM_TYPE)
    elif isinstance(error, LOCKED) and (video_id or series_id) and _is_page():
        next_path = request.full_path.rstrip("?")
        page = await locked_page(next_path, video_id=video_id, series_id=series_id)
        response = Response(page, error.status)
    else:
        # On a 5xx the session lookup may have failed, so render without a viewer.
        viewer = {"viewer": None} if error.status >= HTTPStatus.INTERNAL_SERVER_ERROR else {}
        response = Response(await error_page(error, **viewer), error.status)
    response.headers.extend(error.headers)
    return response


async def locked_page(
    next_path: str,
    *,
    video_id: UUID | None = None,
    series_id: str | None = None,
    fault: str = "",
) -> str:
    """Render the form for the password of a video or a series, also for a frame.

    The form leads to `next_path`. `fault` is the fault of the entered password.
    """
    is_framed = bool(state_of(request.scope).framed_by)
    return await render_template(
        "watching/locked_embed.html" if is_framed else "watching/locked.html",
        video_id=video_id,
        series_id=series_id,
        next_path=next_path,
        fault=fault,
        title=errors.VideoLocked.title,
    )


def _is_page() -> bool:
    """Return whether the request is for a page, from which a person can be redirected."""
    return request.method == "GET" and "HX-Request" not in request.headers


async def error_page(error: errors.PortalError, **viewer: None) -> str:
    """Render the page of an error, for the current request."""
    context = {
        "status": error.status,
        "title": error.title,
        "message": error.detail,
        "request_id": current_fields().get("request_id", ""),
        # Offers to sign in and return to the address.
        "section": "video" if isinstance(error, NOT_THERE) and _is_page() else "",
        **viewer,
    }
    state = state_of(request.scope)
    if state.framed_by or state.playback_token:
        # A frame on another site, or a playback link, does not grant the rest of the portal.
        return await render_template("watching/embed_error.html", **context)
    return await render_template("errors/error.html", **context)
