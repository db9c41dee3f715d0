"""The people of a portal: their roles, invitations, and links to choose a password anew.

And the audit log: a page to look something up in it, and all of it for programs. As in the library,
the page ignores a mistyped filter; the export refuses it.
"""

from collections.abc import Awaitable
from datetime import datetime
from typing import Any
from uuid import UUID

from quart import Blueprint, Response, redirect, render_template, request, url_for
from quart.typing import ResponseReturnValue

from portal.accounts import audit, invitations, people
from portal.accounts.permissions import Principal
from portal.database.account_models import MAX_EMAIL_LENGTH, Role
from portal.errors import AccountNotFound, FieldError, InvalidRequest, LastOwner, NotAllowed
from portal.events.log import AuditAction
from portal.text import whole_number
from portal.uploads.quotas import usage_of
from portal.web.auth import Policy, policy, require_person
from portal.web.composition import web_context
from portal.web.pages.embedding import public_url
from portal.web.pages.signing_in import ROLE_WORDS
from portal.web.schemas.base import ClosedShape, Text
from portal.web.schemas.validation import validated_query

blueprint = Blueprint("people", __name__)

# What the page says has been done, by the word for it in the address.
DONE = {
    "revoked": "Invitation revoked.",
    "role": "Role changed. The change takes effect immediately.",
    "disabled": "Account disabled. It was signed out everywhere, and its tokens don't work.",
    "enabled": "Account enabled.",
    "removed": "Account removed. Its videos are now yours.",
}
# Lines of the audit log on a page.
PAGE_SIZE = 50
# What fits into the numbers of lines.
MAX_DIGITS = 18
# A year of a busy portal over a slow connection.
EXPORT_TIMEOUT_S = 600


@blueprint.get("/people")
@policy(Policy.ADMINISTER)
async def index() -> str:
    """Everyone, and who is invited."""
    return await _page(await require_person())


@blueprint.post("/people/invitations")
@policy(Policy.ADMINISTER)
async def invite() -> ResponseReturnValue:
    """Make an invitation, and show its link this once."""
    person = await require_person()
    try:
        role = await _role()
        label = (await request.form).get("label", "")
        secret = await invitations.invite(role, by=person, label=label)
    except (InvalidRequest, NotAllowed) as exc:
        return await _page(person, fault=_words(exc)), exc.status
    return await _page(person, new_link=_address(secret), new_link_for=role.value)


@blueprint.post("/people/invitations/<uuid:link_id>/revoke")
@policy(Policy.ADMINISTER)
async def revoke_invitation(link_id: UUID) -> ResponseReturnValue:
    """Revoke an invitation."""
    return await _after(invitations.revoke_invitation(link_id), "revoked")


@blueprint.post("/people/<uuid:account_id>/role")
@policy(Policy.ADMINISTER)
async def change_role(account_id: UUID) -> ResponseReturnValue:
    """Give someone another role."""

    async def change() -> None:
        await people.change_role(account_id, await _role(), by=await require_person())

    return await _after(change(), "role")


@blueprint.post("/people/<uuid:account_id>/disable")
@policy(Policy.ADMINISTER)
async def disable(account_id: UUID) -> ResponseReturnValue:
    """Disable an account."""
    return await _after(people.disable(account_id, by=await require_person()), "disabled")


@blueprint.post("/people/<uuid:account_id>/enable")
@policy(Policy.ADMINISTER)
async def enable(account_id: UUID) -> ResponseReturnValue:
    """Enable a disabled account."""
    return await _after(people.enable(account_id, by=await require_person()), "enabled")


@blueprint.post("/people/<uuid:account_id>/reset")
@policy(Policy.ADMINISTER)
async def reset(account_id: UUID) -> ResponseReturnValue:
    """Make a link to choose a password anew, and show it this once."""
    person = await require_person()
    try:
        secret = await invitations.offer_password(account_id, by=person)
    except (NotAllowed, AccountNotFound) as exc:
        return await _page(person, fault=exc.detail), exc.status
    email = next(it.email for it in await people.list_accounts() if it.id == account_id)
    return await _page(person, new_link=_address(secret), new_link_for=email)


@blueprint.post("/people/<uuid:account_id>/remove")
@policy(Policy.ADMINISTER)
async def remove(account_id: UUID) -> ResponseReturnValue:
    """Remove someone; their videos then belong to whoever removed them."""
    return await _after(people.remove(account_id, by=await require_person()), "removed")


@blueprint.get("/audit")
@policy(Policy.ADMINISTER)
async def audit_log() -> str:
    """The newest lines of what is asked for, or those before a line."""
    query = _audit_query()
    before = whole_number(request.args.get("before", ""), max_digits=MAX_DIGITS)
    events, older = await audit.read_page(query, limit=PAGE_SIZE, before=before)
    chosen = {"action": query.action, "person": query.person, "object": query.thing}
    given: dict[str, Any] = {name: text for name, text in chosen.items() if text}
    return await render_template(
        "accounts/audit.html",
        events=events,
        titles=await audit.titles_of(events),
        read_time=datetime.fromisoformat,
        actions=[("", "All actions"), *((it.value, it.value) for it in AuditAction)],
        chosen=chosen,
        is_filtered=bool(given),
        is_newest=before is None,
        newest_url=url_for("people.audit_log", **given),
        older_url=url_for("people.audit_log", **given, before=older) if older else "",
        export_url=url_for("people.export_audit", **given),
    )


class ExportQuery(ClosedShape):
    """Filters of an export of the audit log."""

    action: AuditAction | None = None
    person: Text = ""
    object: Text = ""


@blueprint.get("/audit.jsonl")
@policy(Policy.AUDIT)
async def export_audit() -> Response:
    """Export the lines that match, the oldest first, a JSON object each."""
    filters = validated_query(ExportQuery, request.args)
    query = audit.AuditQuery(
        action=filters.action or "", person=filters.person, thing=filters.object
    )
    lines = (f"{audit.json_line(event)}\n" async for event in audit.read_all(query))
    response = Response(lines, content_type="application/jsonl")
    response.headers["Content-Disposition"] = 'attachment; filename="audit.jsonl"'
    response.timeout = EXPORT_TIMEOUT_S
    return response


async def _after(change: Awaitable[object], done: str) -> ResponseReturnValue:
    """Make a change, and show the page, which says that it was made, or why it could not be."""
    try:
        await change
    except (LastOwner, NotAllowed, AccountNotFound, InvalidRequest) as exc:
        return await _page(await require_person(), fault=_words(exc)), exc.status
    return redirect(url_for("people.index", done=done), 303)


async def _role() -> Role:
    sent = (await request.form).get("role", "")
    found = next((role for role in Role if role.value == sent), None)
    if found is None:
        raise InvalidRequest([FieldError("/role", f"Choose one of {', '.join(Role)}.")])
    return found


def _words(exc: LastOwner | NotAllowed | AccountNotFound | InvalidRequest) -> str:
    if isinstance(exc, InvalidRequest):
        return " ".join(error.message for error in exc.errors)
    return exc.detail


def _address(secret: str) -> str:
    return public_url(url_for("signing_in.welcome", secret=secret))


async def _page(person: Principal, **more: object) -> str:
    """The page, with a `fault`, or a `new_link` and whom it is for: a role or an address."""
    given = {"fault": "", "new_link": "", "new_link_for": "", **more}
    accounts, quota = await people.list_accounts(), web_context().quota
    publishers = [it.id for it in accounts if it.role is not Role.VIEWER]
    return await render_template(
        "accounts/people.html",
        people=accounts,
        quotas=await usage_of(publishers, quota) if quota else {},
        own_id=person.account_id,
        invitations=await invitations.list_invitations(),
        roles={role.value: words for role, words in ROLE_WORDS.items() if person.may_manage(role)},
        done=DONE.get(request.args.get("done", ""), ""),
        **given,
    )


def _audit_query() -> audit.AuditQuery:
    action = request.args.get("action", "")
    return audit.AuditQuery(
        action=action if action in set(AuditAction) else "",
        person=_typed("person"),
        thing=_typed("object"),
    )


def _typed(name: str) -> str:
    return request.args.get(name, "").replace("\0", "").strip()[:MAX_EMAIL_LENGTH]
