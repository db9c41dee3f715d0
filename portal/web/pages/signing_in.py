"""Signing in and out: with a password, by a provider, by a one-time link, and the first account."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from quart import Blueprint, Response, redirect, render_template, request, url_for
from quart.typing import ResponseReturnValue
from werkzeug.wrappers import Response as WerkzeugResponse

from portal import errors
from portal.accounts import identities, invitations, people, sessions
from portal.accounts.permissions import Action
from portal.config import Config
from portal.config.values import LOOPBACK
from portal.database.account_models import Account, Role
from portal.database.outages import skipped_in_outage
from portal.text import host_name, shown
from portal.web.auth import Policy, policy, principal
from portal.web.composition import web_context
from portal.web.cookies import SESSION, SIGN_ON
from portal.web.errors import PROBLEM_TYPE, problem_document
from portal.web.server.context import state_of
from portal.web.server.limits import Rate

if TYPE_CHECKING:
    from portal.accounts.oidc import Provider

blueprint = Blueprint("signing_in", __name__)
logger = logging.getLogger(__name__)

FORWARDING = ("Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Real-IP")
ROLE_WORDS = {
    Role.OWNER: "Owner: everything, owners' accounts included",
    Role.ADMIN: "Admin: people, and all videos",
    Role.EDITOR: "Editor: publishes, edits and deletes own videos",
    Role.VIEWER: "Viewer: signs in to watch",
}
# As RFC 6749 has them, section 4.1.2.1: what else was sent is not repeated in the log.
ERROR_CODE = re.compile(r"[a-z_]{1,40}")
REFUSED_THERE = (
    "The provider of single sign-on did not sign you in: it or you refused. Start again, or sign "
    "in with your password."
)


async def current_viewer() -> dict[str, Any] | None:
    """Who looks at this page, as far as that changes what all pages show.

    None where that can't be found out, as in an error's.
    """
    found = None
    with skipped_in_outage(), suppress(errors.TokenRefused):
        found = await principal()
    if found is None:
        return None
    return {
        "is_open": found.account_id is None and found.role is not None,
        "is_signed_in": found.is_signed_in,
        "account_id": str(found.account_id or ""),
        "email": shown(found.email),
        "may_publish": found.may(Action.PUBLISH),
        "may_administer": found.is_signed_in and found.may(Action.ADMINISTER),
        "has_single_sign_on": web_context().provider is not None,
    }


@blueprint.get("/sign-in")
@policy(Policy.ANYONE)
async def form() -> ResponseReturnValue:
    """The form; who is signed in already is led on."""
    if (await principal()).is_signed_in:
        return redirect(next_path(request.args), 303)
    return await sign_in_page(next_url=next_path(request.args))


@blueprint.post("/sign-in")
@policy(Policy.ANYONE)
async def sign_in() -> ResponseReturnValue:
    """Sign in, and go on to where one was led away from; or the form again, which says why not.

    A script that asks for problem details is told why not by those.
    """
    web, sent = web_context(), await request.form
    try:
        secret = await sessions.sign_in(
            sent.get("email", ""),
            sent.get("password", ""),
            passwords=web.passwords,
            **_from_here(),
        )
    except (errors.SignInRefused, errors.TooManyTries) as exc:
        return await _refused(exc, sent)
    return await lead_on(secret, next_path(sent))


async def _refused(error: errors.PortalError, sent: Mapping[str, str]) -> Response:
    if request.accept_mimetypes.best == PROBLEM_TYPE:
        document = problem_document(error)
        return Response(document, error.status, dict(error.headers), content_type=PROBLEM_TYPE)
    page = await sign_in_page(
        next_url=next_path(sent), email=sent.get("email", ""), fault=error.detail
    )
    # What a browser would ask a password for by itself, with a header, this form asks.
    status = 422 if isinstance(error, errors.SignInRefused) else error.status
    return Response(page, status, dict(error.headers))


@blueprint.post("/sign-out")
@policy(Policy.ANYONE)
async def sign_out() -> WerkzeugResponse:
    """End this browser's session."""
    config = web_context().config
    await sessions.sign_out(SESSION.read(request, config))
    response = redirect(url_for("library.index"), 303)
    SESSION.clear(response, config)
    # What was seen while signed in is not to be seen by whoever goes back.
    response.headers["Clear-Site-Data"] = '"cache"'
    return response


@blueprint.get("/welcome/<secret>")
@policy(Policy.ANYONE)
async def welcome(secret: str) -> str:
    """The form that a one-time link leads to. Looking at it does not use the link up."""
    return await _welcome(secret, await invitations.look_up(secret))


@blueprint.post("/welcome/<secret>")
@policy(Policy.ANYONE)
async def accept(secret: str) -> ResponseReturnValue:
    """Use the link up, and sign in; or the form again, which says what is wrong."""
    sent, offer = await request.form, await invitations.look_up(secret)
    try:
        account = await invitations.accept(
            secret,
            email=sent.get("email", ""),
            password=sent.get("password", ""),
            passwords=web_context().passwords,
        )
    except (errors.InvalidRequest, errors.AccountExists) as exc:
        faults = exc.by_field if isinstance(exc, errors.InvalidRequest) else {"email": exc.detail}
        return await _welcome(secret, offer, email=sent.get("email", ""), faults=faults), 422
    return await signed_in_anew(account, url_for("library.index"))


@blueprint.get("/sign-in/oidc")
@policy(Policy.ANYONE, rate=Rate.SIGN_IN)
async def begin_single_sign_on() -> ResponseReturnValue:
    """Lead to the provider. A link does it: a form may lead to the portal alone."""
    provider, config = _provider(), web_context().config
    if not await web_context().accounts_exist():
        return redirect(url_for("signing_in.form"), 303)
    next_url = next_path(request.args)
    try:
        # Before anything is kept of someone who can't be sent there.
        await provider.discover()
        secrets = await identities.begin_sign_on(next_url)
        response = redirect(await provider.authorization_url(secrets), 303)
    except errors.ProviderUnavailable as exc:
        return await _sign_on_refused(exc, next_url)
    SIGN_ON.set(response, secrets.secret, config)
    return _unkept(response)


@blueprint.get(identities.CALLBACK)
@policy(Policy.ANYONE)
async def come_back() -> ResponseReturnValue:
    """Sign in who the provider says it is, and lead on; or the form again, which says why not."""
    provider, config = _provider(), web_context().config
    secrets = identities.SignOnSecrets(SIGN_ON.read(request, config))
    try:
        next_url = await identities.end_sign_on(secrets, request.args.get("state", ""))
    except errors.SignOnUnknown as exc:
        return await _sign_on_refused(exc, url_for("library.index"))
    try:
        claimed = await provider.claims_of(_code(config), secrets)
        response = await _signed_in(identities.read_claims(claimed, config), next_url)
    except (errors.SingleSignOnRefused, errors.ProviderUnavailable) as exc:
        response = await _sign_on_refused(exc, next_url)
    SIGN_ON.clear(response, config)
    return _unkept(response)


@blueprint.get("/set-up")
@policy(Policy.ANYONE)
async def set_up() -> ResponseReturnValue:
    """How to make the first account: here, from the machine itself, or by a command."""
    await _require_open()
    return await _set_up()


@blueprint.post("/set-up")
@policy(Policy.ANYONE)
async def make_first() -> ResponseReturnValue:
    """Make the first account, an owner's, and sign in."""
    await _require_open()
    if not _is_here():
        raise errors.NotFound
    sent, hasher = await request.form, web_context().passwords
    email = sent.get("email", "")
    try:
        password_hash = await hasher.choose(sent.get("password", ""), email=email)
        account = await people.add_first(email, password_hash=password_hash)
    except errors.InvalidRequest as exc:
        return await _set_up(email=email, faults=exc.by_field), 422
    return await signed_in_anew(account, url_for("library.index"))


async def _require_open() -> None:
    if await web_context().accounts_exist():
        words = "This portal has accounts already. Sign in, or ask an owner for a link."
        raise errors.NotFound(words)


def _is_here() -> bool:
    """Whether the request comes from this machine, and not through a proxy on it.

    Some proxies say nothing of themselves; a portal behind one has another public address.
    """
    if any(name in request.headers for name in FORWARDING):
        return False
    peer, *_ = request.scope.get("client") or ("",)
    names = (request.headers.get("Host", ""), urlsplit(web_context().config.public_url).netloc)
    return {peer, *map(host_name, names)} <= LOOPBACK


async def signed_in_anew(account: Account, next_url: str) -> WerkzeugResponse:
    """Sign in who has just chosen a password, and lead on."""
    return await lead_on(await sessions.begin(account.id, **_from_here()), next_url)


def _from_here() -> dict[str, str]:
    """What a session remembers of the browser that it is begun in."""
    device, address = request.headers.get("User-Agent", ""), state_of(request.scope).client
    return {"device": device, "address": address}


async def lead_on(secret: str, next_url: str) -> WerkzeugResponse:
    """Lead on with a new session; the one that this browser had ends."""
    config = web_context().config
    if earlier := SESSION.read(request, config):
        await sessions.end(earlier)
    response = redirect(next_url, 303)
    SESSION.set(response, secret, config)
    return response


def next_path(values: Mapping[str, str]) -> str:
    """Where to go on: a path of this portal, whatever was sent."""
    path = values.get("next", "")
    is_plain = path.isascii() and path.isprintable()
    # Browsers take a backslash for a slash, and two of those for another host.
    is_own = path.startswith("/") and not path.startswith("//") and "\\" not in path
    return path if is_own and is_plain else url_for("library.index")


async def sign_in_page(*, next_url: str, email: str = "", fault: str = "", notice: str = "") -> str:
    """The page with the form; what `notice` says is not about its fields."""
    return await render_template(
        "accounts/sign_in.html",
        next_url=next_url,
        email=email,
        fault=fault,
        notice=notice,
        has_single_sign_on=web_context().provider is not None,
        has_accounts=await web_context().accounts_exist(),
    )


async def _welcome(
    secret: str,
    offer: tuple[str, Role],
    *,
    email: str = "",
    faults: Mapping[str, str] | None = None,
) -> str:
    offered_email, role = offer
    return await render_template(
        "accounts/welcome.html",
        action=url_for("signing_in.accept", secret=secret),
        email=offered_email or email,
        is_new=not offered_email,
        role_words=ROLE_WORDS[role],
        faults=faults or {},
    )


async def _set_up(*, email: str = "", faults: Mapping[str, str] | None = None) -> str:
    return await render_template(
        "accounts/set_up.html", is_here=_is_here(), email=email, faults=faults or {}
    )


async def _signed_in(person: identities.Person, next_url: str) -> WerkzeugResponse:
    found = await principal()
    own_id = found.account_id if found.is_signed_in else None
    secret = await identities.sign_in(person, **_from_here(), signed_in_id=own_id)
    return await lead_on(secret, next_url)


def _provider() -> Provider:
    provider = web_context().provider
    if provider is None:
        raise errors.NotFound("Single sign-on is not set up here. Sign in with your password.")
    return provider


def _code(config: Config) -> str:
    """The code that came back. Raises `SingleSignOnRefused` for what else did."""
    sent = request.args
    if error := sent.get("error"):
        cause = ValueError(f"says {error if ERROR_CODE.fullmatch(error) else 'what is no code'}")
        raise errors.SingleSignOnRefused(REFUSED_THERE) from cause
    # RFC 9207: the answer of another provider names that one.
    if sent.get("iss", config.oidc_issuer) != config.oidc_issuer or not sent.get("code"):
        raise errors.SingleSignOnRefused
    return sent["code"]


async def _sign_on_refused(error: errors.PortalError, next_url: str) -> WerkzeugResponse:
    """The form, with a password for another way, and with the fault."""
    fields = {"action": error.code, "client": state_of(request.scope).client}
    # A cause names members, addresses and statuses, but no code, state or token.
    logger.warning("Single sign-on: %r", error.__cause__ or error.detail, extra=fields)
    page = await sign_in_page(next_url=next_url, notice=error.detail)
    return _unkept(WerkzeugResponse(page, error.status, error.headers, mimetype="text/html"))


def _unkept(response: WerkzeugResponse) -> WerkzeugResponse:
    """Each answer is for one browser and one time; no cache may keep it."""
    response.headers["Cache-Control"] = "no-store"
    return response
