"""Idempotency-Key: a repeated request gets the first answer again, for a day.

See draft-ietf-httpapi-idempotency-key-header-07.

A key's row is inserted before the view begins, by a statement that only one web process wins, and
updated with the answer after it. A process that is killed in between leaves a row without an
answer; a repeated request takes the row over once no request can still be running. A refusal is
kept if the body or the query is invalid. After any other refusal, such as a missing upload or a
limit, a repeated request may succeed. Requests that are refused before the view, for example by
its policy, have no row.
"""

import asyncio
import json
import re
from hashlib import sha256
from http import HTTPStatus
from uuid import UUID

from hypercorn.typing import ASGIReceiveCallable as Receive
from hypercorn.typing import ASGIReceiveEvent as ReceiveEvent
from hypercorn.typing import ASGISendCallable as Send
from hypercorn.typing import HTTPScope
from quart import Response, current_app, g, request

from portal.database.connection import execute, fetch_rows
from portal.database.outages import skipped_in_outage
from portal.errors import FieldError, IdempotencyKeyReused, InvalidRequest, RequestInProgress
from portal.http.auth import SEEN, Policy, declaration_of, principal
from portal.http.errors import REFUSED_FINALLY
from portal.http.server.context import App, header
from portal.locale.messages import Message

HEADER = "Idempotency-Key"
METHODS = frozenset({"POST", "PATCH"})
MAX_LENGTH = 255
PARAMETER = {
    "name": HEADER,
    "in": "header",
    "required": False,
    "description": "Any new text. A request with the same text within 24 h gets the first answer.",
    "schema": {"type": "string", "minLength": 1, "maxLength": MAX_LENGTH, "pattern": "^[!-~]+$"},
}
VALID = re.compile(rf"[!-~]{{1,{MAX_LENGTH}}}")
NOBODY = UUID(int=0)
# A request's own value: the row that awaits its answer.
BEGUN = "idempotency_row"
KEPT_S = 24 * 3600
# Longest duration of a request; see `app.RESPONSE_TIMEOUT_S`.
LOST_S = 60
BEGIN = """
INSERT INTO idempotency_keys AS present (account_id, key, fingerprint) VALUES (%s, %s, %s)
ON CONFLICT (account_id, key) DO UPDATE
  SET fingerprint = excluded.fingerprint, began_at = excluded.began_at, status = NULL
  WHERE present.began_at < now() - make_interval(secs => %s)
    OR present.status IS NULL AND present.fingerprint = excluded.fingerprint
      AND present.began_at < now() - make_interval(secs => %s)
RETURNING began_at
"""
ROW = "account_id = %s AND key = %s"
READ = f"SELECT fingerprint, status, headers, body FROM idempotency_keys WHERE {ROW}"  # noqa: S608
# The row, unless another request has taken it over.
OWN_ROW = f"{ROW} AND began_at = %s"
KEEP = f"UPDATE idempotency_keys SET status = %s, headers = %s, body = %s WHERE {OWN_ROW}"  # noqa: S608
FORGET = f"DELETE FROM idempotency_keys WHERE {OWN_ROW}"  # noqa: S608


def keeps_answers(method: str, policy: Policy) -> bool:
    """Return whether responses to this method are stored under the request's Idempotency-Key.

    They are not for routes that viewers use: a repeated request does no harm there, and visitors
    without an account could fill the table.
    """
    return method in METHODS and policy not in SEEN


async def replay() -> Response | None:
    """Return the first answer if the current request is a repeated one.

    Raises `IdempotencyKeyReused`, `RequestInProgress`, or `InvalidRequest` for an invalid key.
    """
    is_call = request.method in METHODS and f"{request.path}/".startswith("/api/")
    if not is_call or request.endpoint is None or HEADER not in request.headers:
        return None
    declaration = declaration_of(current_app, request.endpoint)
    if declaration is None or not keeps_answers(request.method, declaration.policy):
        return None
    caller = await principal()
    if caller.role is None:
        # Anyone can be a sender of a hand-in link, and could fill the table.
        return None
    key = request.headers[HEADER]
    if not VALID.fullmatch(key):
        fault = Message(
            "Give 1 to %(limit)s visible ASCII characters, or leave the header out.",
            limit=MAX_LENGTH,
        )
        raise InvalidRequest([FieldError(f"/{HEADER}", fault)])
    body = await request.get_data(cache=True, as_text=False, parse_form_data=False)
    fingerprint = sha256(f"{request.method} {request.full_path}\n".encode() + body).digest()
    row_id = (caller.account_id or NOBODY, key)
    begun = await fetch_rows(BEGIN, *row_id, fingerprint, KEPT_S, LOST_S)
    if begun:
        setattr(g, BEGUN, (*row_id, begun[0]["began_at"]))
        return None
    for row in await fetch_rows(READ, *row_id):
        if row["fingerprint"] != fingerprint:
            fault = Message("Give each request its own key.")
            raise IdempotencyKeyReused([FieldError(f"/{HEADER}", fault)])
        if row["status"] is not None:
            response = Response(row["body"], row["status"], headers=row["headers"])
            response.headers["Idempotent-Replayed"] = "true"
            return response
    raise RequestInProgress


async def keep(response: Response) -> Response:
    """Keep the response for repeated requests, if the current request has a row; return it."""
    row_id = g.pop(BEGUN, None)
    if row_id is None:
        return response
    # The request took effect, even if its answer can't be kept.
    with skipped_in_outage():
        is_success = response.status_code < HTTPStatus.BAD_REQUEST
        if not is_success and not g.get(REFUSED_FINALLY, False):
            await execute(FORGET, *row_id)
        else:
            headers = json.dumps(list(response.headers))
            body = await response.get_data(as_text=False)
            await execute(KEEP, response.status_code, headers, body, *row_id)
    return response


def outlive_clients(app: App, *, paths: tuple[str, ...]) -> App:
    """Return an app that finishes some requests even when their client disconnects.

    These have a key, with which the client will repeat the request to get the answer, or a path
    that ends with one of `paths`, whose clients don't need an answer.
    """

    async def outliving(scope: HTTPScope, receive: Receive, send: Send) -> None:
        async def received() -> ReceiveEvent:
            message = await receive()
            if message["type"] == "http.disconnect":
                await asyncio.Event().wait()
            return message

        is_outliving = header(scope, HEADER.lower().encode()) or scope["path"].endswith(paths)
        await app(scope, received if is_outliving else receive, send)

    return outliving
