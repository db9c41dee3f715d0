"""Pages of groups for admins: all groups, and one group with its members."""

from collections.abc import Mapping
from uuid import UUID

from quart import Blueprint, redirect, render_template, request, url_for
from quart.typing import ResponseReturnValue

from portal.accounts import groups
from portal.errors import FieldError, GroupExists, InvalidRequest
from portal.http.auth import Policy, policy
from portal.http.composition import web_context
from portal.locale.messages import Message

blueprint = Blueprint("groups", __name__, url_prefix="/groups")

# Notices of completed actions, by the `done` parameter of the address.
DONE = {
    "created": Message("Group created."),
    "saved": Message("Group saved."),
    "added": Message("Members added."),
    "removed": Message("Member removed."),
    "deleted": Message("Group deleted."),
}


@blueprint.get("")
@policy(Policy.ADMINISTER)
async def index() -> str:
    """Show all groups."""
    return await _render_groups()


@blueprint.post("")
@policy(Policy.ADMINISTER)
async def create() -> ResponseReturnValue:
    """Create a group and show it, or show the faults of the form."""
    form = await request.form
    typed = {"name": form.get("name", ""), "claim": form.get("claim", "")}
    try:
        group = await groups.create(typed["name"], claim=typed["claim"])
    except (InvalidRequest, GroupExists) as exc:
        return await _render_groups(typed=typed, faults=_form_faults(exc)), 422
    return _redirect_to(group.id, "created")


@blueprint.get("/<uuid:group_id>")
@policy(Policy.ADMINISTER)
async def page(group_id: UUID) -> str:
    """Show a group with its members."""
    return await _render_group(group_id)


@blueprint.post("/<uuid:group_id>")
@policy(Policy.ADMINISTER)
async def save(group_id: UUID) -> ResponseReturnValue:
    """Change the name and the claim of a group; a form without a claim keeps it."""
    form = await request.form
    typed = {name: form[name] for name in ("name", "claim") if name in form}
    try:
        await groups.change(group_id, name=typed.get("name"), claim=typed.get("claim"))
    except (InvalidRequest, GroupExists) as exc:
        return await _render_group(group_id, typed=typed, faults=_form_faults(exc)), 422
    return _redirect_to(group_id, "saved")


@blueprint.post("/<uuid:group_id>/members")
@policy(Policy.ADMINISTER)
async def add_members(group_id: UUID) -> ResponseReturnValue:
    """Add the accounts with these e-mail addresses to a group."""
    typed = (await request.form).get("emails", "")
    try:
        await groups.add_members(group_id, _parse_emails(typed))
    except InvalidRequest as exc:
        values = {"typed": {"emails": typed}, "faults": exc.by_field}
        return await _render_group(group_id, **values), 422
    return _redirect_to(group_id, "added")


@blueprint.post("/<uuid:group_id>/members/remove")
@policy(Policy.ADMINISTER)
async def remove_member(group_id: UUID) -> ResponseReturnValue:
    """Remove the account with this e-mail address from a group."""
    try:
        await groups.remove_member(group_id, (await request.form).get("email", ""))
    except InvalidRequest as exc:
        return await _render_group(group_id, fault=exc.errors[0].message), 422
    return _redirect_to(group_id, "removed")


@blueprint.post("/<uuid:group_id>/delete")
@policy(Policy.ADMINISTER)
async def delete(group_id: UUID) -> ResponseReturnValue:
    """Delete a group."""
    await groups.remove(group_id)
    return redirect(url_for("groups.index", done="deleted"), 303)


def _parse_emails(text: str) -> list[str]:
    """Return the e-mail addresses between commas, semicolons and white space.

    Raises `InvalidRequest` if there are none.
    """
    emails = text.replace(",", " ").replace(";", " ").split()
    if not emails:
        message = Message("Enter an email address like ann@example.org.")
        raise InvalidRequest([FieldError("/emails", message)])
    return emails


def _form_faults(exc: InvalidRequest | GroupExists) -> Mapping[str, str]:
    return exc.by_field if isinstance(exc, InvalidRequest) else {"name": exc.detail}


def _redirect_to(group_id: UUID, done: str) -> ResponseReturnValue:
    return redirect(url_for("groups.page", group_id=group_id, done=done), 303)


async def _render_groups(**more: object) -> str:
    values = {"typed": {}, "faults": {}, **more}
    return await _render("index", groups=await groups.list_groups(), **values)


async def _render_group(group_id: UUID, **more: object) -> str:
    """Render a group, with typed values and their faults, or with a `fault` of an action."""
    members = await groups.read_members(group_id)
    values = {"typed": {}, "faults": {}, "fault": "", **more}
    return await _render(
        "page",
        group=await groups.get(group_id),
        members=members.emails,
        candidates=await groups.list_candidates(group_id),
        **values,
    )


async def _render(name: str, **values: object) -> str:
    return await render_template(
        f"groups/{name}.html",
        done=DONE.get(request.args.get("done", ""), ""),
        has_single_sign_on=bool(web_context().config.oidc_issuer),
        **values,
    )
