"""Pages of a portal with accounts for each role, and escaping of typed text."""

import re

import pytest
from api_client import UNKNOWN_VIDEO_ID
from page_rows import READY, make_rendition, make_row
from page_texts import page, send
from quart import Quart
from signed_in import Sender, make_account, person, signed_in, text_of

from portal.accounts import invitations, people, sessions, tokens
from portal.database.account_models import Account, Role
from portal.database.models import RenditionState, Video

EVIL = "<script>alert(1)</script>\"'"
# Parts of a video's page that only its editors get.
TOOLS = ("Edit</a>", 'id="delete-dialog"', "Use this frame as poster", "data-retry")
pytestmark = pytest.mark.shared_app


def header_of(text: str) -> str:
    """Return the items in the header of a page."""
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
    app: Quart, anyone: Sender, olga: Account
) -> None:
    await make_row()
    owner = await signed_in(app, olga)
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
