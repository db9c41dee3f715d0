"""One's own account: its password, where it is signed in, and its API tokens."""

from uuid import UUID

from quart import Blueprint, redirect, render_template, request, url_for
from quart.typing import ResponseReturnValue
from werkzeug.wrappers import Response as WerkzeugResponse

from portal.accounts import api_tokens, people, sessions, signing_in
from portal.accounts.oidc import identities
from portal.accounts.permissions import Action, Principal
from portal.database.account_models import Account
from portal.errors import AccountNotFound, InvalidRequest, SignInRefused, TooManyTries
from portal.web.auth import Policy, policy, require_person
from portal.web.composition import web_context
from portal.web.cookies import SESSION
from portal.web.pages.account_views import (
    ROLE_WORDS,
    TokenForm,
    first_call,
    scope_choices,
    session_rows,
    token_rows,
)
from portal.web.pages.quota_views import own_quota
from portal.web.pages.signing_in import signed_in_anew
from portal.web.server.context import state_of

blueprint = Blueprint("account", __name__)

# What the page says has been done, by the word for it in the address.
DONE = {
    "name": "Your name is changed.",
    "password": "Your password is changed. Everywhere else you are signed out.",
    "session": "Signed out there.",
    "others": "Everywhere else you are signed out.",
    "token": "The token doesn't work any more.",
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
        found = await signing_in.require_password(
            person.email, sent.get("current", ""), passwords=hasher, address=client
        )
    except SignInRefused:
        return await _page(person, faults={"current": "This is not your password now."}), 422
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
async def end_session(session_id: UUID) -> WerkzeugResponse:
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
async def end_others() -> WerkzeugResponse:
    """Sign out everywhere but here."""
    await sessions.end_others(await require_person())
    return redirect(_address("others"), 303)


@blueprint.post("/account/tokens")
@policy(Policy.OWN_ACCOUNT)
async def create_token() -> ResponseReturnValue:
    """Make an API token, and show it this once; or the page, which says what is wrong."""
    person, sent = await require_person(), await request.form
    found = await _own_account(person)
    typed = TokenForm(
        name=sent.get("name", ""),
        scopes=tuple(sent.getlist("scopes")),
        days=sent.get("days", "").strip(),
    )
    try:
        secret = await api_tokens.create(
            found.id, name=typed.name, scopes=typed.scopes, days=typed.life_days
        )
    except InvalidRequest as exc:
        return await _page(person, faults=exc.by_field, typed=typed), 422
    return await _page(person, new_token=secret, first_call=first_call(secret, typed.scopes))


@blueprint.post("/account/tokens/<uuid:token_id>/revoke")
@policy(Policy.OWN_ACCOUNT)
async def revoke_token(token_id: UUID) -> WerkzeugResponse:
    """Make an API token void."""
    person = await require_person()
    if person.account_id:
        await api_tokens.revoke(token_id, account_id=person.account_id)
    return redirect(_address("token"), 303)


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
        "typed": TokenForm(),
        "new_token": "",
        "first_call": "",
        **more,
    }
    return await render_template(
        "accounts/account.html",
        email=found.email,
        role_words=ROLE_WORDS[found.role],
        sessions=session_rows(await sessions.list_sessions(person)),
        tokens=token_rows(await api_tokens.list_tokens(found.id)),
        scopes=scope_choices(person),
        quota=await own_quota() if person.may(Action.PUBLISH) else None,
        has_password=found.password_hash is not None,
        is_bound=config.oidc_issuer and await identities.is_bound(found.id, config.oidc_issuer),
        has_single_sign_on=bool(config.oidc_issuer),
        done=DONE.get(request.args.get("done", ""), ""),
        **given,
    )
