"""The audit log as its owner looks through it, with and without scripts, at any width."""

from collections.abc import AsyncIterator

import aiohttp
import pytest
from audit_lines import add_lines
from chromium import WIDTHS, OpenPage, axe_findings, photograph_at_widths
from playwright.async_api import Page, expect
from running_portal import LivePortal, fresh_portal

OWNER = "ann@example.org"
PASSWORD = "four calm green boats"


@pytest.fixture(scope="module")
async def portal(services: dict[str, str]) -> AsyncIterator[LivePortal]:
    """A portal with an owner, at whom someone has guessed, and a log of several pages."""
    async with fresh_portal(services) as portal:
        await add_lines(portal.environ["DATABASE_URL"], 120)
        assert await post(portal, "/set-up", OWNER, PASSWORD) == 303
        for email in ("nobody@example.org", f"{'long.' * 40}@a.example"):
            assert await post(portal, "/sign-in", email, "wrong") == 422
        yield portal


async def post(portal: LivePortal, path: str, email: str, password: str) -> int:
    form = {"email": email, "password": password}
    async with (
        aiohttp.ClientSession(portal.base_url) as session,
        session.post(path, data=form, allow_redirects=False) as answer,
    ):
        return answer.status


async def sign_in(page: Page, portal: LivePortal) -> Page:
    """Sign in as the owner, who is led to the people."""
    await page.goto(f"{portal.base_url}/people")
    await page.get_by_label("E-mail address").fill(OWNER)
    await page.get_by_role("textbox", name="Password").fill(PASSWORD)
    await page.locator("main").get_by_role("button", name="Sign in").click()
    await page.wait_for_url("**/people")
    return page


@pytest.mark.parametrize("scripts", [True, False], ids=["scripts", "no scripts"])
async def test_owner_finds_who_has_guessed(
    open_page: OpenPage, portal: LivePortal, scripts: bool
) -> None:
    page = await sign_in(await open_page(java_script_enabled=scripts), portal)
    await page.get_by_role("link", name="Audit log").click()
    await expect(page.get_by_role("heading", level=1)).to_have_text("Audit log")
    await expect(page.locator(".entry").first).to_contain_text(f"{OWNER} signed in")
    await page.get_by_label("What was done").select_option("Failed sign-ins")
    await page.get_by_label("To what").fill("Nobody@example.org")
    await page.get_by_role("button", name="Show", exact=True).click()
    await expect(page.locator(".entry")).to_have_count(1)
    await expect(page.locator(".entry")).to_contain_text(
        "Someone failed to sign in as nobody@example.org"
    )
    await expect(page.locator(".entry")).to_contain_text("from 127.0.0.1")
    await expect(page.get_by_label("What was done")).to_have_value("account.sign_in_refused")
    await page.get_by_role("link", name="Show everything").click()
    await expect(page.locator(".entry")).to_have_count(50)
    for _ in range(2):
        await page.get_by_role("link", name="Older").click()
    await expect(page.get_by_role("link", name="Older")).to_have_count(0)
    await page.get_by_role("link", name="Newest").click()
    await expect(page.locator(".entry").first).to_contain_text(f"{OWNER} signed in")
    async with page.expect_download() as download:
        await page.get_by_role("link", name="Download as JSON lines").click()
    path = await (await download.value).path()
    assert (await download.value).suggested_filename == "audit.jsonl"
    assert len(path.read_text().splitlines()) > 120


async def test_form_is_filled_in_with_the_keyboard(open_page: OpenPage, portal: LivePortal) -> None:
    page = await sign_in(await open_page(), portal)
    await page.goto(f"{portal.base_url}/audit")
    await page.get_by_label("What was done").focus()
    await page.keyboard.press("Tab")
    await page.keyboard.type("person3@example.org")
    await page.keyboard.press("Enter")
    await expect(page.locator(".entry")).to_have_count(17)
    await expect(page.get_by_role("link", name="Show everything")).to_be_visible()


@pytest.mark.parametrize("scheme", ["light", pytest.param("dark", marks=pytest.mark.slow)])
async def test_log_suits_everyone_at_any_width(
    open_page: OpenPage, portal: LivePortal, scheme: str
) -> None:
    page = await sign_in(await open_page(color_scheme=scheme), portal)
    for path in ("", "?person=none", "?action=account.sign_in_refused", "?before=60"):
        await page.goto(f"{portal.base_url}/audit{path}")
        for width in WIDTHS:
            await page.set_viewport_size({"width": width, "height": 900})
            surplus = await page.evaluate("document.documentElement.scrollWidth - innerWidth")
            assert surplus <= 0, f"{path} at {width}"
            if width in (360, 1440):
                assert await axe_findings(page) == [], f"{path} at {width}"
    await page.goto(f"{portal.base_url}/audit")
    await photograph_at_widths(page, f"audit-{scheme}")
