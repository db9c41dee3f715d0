"""The pages about accounts: what their forms say, do, and show only once."""

import html
import re
from dataclasses import replace
from urllib.parse import urlsplit

import pytest
from api_client import problem
from page_texts import fault_of, page, send, value_of
from quart import Quart
from signed_in import (
    OWN_PAGE,
    PASSWORD,
    Sender,
    make_account,
    person,
    renew_failures,
    session_in,
    signed_in,
)

from portal.accounts import invitations
from portal.database.account_models import Role

WRONG = "Wrong email address or password."


pytestmark = pytest.mark.shared_app


async def test_refused_sign_in_shows_the_reason_and_keeps_all_but_the_password(
    app: Quart, anyone: Sender
) -> None:
    """Scripts that accept problem details get them."""
    await make_account("ann")
    form = {"email": "ann@example.org", "password": "quite wrong indeed", "next": "/upload"}
    text = await send(anyone, "/sign-in", form)
    assert text.partition("</main>")[0].count('role="alert"') == 1
    assert WRONG in html.unescape(text)
    assert (value_of(text, "email"), value_of(text, "password")) == ("ann@example.org", "")
    assert '<input type="hidden" name="next" value="/upload">' in text
    script = replace(anyone, headers={**OWN_PAGE, "Accept": "application/problem+json"})
    answer = await script.post("/sign-in", form=form)
    assert WRONG in (await problem(answer, 401, "sign_in_refused"))["detail"]
    assert "WWW-Authenticate" not in answer.headers
    for _ in range(6):
        await renew_failures()
        answer = await script.post("/sign-in", form=form)
    details = await problem(answer, 429, "too_many_tries")
    assert answer.headers["Retry-After"] in details["detail"]
    text = await send(anyone, "/sign-in", form, 429)
    assert "Try again in" in text
    assert value_of(text, "email") == "ann@example.org"


async def test_invitation_shows_the_role_and_each_fault_at_its_field(anyone: Sender) -> None:
    ann = await make_account("ann")
    path = f"/welcome/{await invitations.invite(Role.EDITOR, by=person(ann))}"
    assert "Editor: publishes, edits and deletes own videos" in await page(anyone, path)
    short = await send(anyone, path, {"email": "ed@example.org", "password": "short"})
    assert "12 characters or more" in fault_of(short, "password")
    assert fault_of(short, "email") == ""
    assert value_of(short, "email") == "ed@example.org"
    assert value_of(short, "password") == ""
    for email, words in (("ed", "like ann@example.org"), ("ann@example.org", "already")):
        text = await send(anyone, path, {"email": email, "password": PASSWORD})
        assert words in fault_of(text, "email")
    done = await anyone.post(path, form={"email": "ed@example.org", "password": PASSWORD})
    assert (done.status_code, done.headers["Location"]) == (303, "/")
    assert session_in(done)
    assert "no longer valid" in await page(anyone, path, 404)


async def test_first_account_is_made_on_the_machine_itself_alone(
    anyone: Sender, here: Sender
) -> None:
    form = {"email": "ann@example.org", "password": PASSWORD}
    text = await page(anyone, "/set-up")
    assert "portal accounts add you@example.org --role owner" in text
    assert "--data-dir DIR" in text
    assert 'type="password"' not in text
    assert 'type="password"' in await page(here, "/set-up")
    done = await here.post("/set-up", form=form)
    assert (done.status_code, bool(session_in(done))) == (303, True)
    for sender in (anyone, here):
        assert "has accounts already" in await page(sender, "/set-up", 404)


async def test_invalid_token_form_shows_faults_and_a_valid_token_is_listed_until_revoked(
    app: Quart,
) -> None:
    """Typed values stay. security/test_told_secrets checks that a token is shown once."""
    sender = await signed_in(app, await make_account("ann"))
    path = "/account/tokens"
    text = await send(sender, path, {"name": " ", "scopes": "videos:read", "days": "none"})
    assert "Enter a name" in fault_of(text, "name")
    assert "1 to 3650 days" in fault_of(text, "days")
    assert value_of(text, "days") == "none"
    assert re.findall(r'value="([\w:]+)"\s+checked', text) == ["videos:read"]
    form = {"name": "Nightly", "scopes": ["videos:write"], "days": "30"}
    answer = await send(sender, path, form, 200)
    assert f"Authorization: Bearer {value_of(answer, 'new-token')}" in value_of(
        answer, "first-call"
    )
    later = await page(sender, "/account")
    assert "Nightly" in later
    [revoke] = re.findall(r'action="(/account/tokens/[^"]+/revoke)"', later)
    done = await sender.post(revoke)
    assert "Nightly" not in await page(sender, done.headers["Location"])


async def test_admin_has_no_controls_for_owners(app: Quart) -> None:
    ann = await make_account("ann")
    sender = await signed_in(app, await make_account("ada", Role.ADMIN))
    text = await page(sender, "/people")
    assert "ann@example.org" in text
    assert f"/people/{ann.id}/" not in text
    assert 'value="owner"' not in text
    text = await send(sender, f"/people/{ann.id}/disable", {}, 403)
    assert "owner" in text.partition('role="alert"')[2].partition("</div>")[0]
    assert "<h1>People</h1>" in text


async def test_new_links_are_shown_and_invitations_can_be_revoked(
    app: Quart, anyone: Sender
) -> None:
    ann = await make_account("ann")
    ed = await make_account("ed", Role.EDITOR)
    sender = await signed_in(app, ann)
    answer = await send(sender, "/people/invitations", {"role": "viewer", "label": "Vera"}, 200)
    assert "Vera" in answer
    await send(sender, "/people/invitations", {"role": "viewer", "label": "V" * 101}, 422)
    reset = await send(sender, f"/people/{ed.id}/reset", {}, 200)
    for text in (answer, reset):
        await page(anyone, urlsplit(value_of(text, "new-link")).path)
    assert "Password reset link for ed@example.org" in reset
    [revoke] = re.findall(r'action="(/people/invitations/[^"]+/revoke)"', answer)
    done = (await sender.post(revoke)).headers["Location"]
    for address, notices in ((done, 1), ("/people?done=anything", 0)):
        assert (await page(sender, address)).count("notice--good") == notices
    await page(anyone, urlsplit(value_of(answer, "new-link")).path, 404)
