"""The pages about accounts: what their forms say, do, and show only once."""

import html
import re

import pytest
from account_pages import answered, fault_of, page, send, value_of
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
    try_to_sign_in,
)

from portal.accounts import invitations
from portal.database.account_models import Role

WRONG = "Wrong e-mail address or password."


# Signing in.

pytestmark = pytest.mark.shared_app


async def test_refused_sign_in_says_so_and_keeps_all_but_the_password(anyone: Sender) -> None:
    await make_account("ann")
    for email in ("ann@example.org", "nobody@example.org"):
        form = {"email": email, "password": "quite wrong indeed", "next": "/upload"}
        text = await send(anyone, "/sign-in", form)
        assert text.count('role="alert"') == 1
        assert WRONG in html.unescape(text)
        assert value_of(text, "email") == email
        assert value_of(text, "password") == ""
        assert '<input type="hidden" name="next" value="/upload">' in text


async def test_script_that_asks_for_problem_details_is_told_by_those_why_not(
    app: Quart, anyone: Sender
) -> None:
    await make_account("ann")
    client, form = app.test_client(), {"email": "ann@example.org", "password": "wrong"}
    headers = {**OWN_PAGE, "Accept": "application/problem+json"}
    answer = await client.post("/sign-in", form=form, headers=headers)
    assert answer.content_type == "application/problem+json"
    problem = await answer.get_json(force=True)
    assert (answer.status_code, problem["code"]) == (401, "sign_in_refused")
    assert WRONG in problem["detail"]
    assert "WWW-Authenticate" not in answer.headers
    for _ in range(20):
        await renew_failures()
        answer = await client.post("/sign-in", form=form, headers=headers)
    problem = await answer.get_json(force=True)
    assert (answer.status_code, problem["code"]) == (429, "too_many_tries")
    assert answer.headers["Retry-After"] in problem["detail"]
    # Who asks for nothing in particular gets the page.
    assert WRONG in await send(anyone, "/sign-in", {**form, "email": "ed@example.org"})


async def test_sign_in_that_failed_too_often_says_how_long_to_wait(anyone: Sender) -> None:
    await make_account("ann")
    for _ in range(8):
        await renew_failures()
        last = await try_to_sign_in(anyone, "ann@example.org", "wrong")
    text = await answered(last, 429)
    assert int(last.headers["Retry-After"]) > 0
    assert "Try again in" in text
    assert value_of(text, "email") == "ann@example.org"


# One-time links and the first account.


async def test_invited_learns_the_role_and_each_fault_beside_its_field(anyone: Sender) -> None:
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
        assert fault_of(text, "password") == ""
    done = await anyone.post(path, form={"email": "ed@example.org", "password": PASSWORD})
    assert (done.status_code, done.headers["Location"]) == (303, "/")
    assert session_in(done)
    assert "not valid any more" in await page(anyone, path, 404)


async def test_link_for_an_account_shows_its_address(anyone: Sender) -> None:
    ann = await make_account("ann")
    ed = await make_account("ed", Role.EDITOR, has_password=False)
    path = f"/welcome/{await invitations.offer_password(ed.id, by=person(ann))}"
    text = await page(anyone, path)
    assert value_of(text, "email") == "ed@example.org"
    assert "readonly" in re.search(r'<input[^>]*id="email"[^>]*>', text)[0]  # type: ignore[index]


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


# One's own account.


async def test_each_fault_of_a_token_is_told_and_what_was_typed_stays(app: Quart) -> None:
    sender = await signed_in(app, await make_account("ann"))
    path = "/account/tokens"
    text = await send(sender, path, {"name": " ", "days": "none"})
    assert "Give a name" in fault_of(text, "name")
    assert "Choose one or more" in fault_of(text, "scopes")
    assert "1 to 3650 days" in fault_of(text, "days")
    form = {"name": "Nightly", "scopes": ["videos:read", "videos:nothing"], "days": "0"}
    text = await send(sender, path, form)
    assert (value_of(text, "name"), value_of(text, "days")) == ("Nightly", "0")
    boxes = re.findall(r'value="([\w:]+)"\s+checked', text)
    assert boxes == ["videos:read"]


async def test_token_is_shown_once_with_a_line_to_try_it(app: Quart, anyone: Sender) -> None:
    sender = await signed_in(app, await make_account("ann"))
    form = {"name": "Nightly", "scopes": ["videos:write"], "days": "30"}
    made = await send(sender, "/account/tokens", form, 200)
    token = value_of(made, "new-token")
    assert token.startswith("portal_")
    line = value_of(made, "first-call")
    assert f"Authorization: Bearer {token}" in line
    assert "/api/videos/presign" in line
    body = {"fileName": "film.mp4", "contentType": "video/mp4"}
    headers = {"Authorization": f"Bearer {token}"}
    assert (await anyone.post("/api/videos/presign", json=body, headers=headers)).status_code == 200
    later = await page(sender, "/account")
    assert token not in later
    assert "Nightly" in later
    revoke = re.search(r'action="(/account/tokens/[^"]+/revoke)"', later)
    assert revoke is not None
    done = await sender.post(revoke[1])
    assert "Nightly" not in await page(sender, done.headers["Location"])


# People.


async def test_admin_is_offered_nothing_about_owners(app: Quart) -> None:
    ann = await make_account("ann")
    sender = await signed_in(app, await make_account("ada", Role.ADMIN))
    text = await page(sender, "/people")
    assert "ann@example.org" in text
    assert f"/people/{ann.id}/" not in text
    assert 'value="owner"' not in text
    for path, form in (
        ("/people/invitations", {"role": "owner"}),
        (f"/people/{ann.id}/role", {"role": "viewer"}),
        (f"/people/{ann.id}/disable", {}),
        (f"/people/{ann.id}/reset", {}),
        (f"/people/{ann.id}/remove", {}),
    ):
        text = await send(sender, path, form, 403)
        assert "owner" in re.search(r'role="alert">.*?</div>', text, re.DOTALL)[0]  # type: ignore[index]
        assert "<h1>People</h1>" in text


async def test_changes_are_made_and_said(app: Quart) -> None:
    ann = await make_account("ann")
    ed = await make_account("ed", Role.EDITOR)
    sender = await signed_in(app, ann)
    for action, form, words in (
        ("role", {"role": "admin"}, "The role is changed"),
        ("disable", {}, "The account is disabled"),
        ("enable", {}, "The account is enabled"),
        ("remove", {}, "Its videos are yours"),
    ):
        done = await sender.post(f"/people/{ed.id}/{action}", form=form)
        assert done.status_code == 303
        assert words in await page(sender, done.headers["Location"])
    assert "ed@example.org" not in await page(sender, "/people")
    assert "notice--good" not in await page(sender, "/people?done=anything")


async def test_new_links_are_shown_once_and_invitations_can_be_revoked(
    app: Quart, anyone: Sender
) -> None:
    ann = await make_account("ann")
    ed = await make_account("ed", Role.EDITOR)
    sender = await signed_in(app, ann)
    made = await send(sender, "/people/invitations", {"role": "viewer", "label": "Vera"}, 200)
    assert "Vera" in made
    await send(sender, "/people/invitations", {"role": "viewer", "label": "V" * 101}, 422)
    reset = await send(sender, f"/people/{ed.id}/reset", {}, 200)
    for text in (made, reset):
        assert "works once, for seven days" in text
        path = re.sub(r"^https?://[^/]+", "", value_of(text, "new-link"))
        await page(anyone, path)
        assert path not in await page(sender, "/people")
    assert "A link for ed@example.org" in reset
    revoke = re.search(r'action="(/people/invitations/[^"]+/revoke)"', made)
    assert revoke is not None
    await sender.post(revoke[1])
    gone = re.sub(r"^https?://[^/]+", "", value_of(made, "new-link"))
    assert "not valid any more" in await page(anyone, gone, 404)
