"""One's own account: its password, where it is signed in, and its API tokens."""

from collections.abc import Collection
from datetime import UTC, datetime
from uuid import UUID

from quart import Blueprint, redirect, render_template, request, url_for
from quart.typing import ResponseReturnValue

from portal.accounts import identities, people, sessions, tokens
from portal.accounts.permissions import Action, Principal, usable_scopes
from portal.database.account_models import Account, Scope
from portal.errors import AccountNotFound, InvalidRequest, SignInRefused, TooManyTries
from portal.text import shown, whole_number
from portal.web.auth import Policy, policy, require_person
from portal.web.composition import web_context
from portal.web.cookies import SESSION
from portal.web.pages.embedding import public_url
from portal.web.pages.signing_in import ROLE_WORDS, signed_in_anew
from portal.web.pages.upload import own_quota
from portal.web.server.context import state_of

blueprint = Blueprint("account", __name__)

# What the page says has been done, by the word for it in the address.
DONE = {
    "name": "Name saved.",
    "password": "Password changed. You were signed out everywhere else.",
    "session": "That device was signed out.",
    "others": "You were signed out everywhere else.",
    "token": "Token revoked.",
}

SCOPE_WORDS = {
    Scope.READ: "Read videos",
    Scope.WRITE: "Publish and edit videos",
    Scope.DELETE: "Delete videos",
    Scope.ADMIN: "Manage webhooks, read the audit log",
}


@blueprint.get("/account")
@policy(Policy.OWN_ACCOUNT)
async def account() -> str:
    """All of it."""
    return await _page(await require_person())


@blueprint.post("/account/name")
@policy(Policy.OWN_ACCOUNT)
async def change_name() -> ResponseReturnValue:
    """Say by what name viewers are told whose videos these are, or that they aren't."""
    person, sent = await require_person(), await request.form
    typed = sent.get("name", "")
    try:
        await people.rename((await _own_account(person)).id, typed)
    except InvalidRequest as exc:
        faults = {"own_name": exc.by_field["name"]}
        return await _page(person, faults=faults, own_name=typed), exc.status
    return redirect(_address("name"), 303)


@blueprint.post("/account/password")
@policy(Policy.OWN_ACCOUNT)
async def change_password() -> ResponseReturnValue:
    """Choose another password; every other session ends."""
    person, sent, hasher = await require_person(), await request.form, web_context().passwords
    client = state_of(request.scope).client
    try:
        found = await sessions.require_password(
            person.email, sent.get("current", ""), passwords=hasher, address=client
        )
    except SignInRefused:
        return await _page(person, faults={"current": "This is not your current password."}), 422
    except TooManyTries as exc:
        return await _page(person, faults={"current": exc.detail}), exc.status
    try:
        password_hash = await hasher.choose(sent.get("password", ""), email=person.email)
    except InvalidRequest as exc:
        return await _page(person, faults=exc.by_field), 422
    await people.set_password(found, password_hash)
    return await signed_in_anew(found, _address("password"))


@blueprint.post("/account/sessions/<uuid:session_id>/end")
@policy(Policy.OWN_ACCOUNT)
async def end_session(session_id: UUID) -> ResponseReturnValue:
    """Sign out somewhere."""
    person = await require_person()
    await sessions.end_one(person, session_id)
    if session_id != person.session_id:
        return redirect(_address("session"), 303)
    response = redirect(url_for("library.index"), 303)
    SESSION.clear(response, web_context().config)
    return response


@blueprint.post("/account/sessions/end-others")
@policy(Policy.OWN_ACCOUNT)
async def end_others() -> ResponseReturnValue:
    """Sign out everywhere but here."""
    await sessions.end_others(await require_person())
    return redirect(_address("others"), 303)


@blueprint.post("/account/tokens")
@policy(Policy.OWN_ACCOUNT)
async def create_token() -> ResponseReturnValue:
    """Make an API token, and show it this once; or the page, which says what is wrong."""
    person, sent = await require_person(), await request.form
    name, scopes, days = sent.get("name", ""), sent.getlist("scopes"), sent.get("days", "").strip()
    # Empty for one that never runs out; 0 for what is no number.
    life_days = (whole_number(days, max_digits=6) or 0) if days else None
    own = await _own_account(person)
    try:
        secret = await tokens.create(own.id, name=name, scopes=scopes, days=life_days)
    except InvalidRequest as exc:
        typed = {"name": name, "scopes": scopes, "days": days}
        return await _page(person, faults=exc.by_field, typed=typed), 422
    return await _page(person, new_token=secret, first_call=_first_call(secret, scopes))


@blueprint.post("/account/tokens/<uuid:token_id>/revoke")
@policy(Policy.OWN_ACCOUNT)
async def revoke_token(token_id: UUID) -> ResponseReturnValue:
    """Make an API token void."""
    person = await require_person()
    if person.account_id:
        await tokens.revoke(token_id, account_id=person.account_id)
    return redirect(_address("token"), 303)


@blueprint.app_template_filter()
def device_words(user_agent: str) -> str:
    """A browser's and a system's name out of what it calls itself; its own words otherwise."""
    browsers = {"Edg/": "Edge", "OPR/": "Opera", "Firefox/": "Firefox", "Chrome/": "Chrome"}
    browsers["Safari/"] = "Safari"
    systems = {"Android": "Android", "iPhone": "iPhone", "iPad": "iPad", "Windows": "Windows"}
    systems |= {"Mac OS X": "Mac", "CrOS": "ChromeOS", "Linux": "Linux"}
    browser = next((name for sign, name in browsers.items() if sign in user_agent), "")
    system = next((name for sign, name in systems.items() if sign in user_agent), "")
    return " on ".join(filter(None, (browser, system))) or shown(user_agent) or "Unknown"


async def _own_account(person: Principal) -> Account:
    found = await Account.get_or_none(id=person.account_id)
    if found is None:
        raise AccountNotFound
    return found


def _address(done: str) -> str:
    return url_for("account.account", done=done)


async def _page(person: Principal, **more: object) -> str:
    """The page, with `faults` by the name of a field, what was `typed`, and a `new_token`.

    A new token comes with a `first_call` to try it.
    """
    found, config = await _own_account(person), web_context().config
    given = {
        "faults": {},
        "own_name": found.name,
        "typed": {"name": "", "scopes": (), "days": ""},
        "new_token": "",
        "first_call": "",
        **more,
    }
    return await render_template(
        "accounts/account.html",
        email=found.email,
        role_words=ROLE_WORDS[found.role],
        sessions=await sessions.list_sessions(found.id),
        session_id=person.session_id,
        tokens=await tokens.list_tokens(found.id),
        scopes=_scope_choices(person),
        now=datetime.now(UTC),
        quota=await own_quota() if person.may(Action.PUBLISH) else None,
        has_password=found.password_hash is not None,
        is_bound=config.oidc_issuer and await identities.is_bound(found.id, config.oidc_issuer),
        has_single_sign_on=bool(config.oidc_issuer),
        done=DONE.get(request.args.get("done", ""), ""),
        **given,
    )


def _scope_choices(person: Principal) -> dict[str, str]:
    """Return the scopes that this person's tokens can use, with a label for each."""
    return {scope.value: SCOPE_WORDS[scope] for scope in usable_scopes(person.role)}


def _first_call(secret: str, scopes: Collection[str]) -> str:
    """A command that uses a new token, within its scopes."""
    token = f"curl -H 'Authorization: Bearer {secret}'"
    if Scope.WRITE not in scopes:
        path = "/api/videos/VIDEO_ID" if Scope.ADMIN not in scopes else "/audit.jsonl"
        return f"{token} {public_url(path)}"
    body = '{"fileName": "film.mp4", "contentType": "video/mp4"}'
    return f"{token} --json '{body}' {public_url('/api/videos/presign')}"
