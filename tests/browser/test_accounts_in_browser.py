"""Accounts as people meet them: from an open portal to one with an owner and an invited editor."""

import asyncio
import sys
from asyncio.subprocess import DEVNULL
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest
from chromium import EDITOR, OWNER, PASSWORD, OpenPage, publish_file, suits_everyone
from playwright.async_api import Locator, Page, expect
from running_portal import LivePortal, answers, free_port, fresh_portal, until

# Browsers report answers that refuse something.
pytestmark = pytest.mark.complaint("status of (401|404|409|422)")


# Longest e-mail address that the header has to show at each width.
LONG_ADDRESS = f"{'long.' * 9}a@a.example"


def navigation(page: Page) -> Locator:
    return page.get_by_role("navigation", name="Main")


async def test_owner_closes_the_portal_and_invites_an_editor(
    portal: LivePortal, open_page: OpenPage, short_video: Path
) -> None:
    """Every page of accounts is accessible on the way."""
    still = {"base_url": portal.base_url, "reduced_motion": "reduce"}
    page = await open_page(**still)
    for path in ("/", "/videos"):
        await page.goto(path)
        await suits_everyone(page, f"empty-{path[1:]}")
    video_id = await publish_file(portal.base_url, short_video, "Ann's film")
    video = f"{portal.base_url}/videos/{video_id}"

    # Open: everything is offered to everyone, and a quiet line says so.
    await page.goto(video)
    await expect(page.get_by_role("link", name="Edit")).to_be_visible()
    await expect(navigation(page).get_by_role("link")).to_have_text(
        ["Library", "Upload", "Record", "API"]
    )
    await page.get_by_role("link", name="Set up accounts").click()
    await suits_everyone(page, "set-up")
    await page.get_by_label("Email address").fill(LONG_ADDRESS)
    await page.get_by_role("textbox", name="Password").fill(PASSWORD)
    await page.get_by_role("button", name="Create account").click()
    account = navigation(page).get_by_role("link", name=f"Account of {LONG_ADDRESS}")
    await expect(account).to_be_visible()

    # Signed out: watching stays, changing goes.
    await account.click()
    await page.get_by_role("button", name="Sign out", exact=True).click()
    await expect(navigation(page).get_by_role("link")).to_have_text(["Library", "Sign in"])
    await page.goto(video)
    await expect(page.get_by_role("heading", level=1)).to_have_text("Ann's film")
    await expect(page.get_by_role("link", name="Edit")).to_have_count(0)
    await navigation(page).get_by_role("link", name="Sign in").click()
    await suits_everyone(page, "sign-in")
    await page.get_by_label("Email address").fill(LONG_ADDRESS)
    await page.get_by_role("textbox", name="Password").fill(PASSWORD)
    await page.locator("main").get_by_role("button", name="Sign in").click()
    await expect(account).to_be_visible()
    assert page.url == video
    await expect(page.get_by_role("link", name="Edit")).to_be_visible()

    # A password is shown only while its button is pressed.
    await account.click()
    password = page.get_by_role("textbox", name="Current password")
    button = page.get_by_role("button", name="Show current password")
    await password.fill("wrong")
    await button.click()
    await expect(password).to_have_attribute("type", "text")
    await expect(button).to_have_attribute("aria-pressed", "true")
    await button.click()
    await expect(password).to_have_attribute("type", "password")
    await page.get_by_role("button", name="Change password").click()
    await expect(password).to_be_focused()
    await expect(password).to_have_value("")

    # A token, seen once.
    form = page.get_by_role("form", name="New API token")
    await form.get_by_label("Name").fill("Nightly")
    await form.get_by_label("Publish and edit videos").check()
    await form.get_by_role("button", name="Create token").click()
    token = await page.get_by_label("API token", exact=True).input_value()
    assert token.startswith("portal_")
    assert token in await page.get_by_label("Try it", exact=True).input_value()
    await page.get_by_role("button", name="Copy: API token").click()
    await expect(page.locator("[data-detail-live]")).to_have_text("API token copied")
    await account.click()
    await expect(page.get_by_text("Never used")).to_be_visible()
    assert token not in await page.content()
    for path in ("account", "people", "groups", "audit", "webhooks"):
        await page.goto(f"/{path}")
        await suits_everyone(page, path)

    # An invitation, accepted elsewhere.
    await page.get_by_role("link", name="People").click()
    await page.get_by_role("button", name="Create invitation").click()
    link = await page.get_by_label("One-time link", exact=True).input_value()
    await suits_everyone(page, "people-link")
    editor = await open_page(**still)
    await editor.goto(link)
    await suits_everyone(editor, "welcome")
    await expect(editor.get_by_text("Editor: publishes")).to_be_visible()
    await editor.get_by_label("Email address").fill(EDITOR)
    await editor.get_by_role("textbox", name="Password").fill(PASSWORD)
    await editor.get_by_role("button", name="Choose password and sign in").click()
    await expect(navigation(editor).get_by_role("link", name="Upload")).to_be_visible()
    await editor.goto(video)
    await expect(editor.get_by_role("heading", level=1)).to_have_text("Ann's film")
    await expect(editor.get_by_role("link", name="Edit")).to_have_count(0)
    # The portal ends with this test, so scripts that are still loading would log errors.
    await editor.wait_for_load_state("networkidle")


@pytest.fixture
async def issuer() -> AsyncIterator[str]:
    """`oidc-provider-mock` in a separate process, with the owner as a user."""
    port = free_port()
    issuer = f"http://127.0.0.1:{port}"
    mock = (sys.executable, "-m", "oidc_provider_mock", "--port", str(port), "--require-nonce")
    process = await asyncio.create_subprocess_exec(*mock, stdout=DEVNULL, stderr=DEVNULL)
    try:
        await until(lambda: answers(f"{issuer}/.well-known/openid-configuration"), timeout_s=30)
        async with aiohttp.ClientSession() as http:
            claims = {"email": OWNER, "email_verified": True}
            await http.put(f"{issuer}/users/ann", json=claims, raise_for_status=True)
        yield issuer
    finally:
        process.terminate()
        await process.wait()


@pytest.mark.slow
@pytest.mark.complaint("ERR_(NAME_NOT_RESOLVED|INTERNET_DISCONNECTED|CONNECTION_|PROXY_)")
async def test_single_sign_on_returns_to_the_requested_page(
    page: Page, services: dict[str, str], issuer: str
) -> None:
    """The provider's page loads a style sheet of another site, which fails here."""
    client = {"OIDC_CLIENT_ID": "portal", "OIDC_CLIENT_SECRET": "a-secret"}
    async with fresh_portal(services, OIDC_ISSUER=issuer, **client) as portal:
        form = {"email": OWNER, "password": PASSWORD}
        await page.context.request.post(f"{portal.base_url}/set-up", form=form)
        await page.context.clear_cookies()
        await page.goto(f"{portal.base_url}/people")
        await page.get_by_role("link", name="Sign in with single sign-on").click()
        await page.get_by_placeholder("sub").fill("ann")
        await page.get_by_role("button", name="Authorize").click()
        await expect(page.get_by_role("heading", level=1)).to_have_text("People")
        assert page.url == f"{portal.base_url}/people", "without code and state"
        cookies = {cookie["name"] for cookie in await page.context.cookies(portal.base_url)}
        assert "portal_session" in cookies
        assert "portal_sign_on" not in cookies
