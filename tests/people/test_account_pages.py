"""Pages about accounts: what each role gets, what forms do, and what is shown only once."""

import html
import re
from dataclasses import replace
from urllib.parse import urlsplit

import pytest
from api_client import UNKNOWN_VIDEO_ID, problem
from page_rows import READY, make_rendition, make_row
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
    text_of,
)

from portal.accounts import invitations, people, sessions, tokens
from portal.database.account_models import MAX_NAME_LENGTH, Account, Role
from portal.database.models import RenditionState, Video

pytestmark = pytest.mark.shared_app

EVIL = "<script>alert(1)</script>\"'"
# Parts of a video's page that only its editors get.
TOOLS = ("Edit</a>", 'id="delete-dialog"', "Use this frame as poster", "data-retry")


def header_of(text: str) -> str:
    return text[text.index("<header") : text.index("</header>")]


async def test_header_links_to_the_pages_of_each_role(app: Quart, anyone: Sender) -> None:
    """Error pages and the API reference have the header, too."""
    accounts = {role: await make_account(role.value, role) for role in Role}
    for path in ("/", "/api/docs"):
        stranger = await page(anyone, path)
        assert "Sign in</a>" in header_of(stranger)
        assert 'href="/upload"' not in stranger
        assert 'href="/api/docs"' not in header_of(stranger)
    for role, account in accounts.items():
        sender = await signed_in(app, account)
        pages = {"/": 200, "/nothing": 404}
        # The reference takes longest, and its header has only these two forms.
        pages |= {"/api/docs": 200} if role in (Role.VIEWER, Role.EDITOR) else {}
        for path, status in pages.items():
            header = header_of(await page(sender, path, status))
            assert f'title="{account.email}"' in header
            for link in ('href="/upload"', 'href="/api/docs"'):
                assert (link in header) is (role is not Role.VIEWER), (role, path)
            assert "Sign in</a>" not in header
        own = await page(sender, "/account")
        for place in ("people", "webhooks", "audit"):
            assert (f'href="/{place}"' in own) is (role in (Role.OWNER, Role.ADMIN))
            if role is Role.ADMIN:
                settings = (await page(sender, f"/{place}")).partition('aria-label="Settings"')[2]
                assert re.search(rf'href="/{place}"\s+aria-current="page"', settings)
                assert 'href="/account"' in settings


async def test_only_people_who_publish_filter_by_status(
    app: Quart, owner: Sender, anyone: Sender
) -> None:
    await make_row()
    viewer = await signed_in(app, await make_account("vi", Role.VIEWER))
    for sender, is_offered in ((anyone, False), (viewer, False), (owner, True)):
        assert ('name="status"' in await page(sender, "/")) is is_offered


async def test_missing_video_offers_signed_out_people_to_sign_in_and_return(
    anyone: Sender, olga: Account
) -> None:
    path = f"/videos/{UNKNOWN_VIDEO_ID}"
    text = await page(anyone, path, 404)
    [_, message] = text.split('aria-labelledby="problem-title"')
    assert f'<a class="button" href="/sign-in?next={path}">Sign in</a>' in message


async def _tools(sender: Sender, video: Video) -> set[str]:
    """Return the controls on the page of a video, its fragments, and its workshop, if visible."""
    path = f"/videos/{video.id}"
    texts = [await page(sender, f"{path}{name}") for name in ("", "/status", "/remaining")]
    workshop = await sender.get(f"{path}/edit")
    if workshop.status_code == 200:
        texts.append(await text_of(workshop))
    return {tool for tool in TOOLS if any(tool in text for text in texts)}


async def test_only_editors_of_a_video_get_its_controls(app: Quart, anyone: Sender) -> None:
    video = await make_row(1, **READY)
    await make_rendition(video, "720p", state=RenditionState.FAILED, error_code="stalled")
    assert await _tools(anyone, video) == set(TOOLS)
    ann = await make_account("ann")
    ed = await make_account("ed", Role.EDITOR)
    own = await make_row(2, **READY, owner_id=ed.id)
    editor = await signed_in(app, ed)
    viewer = await make_account("vi", Role.VIEWER)
    for sender in (anyone, editor, await signed_in(app, viewer)):
        assert await _tools(sender, video) == set()
    assert await _tools(editor, own) == set(TOOLS[:3])
    for account in (ann, await make_account("ada", Role.ADMIN)):
        assert await _tools(await signed_in(app, account), video) == set(TOOLS)


async def test_nothing_typed_breaks_out_of_a_page(app: Quart, here: Sender) -> None:
    bare = EVIL.replace(" ", "")
    texts = [await send(here, "/set-up", {"email": EVIL, "password": "short"})]
    ann = await people.add(f"{bare}@example.org", Role.OWNER)
    for name in (f"{bare}2", f"{bare}3"):
        await people.add(f"{name}@example.org", Role.EDITOR)
    secret = await invitations.invite(Role.EDITOR, by=person(ann))
    await tokens.create(ann.id, name=EVIL, scopes=["admin"])
    await sessions.create(ann.id, device=EVIL, address="203.0.113.1")
    sender = await signed_in(app, ann)
    other = await people.get(f"{bare}2@example.org")
    texts += [
        await send(here, "/sign-in", {"email": EVIL, "password": "x", "next": f"/{EVIL}"}),
        await send(here, f"/welcome/{secret}", {"email": EVIL, "password": "x"}),
        await page(sender, f"/account?done={EVIL}"),
        await send(sender, "/account/tokens", {"name": EVIL * 5, "days": EVIL, "scopes": EVIL}),
        await page(sender, "/people"),
        await send(sender, f"/people/{other.id}/reset", {}, 200),
        await send(sender, f"/people/{other.id}/role", {"role": EVIL}),
    ]
    for text in texts:
        assert "<script>alert" not in text
        assert "\"'@" not in text
        assert "&lt;script&gt;alert" in text


WRONG = "Wrong email address or password."


async def test_refused_sign_in_shows_the_reason_and_keeps_all_but_the_password(
    anyone: Sender,
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


async def rename(sender: Sender, name: str, status: int = 303) -> str:
    return await send(sender, "/account/name", {"name": name}, status)


async def test_pages_show_the_owners_name_but_never_the_address(
    anyone: Sender, owner: Sender, olga: Account
) -> None:
    videos = [await make_row(number, **READY, owner_id=olga.id) for number in (1, 2)]
    watch = f"/videos/{videos[0].id}"
    assert olga.email in await page(owner, "/people")
    assert "by <bdi>" not in await page(anyone, watch)
    await rename(owner, "  Ann\n of the  Hill ")
    assert "by <bdi>Ann of the Hill</bdi>" in " ".join((await page(anyone, watch)).split())
    for path, cards in (("/", 2), (f"{watch}/related", 1), (watch, 0)):
        text = await page(anyone, path)
        assert text.count("<bdi>Ann of the Hill</bdi> ·") == cards
        assert olga.email not in text
    assert "<bdi>Ann of the Hill</bdi>" in await page(owner, "/people")
    # The name is text, without marks that reverse direction.
    await rename(owner, "<b>Ann</b> \u202eevil")
    text = await page(anyone, watch)
    assert "&lt;b&gt;Ann&lt;/b&gt;" in text
    assert "\u202e" not in text


async def test_name_has_a_length(owner: Sender) -> None:
    await rename(owner, "x" * MAX_NAME_LENGTH)
    text = await rename(owner, "y" * (MAX_NAME_LENGTH + 1), 422)
    assert fault_of(text, "own-name") == "Give a name of at most 100 characters."
    assert value_of(text, "own-name") == "y" * (MAX_NAME_LENGTH + 1)
    assert value_of(await page(owner, "/account"), "own-name") == "x" * MAX_NAME_LENGTH
