"""Pages for admins: accounts, roles, invitations, password reset links, and the audit log.

The audit log is a page, which ignores invalid filters, and an export for programs, which refuses
them.
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
from portal.features.people.signing_in import ROLE_WORDS
from portal.http.addresses import public_url
from portal.http.auth import Policy, policy, require_person
from portal.http.composition import web_context
from portal.http.languages import gettext
from portal.http.schemas.base import ClosedShape, Text
from portal.http.schemas.validation import validated_query
from portal.locale.messages import Message
from portal.text import whole_number
from portal.uploads.quotas import usage_of

blueprint = Blueprint("people", __name__)

# Notices of completed actions, by the `done` parameter of the address.
DONE = {
    "revoked": Message("Invitation revoked."),
    "role": Message("Role changed. The change takes effect immediately."),
    "disabled": Message(
        "Account disabled. It was signed out everywhere, and its tokens don't work."
    ),
    "enabled": Message("Account enabled."),
    "removed": Message("Account removed. Its videos are now yours."),
}
# Lines of the audit log on a page.
PAGE_SIZE = 50
# Digits that fit into the number of a line.
MAX_DIGITS = 18
# Enough for a year of a busy portal over a slow connection.
EXPORT_TIMEOUT_S = 600


@blueprint.get("/people")
@policy(Policy.ADMINISTER)
async def index() -> str:
    """Show all accounts and invitations."""
    return await _render_people(await require_person())


@blueprint.post("/people/invitations")
@policy(Policy.ADMINISTER)
async def invite() -> ResponseReturnValue:
    """Create an invitation, and show its link once."""
    person = await require_person()
    try:
        role = await _read_role()
        label = (await request.form).get("label", "")
        secret = await invitations.invite(role, by=person, label=label)
    except (InvalidRequest, NotAllowed) as exc:
        return await _render_people(person, fault=_refusal_text(exc)), exc.status
    return await _render_people(person, new_link=_one_time_url(secret), new_link_for=role.value)


@blueprint.post("/people/invitations/<uuid:link_id>/revoke")
@policy(Policy.ADMINISTER)
async def revoke_invitation(link_id: UUID) -> ResponseReturnValue:
    """Revoke an invitation."""
    return await _apply_change(invitations.revoke_invitation(link_id), "revoked")


@blueprint.post("/people/<uuid:account_id>/role")
@policy(Policy.ADMINISTER)
async def change_role(account_id: UUID) -> ResponseReturnValue:
    """Change the role of an account."""

    async def change() -> None:
        await people.change_role(account_id, await _read_role(), by=await require_person())

    return await _apply_change(change(), "role")


@blueprint.post("/people/<uuid:account_id>/disable")
@policy(Policy.ADMINISTER)
async def disable(account_id: UUID) -> ResponseReturnValue:
    """Disable an account."""
    return await _apply_change(people.disable(account_id, by=await require_person()), "disabled")


@blueprint.post("/people/<uuid:account_id>/enable")
@policy(Policy.ADMINISTER)
async def enable(account_id: UUID) -> ResponseReturnValue:
    """Enable a disabled account."""
    return await _apply_change(people.enable(account_id, by=await require_person()), "enabled")


@blueprint.post("/people/<uuid:account_id>/reset")
@policy(Policy.ADMINISTER)
async def reset(account_id: UUID) -> ResponseReturnValue:
    """Create a password reset link, and show it once."""
    person = await require_person()
    try:
        secret = await invitations.offer_password(account_id, by=person)
    except (NotAllowed, AccountNotFound) as exc:
        return await _render_people(person, fault=exc.detail), exc.status
    accounts = await people.list_accounts()
    email = next(account.email for account in accounts if account.id == account_id)
    return await _render_people(person, new_link=_one_time_url(secret), new_link_for=email)


@blueprint.post("/people/<uuid:account_id>/remove")
@policy(Policy.ADMINISTER)
async def remove(account_id: UUID) -> ResponseReturnValue:
    """Remove an account; its videos then belong to the person who removed it."""
    return await _apply_change(people.remove(account_id, by=await require_person()), "removed")


@blueprint.get("/audit")
@policy(Policy.ADMINISTER)
async def audit_log() -> str:
    """Show the newest lines that match the filters, or those before a line."""
    query = _audit_query()
    before = whole_number(request.args.get("before", ""), max_digits=MAX_DIGITS)
    events, older = await audit.read_page(query, limit=PAGE_SIZE, before=before)
    chosen = {"action": query.action, "person": query.person, "object": query.thing}
    filters: dict[str, Any] = {name: text for name, text in chosen.items() if text}
    return await render_template(
        "people/audit.html",
        events=events,
        titles=await audit.titles_of(events),
        read_time=datetime.fromisoformat,
        actions=list(AuditAction),
        chosen=chosen,
        is_filtered=bool(filters),
        is_newest=before is None,
        newest_url=url_for("people.audit_log", **filters),
        older_url=url_for("people.audit_log", **filters, before=older) if older else "",
        export_url=url_for("people.export_audit", **filters),
    )


class ExportQuery(ClosedShape):
    """Filters of an export of the audit log."""

    action: AuditAction | None = None
    person: Text = ""
    object: Text = ""


@blueprint.get("/audit.jsonl")
@policy(Policy.MANAGE)
async def export_audit() -> Response:
    """Export the lines that match the filters as JSON objects, the oldest first."""
    filters = validated_query(ExportQuery, request.args)
    query = audit.AuditQuery(
        action=filters.action or "", person=filters.person, thing=filters.object
    )
    lines = (f"{audit.json_line(event)}\n" async for event in audit.read_all(query))
    response = Response(lines, content_type="application/jsonl")
    response.headers["Content-Disposition"] = 'attachment; filename="audit.jsonl"'
    response.timeout = EXPORT_TIMEOUT_S
    return response


async def _apply_change(change: Awaitable[object], done: str) -> ResponseReturnValue:
    """Apply a change, and show the page with a notice or the reason of a refusal."""
    try:
        await change
    except (LastOwner, NotAllowed, AccountNotFound, InvalidRequest) as exc:
        return await _render_people(await require_person(), fault=_refusal_text(exc)), exc.status
    return redirect(url_for("people.index", done=done), 303)


async def _read_role() -> Role:
    typed = (await request.form).get("role", "")
    role = next((value for value in Role if value == typed), None)
    if role is None:
        words = Message("Choose one of %(choices)s.", choices=", ".join(Role))
        raise InvalidRequest([FieldError("/role", words)])
    return role


def _refusal_text(exc: LastOwner | NotAllowed | AccountNotFound | InvalidRequest) -> str:
    if isinstance(exc, InvalidRequest):
        # The forms have one field.
        return exc.errors[0].message
    return exc.detail


def _one_time_url(secret: str) -> str:
    return public_url(url_for("signing_in.welcome", secret=secret))


async def _render_people(person: Principal, **more: object) -> str:
    """Render the page, with a `fault`, or a `new_link` and its role or e-mail address."""
    values = {"fault": "", "new_link": "", "new_link_for": "", **more}
    accounts = await people.list_accounts()
    quota = web_context().quota
    publishers = [account.id for account in accounts if account.role is not Role.VIEWER]
    return await render_template(
        "people/page.html",
        people=accounts,
        quotas=await usage_of(publishers, quota) if quota else {},
        own_id=person.account_id,
        invitations=await invitations.list_invitations(),
        roles={
            role.value: gettext(words)
            for role, words in ROLE_WORDS.items()
            if person.may_manage(role)
        },
        done=DONE.get(request.args.get("done", ""), ""),
        **values,
    )


def _audit_query() -> audit.AuditQuery:
    action = request.args.get("action", "")
    return audit.AuditQuery(
        action=action if action in set(AuditAction) else "",
        person=_filter_text("person"),
        thing=_filter_text("object"),
    )


def _filter_text(name: str) -> str:
    return request.args.get(name, "").replace("\0", "").strip()[:MAX_EMAIL_LENGTH]
