"""The audit log: a page to look something up in it, and all of it for programs.

As in the library, a mistyped filter is ignored, and nothing is an error.
"""

from datetime import datetime
from typing import Any

from quart import Blueprint, Response, render_template, request, url_for

from portal.accounts import audit
from portal.database.account_models import MAX_EMAIL_LENGTH
from portal.events.log import AuditAction
from portal.text import whole_number
from portal.web.auth import Policy, policy

blueprint = Blueprint("audit", __name__)

PAGE_SIZE = 50
# What fits into the numbers of lines.
MAX_DIGITS = 18
# A year of a busy portal over a slow connection.
EXPORT_TIMEOUT_S = 600


@blueprint.get("/audit")
@policy(Policy.ADMINISTER)
async def index() -> str:
    """The newest lines of what is asked for, or those before a line."""
    query = _query()
    before = whole_number(request.args.get("before", ""), max_digits=MAX_DIGITS)
    events, older = await audit.read_page(query, limit=PAGE_SIZE, before=before)
    chosen = {"action": query.action, "person": query.person, "object": query.thing}
    given: dict[str, Any] = {name: text for name, text in chosen.items() if text}
    return await render_template(
        "accounts/audit.html",
        events=events,
        titles=await audit.titles_of(events),
        read_time=datetime.fromisoformat,
        actions=[("", "Everything"), *((it.value, it.value) for it in AuditAction)],
        chosen=chosen,
        is_filtered=bool(given),
        is_newest=before is None,
        newest_url=url_for("audit.index", **given),
        older_url=url_for("audit.index", **given, before=older) if older else "",
        export_url=url_for("audit.export", **given),
    )


@blueprint.get("/audit.jsonl")
@policy(Policy.AUDIT)
async def export() -> Response:
    """All lines of what is asked for, the oldest first, a JSON object each."""
    lines = (f"{audit.json_line(it)}\n" async for it in audit.read_all(_query()))
    response = Response(lines, content_type="application/jsonl")
    response.headers["Content-Disposition"] = 'attachment; filename="audit.jsonl"'
    response.timeout = EXPORT_TIMEOUT_S
    return response


def _query() -> audit.AuditQuery:
    action = request.args.get("action", "")
    return audit.AuditQuery(
        action=action if action in set(AuditAction) else "",
        person=_typed("person"),
        thing=_typed("object"),
    )


def _typed(name: str) -> str:
    return request.args.get(name, "").replace("\0", "").strip()[:MAX_EMAIL_LENGTH]
