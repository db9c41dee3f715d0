"""Signing in by an OpenID Connect provider: leaving for it, and coming back."""

from __future__ import annotations

import logging
import re
from typing import TYPE_CHECKING

from quart import Blueprint, redirect, request, url_for
from quart.typing import ResponseReturnValue
from werkzeug.wrappers import Response

from portal.accounts.oidc import claims, identities, sign_ons
from portal.accounts.oidc.sign_ons import CALLBACK, SignOnSecrets
from portal.config import Config
from portal.errors import (
    NotFound,
    PortalError,
    ProviderUnavailable,
    SignOnUnknown,
    SingleSignOnRefused,
)
from portal.web.auth import Policy, policy, principal
from portal.web.composition import web_context
from portal.web.cookies import SIGN_ON
from portal.web.pages.signing_in import lead_on, next_path, sign_in_page
from portal.web.server.context import state_of

if TYPE_CHECKING:
    from portal.accounts.oidc.provider import Provider

blueprint = Blueprint("single_sign_on", __name__)
logger = logging.getLogger(__name__)

# As RFC 6749 has them, section 4.1.2.1: what else was sent is not repeated in the log.
ERROR_CODE = re.compile(r"[a-z_]{1,40}")
REFUSED_THERE = (
    "The provider of single sign-on did not sign you in: it or you refused. Start again, or sign "
    "in with your password."
)


@blueprint.get("/sign-in/oidc")
@policy(Policy.ANYONE)
async def begin() -> ResponseReturnValue:
    """Lead to the provider. A link does it: a form may lead to the portal alone."""
    provider, config = _provider(), web_context().config
    if not await web_context().accounts_exist():
        return redirect(url_for("signing_in.form"), 303)
    next_url = next_path(request.args)
    try:
        # Before anything is kept of someone who can't be sent there.
        await provider.discover()
        secrets = await sign_ons.begin(next_url)
        response = redirect(await provider.authorization_url(secrets), 303)
    except ProviderUnavailable as exc:
        return await _refused(exc, next_url)
    SIGN_ON.set(response, secrets.secret, config)
    return _unkept(response)


@blueprint.get(CALLBACK)
@policy(Policy.ANYONE)
async def come_back() -> ResponseReturnValue:
    """Sign in who the provider says it is, and lead on; or the form again, which says why not."""
    provider, config = _provider(), web_context().config
    secrets = SignOnSecrets(SIGN_ON.read(request, config))
    try:
        next_url = await sign_ons.end(secrets, request.args.get("state", ""))
    except SignOnUnknown as exc:
        return await _refused(exc, url_for("library.index"))
    try:
        claimed = await provider.claims_of(_code(config), secrets)
        response = await _signed_in(claims.read(claimed, config), next_url)
    except (SingleSignOnRefused, ProviderUnavailable) as exc:
        response = await _refused(exc, next_url)
    SIGN_ON.clear(response, config)
    return _unkept(response)


async def _signed_in(person: claims.Person, next_url: str) -> Response:
    found = await principal()
    secret = await identities.sign_in(
        person,
        device=request.headers.get("User-Agent", ""),
        address=state_of(request.scope).client,
        signed_in_id=found.account_id if found.is_signed_in else None,
    )
    return await lead_on(secret, next_url)


def _provider() -> Provider:
    provider = web_context().provider
    if provider is None:
        raise NotFound("Single sign-on is not set up here. Sign in with your password.")
    return provider


def _code(config: Config) -> str:
    """The code that came back. Raises `SingleSignOnRefused` for what else did."""
    sent = request.args
    if error := sent.get("error"):
        known = error if ERROR_CODE.fullmatch(error) else "unknown"
        raise SingleSignOnRefused(REFUSED_THERE) from ValueError(f"the provider says {known}")
    # RFC 9207: the answer of another provider names that one.
    if sent.get("iss", config.oidc_issuer) != config.oidc_issuer or not sent.get("code"):
        raise SingleSignOnRefused
    return sent["code"]


async def _refused(error: PortalError, next_url: str) -> Response:
    """The form, with a password for another way, and with the fault."""
    fields = {"action": error.code, "client": state_of(request.scope).client}
    # A cause names members, addresses and statuses, but no code, state or token.
    logger.warning("Single sign-on: %r", error.__cause__ or error.detail, extra=fields)
    page = await sign_in_page(next_url=next_url, notice=error.detail)
    return _unkept(Response(page, error.status, error.headers, mimetype="text/html"))


def _unkept(response: Response) -> Response:
    """Each answer is for one browser and one time; no cache may keep it."""
    response.headers["Cache-Control"] = "no-store"
    return response
