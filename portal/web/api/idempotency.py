"""Idempotency-Key: a request that is repeated gets the first answer again, for a day.

As draft-ietf-httpapi-idempotency-key-header-07 has it.

A key's row is made before the view begins, by a statement that one of all web processes wins, and
given the answer after it. Of a process that was killed in between a row without an answer is left:
a repetition takes it over once no request can still be at work. A refusal is kept if
the fault is in the body or the address: after any other, such as a missing upload or a limit, a
repetition may succeed. What is refused before the view, such as by the policy, has no row.
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
from quart import Response, g, request

from portal.database.connection import execute, fetch_rows
from portal.database.outages import skipped_in_outage
from portal.errors import FieldError, IdempotencyKeyReused, InvalidRequest, RequestInProgress
from portal.web.auth import account_id
from portal.web.errors import REFUSED_FINALLY
from portal.web.server.context import App, header

HEADER = "Idempotency-Key"
METHODS = frozenset({"POST", "PATCH"})
MAX_LENGTH = 255
PARAMETER = {
    "name": HEADER,
    "in": "header",
    "required": False,
    "description": "Any new text; the same again within 24 h gets the first answer again.",
    "schema": {"type": "string", "minLength": 1, "maxLength": MAX_LENGTH, "pattern": "^[!-~]+$"},
}
VALID = re.compile(rf"[!-~]{{1,{MAX_LENGTH}}}")
NOBODY = UUID(int=0)
# Of a request's own values: the row that is to be given its answer.
BEGUN = "idempotency_row"
KEPT_S = 24 * 3600
# No request takes longer; see `app.RESPONSE_TIMEOUT_S`.
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
# If nobody else has taken it over.
OWN_ROW = f"{ROW} AND began_at = %s"
KEEP = f"UPDATE idempotency_keys SET status = %s, headers = %s, body = %s WHERE {OWN_ROW}"  # noqa: S608
FORGET = f"DELETE FROM idempotency_keys WHERE {OWN_ROW}"  # noqa: S608


async def begin() -> Response | None:
    """The first answer to the current request, if it is a repetition.

    Raises `IdempotencyKeyReused`, `RequestInProgress`, or `InvalidRequest` for a key at fault.
    """
    is_call = request.method in METHODS and f"{request.path}/".startswith("/api/")
    if not is_call or request.endpoint is None or HEADER not in request.headers:
        return None
    key = request.headers[HEADER]
    if not VALID.fullmatch(key):
        fault = f"Give 1 to {MAX_LENGTH} visible ASCII characters, or leave the header out."
        raise InvalidRequest([FieldError(f"/{HEADER}", fault)])
    body = await request.get_data(cache=True, as_text=False, parse_form_data=False)
    fingerprint = sha256(f"{request.method} {request.full_path}\n".encode() + body).digest()
    row_id = (await account_id() or NOBODY, key)
    begun = await fetch_rows(BEGIN, *row_id, fingerprint, KEPT_S, LOST_S)
    if begun:
        setattr(g, BEGUN, (*row_id, begun[0]["began_at"]))
        return None
    for row in await fetch_rows(READ, *row_id):
        if row["fingerprint"] != fingerprint:
            raise IdempotencyKeyReused([FieldError(f"/{HEADER}", "Give each request its own key.")])
        if row["status"] is not None:
            response = Response(row["body"], row["status"], headers=row["headers"])
            response.headers["Idempotent-Replayed"] = "true"
            return response
    raise RequestInProgress


async def keep(response: Response) -> Response:
    """Keep the response to the current request for repetitions, if it has a row; return it."""
    row_id = g.pop(BEGUN, None)
    if row_id is None:
        return response
    # Should the answer not be kept, what it says is done all the same.
    with skipped_in_outage():
        is_success = response.status_code < HTTPStatus.BAD_REQUEST
        if not is_success and not g.get(REFUSED_FINALLY, False):
            await execute(FORGET, *row_id)
        else:
            headers = json.dumps(list(response.headers))
            body = await response.get_data(as_text=False)
            await execute(KEEP, response.status_code, headers, body, *row_id)
    return response


def outlive_clients(app: App) -> App:
    """The app, going on with a request that has a key when its client has gone.

    The client will ask for the answer again.
    """

    async def outliving(scope: HTTPScope, receive: Receive, send: Send) -> None:
        async def received() -> ReceiveEvent:
            message = await receive()
            if message["type"] == "http.disconnect":
                await asyncio.Event().wait()
            return message

        await app(scope, received if header(scope, HEADER.lower().encode()) else receive, send)

    return outliving
