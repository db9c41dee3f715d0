"""Page of the signed-in account: name, password, sessions, API tokens and watch history."""

from collections.abc import Collection
from datetime import UTC, datetime
from uuid import UUID

from quart import Blueprint, redirect, render_template, request, url_for
from quart.typing import ResponseReturnValue

from portal.accounts import identities, people, sessions, tokens
from portal.accounts.permissions import Action, Principal, usable_scopes
from portal.database.account_models import Account, Scope
from portal.errors import AccountNotFound, InvalidRequest, SignInRefused, TooManyTries
from portal.features.people.signing_in import ROLE_WORDS, begin_session
from portal.features.publishing.pages import own_quota
from portal.features.watching.positions import clear_positions
from portal.http.addresses import public_url
from portal.http.auth import Policy, policy, require_person
from portal.http.composition import web_context
from portal.http.cookies import SESSION
from portal.http.languages import gettext, pgettext
from portal.http.server.context import state_of
from portal.locale.messages import Message
from portal.text import shown, whole_number

blueprint = Blueprint("account", __name__)

# Notices of completed actions, by the `done` parameter of the address.
DONE = {
    "name": Message("Name saved."),
    "password": Message("Password changed. You were signed out everywhere else."),
    "session": Message("That device was signed out."),
    "others": Message("You were signed out everywhere else."),
    "token": Message("Token revoked."),
    "history": Message("Watch history cleared."),
}

# Names by a mark in the User-Agent; the first mark that is present counts.
BROWSERS = {
    "Edg/": "Edge",
    "OPR/": "Opera",
    "Firefox/": "Firefox",
    "Chrome/": "Chrome",
    "Safari/": "Safari",
}
SYSTEMS = {
    "Android": "Android",
    "iPhone": "iPhone",
    "iPad": "iPad",
    "Windows": "Windows",
    "Mac OS X": "Mac",
    "CrOS": "ChromeOS",
    "Linux": "Linux",
}

# Translators: what an API token may do.
SCOPE_WORDS = {
    Scope.READ: Message("Read videos"),
    Scope.WRITE: Message("Publish and edit videos"),
    Scope.DELETE: Message("Delete videos"),
    Scope.ADMIN: Message("Manage webhooks, read the audit log"),
}


@blueprint.get("/account")
@policy(Policy.OWN_ACCOUNT)
async def account() -> str:
    """Show the page."""
    return await _render_account(await require_person())


@blueprint.post("/account/name")
@policy(Policy.OWN_ACCOUNT)
async def change_name() -> ResponseReturnValue:
    """Change the name that is shown next to the account's videos; empty to show none."""
    person = await require_person()
    typed = (await request.form).get("name", "")
    try:
        await people.rename((await _own_account(person)).id, typed)
    except InvalidRequest as exc:
        faults = {"own_name": exc.by_field["name"]}
        return await _render_account(person, faults=faults, own_name=typed), exc.status
    return redirect(_done_url("name"), 303)


@blueprint.post("/account/password")
@policy(Policy.OWN_ACCOUNT)
async def change_password() -> ResponseReturnValue:
    """Change the password, and end every other session."""
    person = await require_person()
    fields = await request.form
    hasher = web_context().passwords
    client = state_of(request.scope).client
    try:
        account = await sessions.require_password(
            person.email, fields.get("current", ""), passwords=hasher, address=client
        )
    except SignInRefused:
        faults = {"current": Message("This is not your current password.")}
        return await _render_account(person, faults=faults), 422
    except TooManyTries as exc:
        return await _render_account(person, faults={"current": exc.detail}), exc.status
    try:
        password_hash = await hasher.choose(fields.get("password", ""), email=person.email)
    except InvalidRequest as exc:
        return await _render_account(person, faults=exc.by_field), 422
    await people.set_password(account, password_hash)
    return await begin_session(account, _done_url("password"))


@blueprint.post("/account/sessions/<uuid:session_id>/end")
@policy(Policy.OWN_ACCOUNT)
async def end_session(session_id: UUID) -> ResponseReturnValue:
    """Sign out on one device."""
    person = await require_person()
    await sessions.end_one(person, session_id)
    if session_id != person.session_id:
        return redirect(_done_url("session"), 303)
    response = redirect(url_for("library.index"), 303)
    SESSION.clear(response, web_context().config)
    return response


@blueprint.post("/account/sessions/end-others")
@policy(Policy.OWN_ACCOUNT)
async def end_others() -> ResponseReturnValue:
    """Sign out on all other devices."""
    await sessions.end_others(await require_person())
    return redirect(_done_url("others"), 303)


@blueprint.post("/account/tokens")
@policy(Policy.OWN_ACCOUNT)
async def create_token() -> ResponseReturnValue:
    """Create an API token and show it once, or show the faults of the form."""
    person = await require_person()
    fields = await request.form
    name = fields.get("name", "")
    scopes = fields.getlist("scopes")
    days = fields.get("days", "").strip()
    # Empty for a token that never expires. Anything but a number counts as 0, which is refused.
    life_days = (whole_number(days, max_digits=6) or 0) if days else None
    own = await _own_account(person)
    try:
        secret = await tokens.create(own.id, name=name, scopes=scopes, days=life_days)
    except InvalidRequest as exc:
        typed = {"name": name, "scopes": scopes, "days": days}
        return await _render_account(person, faults=exc.by_field, typed=typed), 422
    return await _render_account(person, new_token=secret, first_call=_first_call(secret, scopes))


@blueprint.post("/account/tokens/<uuid:token_id>/revoke")
@policy(Policy.OWN_ACCOUNT)
async def revoke_token(token_id: UUID) -> ResponseReturnValue:
    """Revoke an API token."""
    person = await require_person()
    if person.account_id:
        await tokens.revoke(token_id, account_id=person.account_id)
    return redirect(_done_url("token"), 303)


@blueprint.post("/account/watch-history/clear")
@policy(Policy.OWN_ACCOUNT)
async def clear_watch_history() -> ResponseReturnValue:
    """Delete the positions in all videos."""
    await clear_positions(await require_person())
    return redirect(_done_url("history"), 303)


@blueprint.app_template_filter()
def device_words(user_agent: str) -> str:
    """Return the names of a browser and a system from a User-Agent, or the header itself."""
    browser = next((name for mark, name in BROWSERS.items() if mark in user_agent), "")
    system = next((name for mark, name in SYSTEMS.items() if mark in user_agent), "")
    if browser and system:
        # Translators: a browser and an operating system, such as Firefox on Linux.
        return gettext("%(browser)s on %(system)s", browser=browser, system=system)
    # Translators: a device that did not tell its name.
    return browser or system or shown(user_agent) or pgettext("device", "Unknown")


async def _own_account(person: Principal) -> Account:
    account = await Account.get_or_none(id=person.account_id)
    if account is None:
        raise AccountNotFound
    return account


def _done_url(done: str) -> str:
    return url_for("account.account", done=done)


async def _render_account(person: Principal, **more: object) -> str:
    """Render the page, with `faults` by field, `typed` values, or a `new_token`.

    A new token comes with a `first_call`, a command to try it.
    """
    account = await _own_account(person)
    config = web_context().config
    done = request.args.get("done", "")
    values = {
        "faults": {},
        "own_name": account.name,
        "typed": {"name": "", "scopes": (), "days": ""},
        "new_token": "",
        "first_call": "",
        **more,
    }
    return await render_template(
        "people/account.html",
        email=account.email,
        role_words=ROLE_WORDS[account.role],
        sessions=await sessions.list_sessions(account.id),
        session_id=person.session_id,
        tokens=await tokens.list_tokens(account.id),
        scopes={scope.value: SCOPE_WORDS[scope] for scope in usable_scopes(person.role)},
        now=datetime.now(UTC),
        quota=await own_quota() if person.may(Action.PUBLISH) else None,
        has_password=account.password_hash is not None,
        is_bound=config.oidc_issuer and await identities.is_bound(account.id, config.oidc_issuer),
        has_single_sign_on=bool(config.oidc_issuer),
        done=DONE.get(done, ""),
        clears_positions=done == "history",
        **values,
    )


def _first_call(secret: str, scopes: Collection[str]) -> str:
    """Return a command that uses a new token within its scopes."""
    token = f"curl -H 'Authorization: Bearer {secret}'"
    if Scope.WRITE not in scopes:
        path = "/api/videos/VIDEO_ID" if Scope.ADMIN not in scopes else "/audit.jsonl"
        return f"{token} {public_url(path)}"
    body = '{"fileName": "film.mp4", "contentType": "video/mp4"}'
    return f"{token} --json '{body}' {public_url('/api/videos/presign')}"
