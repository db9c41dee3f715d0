"""Page of a personal link, on which a guest enters the code."""

from quart import Blueprint, redirect, render_template, request, url_for
from quart.typing import ResponseReturnValue

from portal.accounts import guests
from portal.errors import InvalidRequest, LinkNotValid, TooManyTries
from portal.http.auth import MAX_GUESTS, Policy, guest_secrets, policy, principal
from portal.http.composition import web_context
from portal.http.cookies import GUESTS
from portal.http.server.context import state_of
from portal.http.server.limits import Rate

blueprint = Blueprint("guests", __name__)


@blueprint.get("/welcome/guest/<secret>")
@policy(Policy.ANYONE)
async def form(secret: str) -> ResponseReturnValue:
    """Show the form for the code, or the shared videos to a guest who has confirmed a link."""
    try:
        guest = await guests.require_link(secret)
    except LinkNotValid:
        if (await principal()).ids:
            return redirect(_shared_url(), 303)
        raise
    return await _render(secret, guest.email)


@blueprint.post("/welcome/guest/<secret>")
@policy(Policy.ANYONE, rate=Rate.SIGN_IN)
async def confirm(secret: str) -> ResponseReturnValue:
    """Bind the link to the browser if the code is right, or show the form with the fault."""
    guest = await guests.require_link(secret)
    code = (await request.form).get("code", "")
    try:
        own = await guests.confirm(secret, code, address=state_of(request.scope).client)
    except InvalidRequest as exc:
        return await _render(secret, guest.email, fault=exc.by_field["code"]), exc.status
    except TooManyTries as exc:
        return await _render(secret, guest.email, fault=exc.detail), exc.status
    response = redirect(_shared_url(), 303)
    secrets = [*guest_secrets(), own][-MAX_GUESTS:]
    GUESTS.set(response, ".".join(secrets), web_context().config)
    return response


def _shared_url() -> str:
    return url_for("library.index", whose="shared")


async def _render(secret: str, email: str, *, fault: str = "") -> str:
    return await render_template("guests/confirm.html", secret=secret, email=email, fault=fault)
