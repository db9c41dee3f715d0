"""Signing in and out: password, single sign-on, one-time links, and the first account."""

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
from portal.accounts import groups, identities, invitations, people, sessions
from portal.accounts.permissions import Action
from portal.config import Config
from portal.config.values import LOOPBACK
from portal.database.account_models import Account, Role
from portal.database.outages import skipped_in_outage
from portal.http.addresses import own_path
from portal.http.auth import Policy, policy, principal
from portal.http.composition import web_context
from portal.http.cookies import SESSION, SIGN_ON
from portal.http.errors import PROBLEM_TYPE, problem_document
from portal.http.server.context import state_of
from portal.http.server.limits import Rate
from portal.locale.messages import Message
from portal.text import host_name, shown

if TYPE_CHECKING:
    from portal.accounts.oidc import Provider

blueprint = Blueprint("signing_in", __name__)
logger = logging.getLogger(__name__)

FORWARDING = ("Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Real-IP")
ROLE_WORDS = {
    Role.OWNER: Message("Owner: everything, owners' accounts included"),
    Role.ADMIN: Message("Admin: people, and all videos"),
    Role.EDITOR: Message("Editor: publishes, edits and deletes own videos"),
    Role.CONTRIBUTOR: Message("Contributor: uploads videos that editors approve"),
    Role.VIEWER: Message("Viewer: signs in to watch"),
}
# Error codes of RFC 6749, section 4.1.2.1. Anything else is not logged.
ERROR_CODE = re.compile(r"[a-z_]{1,40}")
REFUSED_THERE = Message(
    "Your single sign-on provider did not sign you in. Try again, or sign in with your password."
)


@blueprint.app_template_global()
async def current_viewer() -> dict[str, Any] | None:
    """Return the facts about the viewer that all pages use; None if the viewer can't be identified.

    That is so on error pages, and while the database is away.
    """
    viewer = None
    with skipped_in_outage(), suppress(errors.TokenRefused):
        viewer = await principal()
    if viewer is None:
        return None
    return {
        "is_open": viewer.account_id is None and viewer.role is not None,
        "is_signed_in": viewer.is_signed_in,
        "account_id": str(viewer.account_id or ""),
        "email": shown(viewer.email),
        "may_publish": viewer.may(Action.PUBLISH),
        "may_approve": viewer.may(Action.APPROVE),
        "may_administer": viewer.is_signed_in and viewer.may(Action.ADMINISTER),
        "has_single_sign_on": web_context().provider is not None,
    }


@blueprint.get("/sign-in")
@policy(Policy.ANYONE)
async def form() -> ResponseReturnValue:
    """Show the form, or redirect people who are signed in already."""
    if (await principal()).is_signed_in:
        return redirect(own_path(request.args.get("next", "")), 303)
    return await sign_in_page(next_url=own_path(request.args.get("next", "")))


@blueprint.post("/sign-in")
@policy(Policy.ANYONE)
async def sign_in() -> ResponseReturnValue:
    """Sign in and redirect to the page that required it, or show the form with the reason.

    Scripts get the reason as problem details if they accept those.
    """
    fields = await request.form
    try:
        secret = await sessions.sign_in(
            fields.get("email", ""),
            fields.get("password", ""),
            passwords=web_context().passwords,
            **_client_details(),
        )
    except (errors.SignInRefused, errors.TooManyTries) as exc:
        return await _sign_in_refused(exc, fields)
    return await set_session(secret, own_path(fields.get("next", "")))


async def _sign_in_refused(error: errors.PortalError, fields: Mapping[str, str]) -> Response:
    if request.accept_mimetypes.best == PROBLEM_TYPE:
        document = problem_document(error)
        return Response(document, error.status, dict(error.headers), content_type=PROBLEM_TYPE)
    page = await sign_in_page(
        next_url=own_path(fields.get("next", "")), email=fields.get("email", ""), fault=error.detail
    )
    # A 401 requires a WWW-Authenticate header, on which browsers show a password dialog.
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
    # The Back button must not show pages of the ended session.
    response.headers["Clear-Site-Data"] = '"cache"'
    return response


@blueprint.get("/welcome/<secret>")
@policy(Policy.ANYONE)
async def welcome(secret: str) -> str:
    """Show the form of a one-time link, without using the link up."""
    return await _render_welcome(secret, await invitations.look_up(secret))


@blueprint.post("/welcome/<secret>")
@policy(Policy.ANYONE)
async def accept(secret: str) -> ResponseReturnValue:
    """Use up a one-time link and sign in, or show the form with its faults."""
    fields = await request.form
    offer = await invitations.look_up(secret)
    try:
        account = await invitations.accept(
            secret,
            email=fields.get("email", ""),
            password=fields.get("password", ""),
            passwords=web_context().passwords,
        )
    except (errors.InvalidRequest, errors.AccountExists) as exc:
        faults = exc.by_field if isinstance(exc, errors.InvalidRequest) else {"email": exc.detail}
        return await _render_welcome(
            secret, offer, email=fields.get("email", ""), faults=faults
        ), 422
    return await begin_session(account, url_for("library.index"))


@blueprint.get("/sign-in/oidc")
@policy(Policy.ANYONE, rate=Rate.SIGN_IN)
async def begin_single_sign_on() -> ResponseReturnValue:
    """Redirect to the provider. This is a link, because forms may only lead to the portal."""
    provider = _require_provider()
    config = web_context().config
    if not await web_context().accounts_exist():
        return redirect(url_for("signing_in.form"), 303)
    next_url = own_path(request.args.get("next", ""))
    try:
        # The provider must be reachable before a sign-in is recorded.
        await provider.discover()
        needs_groups = await groups.any_follows()
        secrets = await identities.begin_sign_on(next_url)
        response = redirect(
            await provider.authorization_url(secrets, needs_groups=needs_groups), 303
        )
    except errors.ProviderUnavailable as exc:
        return await _sign_on_refused(exc, next_url)
    SIGN_ON.set(response, secrets.secret, config)
    return _forbid_caching(response)


@blueprint.get(identities.CALLBACK)
@policy(Policy.ANYONE)
async def come_back() -> ResponseReturnValue:
    """Sign in the person that the provider names, or show the form with the reason."""
    provider = _require_provider()
    config = web_context().config
    secrets = identities.SignOnSecrets(SIGN_ON.read(request, config))
    try:
        next_url = await identities.end_sign_on(secrets, request.args.get("state", ""))
    except errors.SignOnUnknown as exc:
        return await _sign_on_refused(exc, url_for("library.index"))
    try:
        needs_groups = await groups.any_follows()
        claims = await provider.claims_of(_read_code(config), secrets, needs_groups=needs_groups)
        response = await _sign_in_person(identities.read_claims(claims, config), next_url)
    except (errors.SingleSignOnRefused, errors.ProviderUnavailable) as exc:
        response = await _sign_on_refused(exc, next_url)
    SIGN_ON.clear(response, config)
    return _forbid_caching(response)


@blueprint.get("/set-up")
@policy(Policy.ANYONE)
async def set_up() -> ResponseReturnValue:
    """Explain how to create the first account: on this page or by a command."""
    await _require_no_accounts()
    return await _render_set_up()


@blueprint.post("/set-up")
@policy(Policy.ANYONE)
async def make_first() -> ResponseReturnValue:
    """Create the first account, with the role of an owner, and sign in."""
    await _require_no_accounts()
    if not _is_local_request():
        raise errors.NotFound
    fields = await request.form
    hasher = web_context().passwords
    email = fields.get("email", "")
    try:
        password_hash = await hasher.choose(fields.get("password", ""), email=email)
        account = await people.add_first(email, password_hash=password_hash)
    except errors.InvalidRequest as exc:
        return await _render_set_up(email=email, faults=exc.by_field), 422
    return await begin_session(account, url_for("library.index"))


async def _require_no_accounts() -> None:
    if await web_context().accounts_exist():
        raise errors.NotFound(
            Message("This portal has accounts already. Sign in, or ask for an invitation.")
        )


def _is_local_request() -> bool:
    """Return whether the request comes from this machine, and not through a proxy on it.

    A proxy that adds no headers shows in the public address of the portal.
    """
    if any(name in request.headers for name in FORWARDING):
        return False
    peer, *_ = request.scope.get("client") or ("",)
    names = (request.headers.get("Host", ""), urlsplit(web_context().config.public_url).netloc)
    return {peer, *map(host_name, names)} <= LOOPBACK


async def begin_session(account: Account, next_url: str) -> WerkzeugResponse:
    """Begin a session for an account whose password was just set, and redirect."""
    return await set_session(await sessions.create(account.id, **_client_details()), next_url)


def _client_details() -> dict[str, str]:
    """Return the facts about the browser that its session records."""
    return {
        "device": request.headers.get("User-Agent", ""),
        "address": state_of(request.scope).client,
    }


async def set_session(secret: str, next_url: str) -> WerkzeugResponse:
    """Redirect with the cookie of a new session, and end the browser's earlier session."""
    config = web_context().config
    if earlier := SESSION.read(request, config):
        await sessions.end(earlier)
    response = redirect(next_url, 303)
    SESSION.set(response, secret, config)
    return response


async def sign_in_page(*, next_url: str, email: str = "", fault: str = "", notice: str = "") -> str:
    """Render the sign-in page, with a `fault` of its fields, or a `notice` about anything else."""
    return await render_template(
        "people/sign_in.html",
        next_url=next_url,
        email=email,
        fault=fault,
        notice=notice,
        has_single_sign_on=web_context().provider is not None,
        has_accounts=await web_context().accounts_exist(),
    )


async def _render_welcome(
    secret: str,
    offer: tuple[str, Role],
    *,
    email: str = "",
    faults: Mapping[str, str] | None = None,
) -> str:
    offered_email, role = offer
    return await render_template(
        "people/welcome.html",
        action=url_for("signing_in.accept", secret=secret),
        email=offered_email or email,
        is_new=not offered_email,
        role_words=ROLE_WORDS[role],
        faults=faults or {},
    )


async def _render_set_up(*, email: str = "", faults: Mapping[str, str] | None = None) -> str:
    return await render_template(
        "people/set_up.html", is_here=_is_local_request(), email=email, faults=faults or {}
    )


async def _sign_in_person(person: identities.Person, next_url: str) -> WerkzeugResponse:
    viewer = await principal()
    own_id = viewer.account_id if viewer.is_signed_in else None
    secret = await identities.sign_in(person, **_client_details(), signed_in_id=own_id)
    return await set_session(secret, next_url)


def _require_provider() -> Provider:
    provider = web_context().provider
    if provider is None:
        raise errors.NotFound(
            Message("This portal does not use single sign-on. Sign in with your password.")
        )
    return provider


def _read_code(config: Config) -> str:
    """Return the authorization code in the address. Raises `SingleSignOnRefused`."""
    parameters = request.args
    if error := parameters.get("error"):
        code = error if ERROR_CODE.fullmatch(error) else "an invalid error code"
        raise errors.SingleSignOnRefused(REFUSED_THERE) from ValueError(f"says {code}")
    # RFC 9207: an answer of another provider has its name in `iss`.
    issuer = parameters.get("iss", config.oidc_issuer)
    if issuer != config.oidc_issuer or not parameters.get("code"):
        raise errors.SingleSignOnRefused
    return parameters["code"]


async def _sign_on_refused(error: errors.PortalError, next_url: str) -> WerkzeugResponse:
    """Show the form with the reason, so that people can use their password instead."""
    fields = {"action": error.code, "client": state_of(request.scope).client}
    # Causes contain members, addresses and statuses, but no codes, states or tokens.
    logger.warning("Single sign-on: %r", error.__cause__ or error.detail, extra=fields)
    page = await sign_in_page(next_url=next_url, notice=error.detail)
    return _forbid_caching(
        WerkzeugResponse(page, error.status, error.headers, mimetype="text/html")
    )


def _forbid_caching(response: WerkzeugResponse) -> WerkzeugResponse:
    """Forbid caching: each answer is for one browser and one sign-in."""
    response.headers["Cache-Control"] = "no-store"
    return response
