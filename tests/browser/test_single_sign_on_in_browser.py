"""Single sign-on as people meet it: at a provider that runs as a process of its own."""

from collections.abc import AsyncIterator

import pytest
from chromium import OpenPage, axe_findings, photograph_at_widths, suits_everyone
from playwright.async_api import Page, expect
from running_portal import LivePortal, fresh_portal
from single_sign_on import provider_process, tell

pytestmark = [
    # Browsers report answers that refuse something; the provider has no icon.
    pytest.mark.complaint("status of (400|403|404|503)"),
    # The provider's own page wants a style sheet of another site.
    pytest.mark.complaint("ERR_(NAME_NOT_RESOLVED|INTERNET_DISCONNECTED|CONNECTION_|PROXY_)"),
]

OWNER = "ann@example.org"
PASSWORD = "four calm green boats"
BUTTON = "Sign in with single sign-on"


@pytest.fixture(scope="module")
async def issuer() -> AsyncIterator[str]:
    async with provider_process() as issuer:
        await tell(issuer, "ann", email=OWNER, email_verified=True)
        await tell(issuer, "ed", email="ed@example.org", email_verified=True, groups=["staff"])
        await tell(issuer, "eve", email=OWNER, email_verified=False)
        yield issuer


@pytest.fixture(scope="module")
async def portal(services: dict[str, str], issuer: str) -> AsyncIterator[LivePortal]:
    """A portal with single sign-on, and without a worker."""
    settings = {
        "OIDC_ISSUER": issuer,
        "OIDC_CLIENT_ID": "portal",
        "OIDC_CLIENT_SECRET": "a-secret",
        "OIDC_ROLES": "staff:editor",
    }
    async with fresh_portal(services, **settings) as portal:
        yield portal


@pytest.fixture
async def page(open_page: OpenPage, portal: LivePortal) -> Page:
    """A page of a browser in which nobody is signed in; the portal has its owner."""
    page = await open_page()
    # The first test makes the account; for the others this is not found.
    form = {"email": OWNER, "password": PASSWORD}
    await page.context.request.post(f"{portal.base_url}/set-up", form=form)
    await page.context.clear_cookies()
    return page


async def sign_in(page: Page, subject: str) -> None:
    """Leave for the provider by the button, and sign in there."""
    await page.get_by_role("link", name=BUTTON).click()
    await page.get_by_placeholder("sub").fill(subject)
    await page.get_by_role("button", name="Authorize").click()


async def test_owner_is_led_away_and_back_to_where_they_wanted_to_go(
    page: Page, portal: LivePortal, issuer: str
) -> None:
    await page.goto(f"{portal.base_url}/people")
    await expect(page.get_by_role("heading", level=1)).to_have_text("Sign in")
    await sign_in(page, "ann")
    await expect(page.get_by_role("heading", level=1)).to_have_text("People")
    assert page.url == f"{portal.base_url}/people", "without code and state"

    await page.goto(f"{portal.base_url}/account")
    await expect(page.locator("main")).to_contain_text("Your account is bound to you")
    assert await axe_findings(page) == []
    await photograph_at_widths(page, "accounts-bound")
    cookies = {it["name"] for it in await page.context.cookies(portal.base_url)}
    assert "portal_session" in cookies
    assert "portal_sign_on" not in cookies

    await page.get_by_role("button", name="Sign out", exact=True).click()
    navigation = page.get_by_role("navigation", name="Main")
    await expect(navigation.get_by_role("link", name="Sign in")).to_be_visible()


async def test_who_is_refused_reads_why_and_takes_the_password(
    page: Page, portal: LivePortal
) -> None:
    """At the portal for an address that is not verified; then by going back in the browser."""
    await page.goto(f"{portal.base_url}/sign-in?next=/account")
    await sign_in(page, "eve")
    alert = page.get_by_role("alert")
    await expect(alert).to_contain_text("does not say that it has verified your e-mail address")
    await suits_everyone(page, "accounts-refused")

    # The same address again: what was under way is used up.
    await page.reload()
    await expect(page.get_by_role("alert")).to_contain_text("was used already, or is too old")

    await page.get_by_role("link", name=BUTTON).click()
    await page.get_by_placeholder("sub").wait_for()
    await page.go_back()
    await page.get_by_label("E-mail address").fill(OWNER)
    await page.get_by_role("textbox", name="Password").fill(PASSWORD)
    await page.locator("main").get_by_role("button", name="Sign in", exact=True).click()
    await expect(page.get_by_role("link", name=f"Account of {OWNER}")).to_be_visible()
