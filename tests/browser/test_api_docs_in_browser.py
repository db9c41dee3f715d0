"""The API's page is short: what is asked for is unfolded, by links, with and without scripts."""

import re

import pytest
from chromium import OpenPage, axe_findings, photograph
from playwright.async_api import Locator, Page, expect

# As tall as some screens; it was as tall as twenty-five.
MAX_HEIGHT_PX = 6_000


def operation(page: Page, name: str) -> Locator:
    return page.locator("details.operation", has=page.locator(f"#{name}"))


@pytest.mark.parametrize("scripts", [True, False], ids=["scripts", "no scripts"])
async def test_link_to_an_operation_unfolds_it(open_page: OpenPage, scripts: bool) -> None:
    page = await open_page(width=1440, java_script_enabled=scripts)
    await page.goto("/api/docs#put_metadata")
    await expect(page.locator("#put_metadata")).to_be_visible()
    await expect(
        operation(page, "put_metadata").get_by_role("heading", level=3)
    ).to_be_in_viewport()
    await expect(page.locator("details.operation[open]")).to_have_count(1)
    # An error's document links to its row.
    await page.goto("/api/docs#too_many_requests")
    await expect(page.locator("#too_many_requests")).to_be_in_viewport()
    contents = page.get_by_role("navigation", name="Contents")
    await contents.get_by_role("link", name="POST /api/videos/presign").click()
    await expect(page.locator("#presign")).to_be_visible()
    await expect(page).to_have_url(re.compile("#presign$"))


async def test_contents_are_folded_up_above_the_page_on_a_phone(open_page: OpenPage) -> None:
    page = await open_page(width=360)
    await page.goto("/api/docs")
    links = page.get_by_role("navigation", name="Contents").get_by_role("link")
    await expect(links).to_have_count(0)
    await page.get_by_text("Contents", exact=True).locator("visible=true").click()
    await links.filter(has_text="/api/categories").click()
    await expect(page.locator("#categories")).to_be_visible()


async def test_contents_stay_beside_the_page_on_a_desk(open_page: OpenPage) -> None:
    page = await open_page(width=1440)
    await page.goto("/api/docs")
    contents = page.get_by_role("navigation", name="Contents")
    await page.evaluate("scrollTo(0, 500)")
    await expect(contents.get_by_role("heading")).to_be_in_viewport()


@pytest.mark.parametrize(
    ("width", "scheme"),
    [
        (360, "light"),
        (1440, "dark"),
        pytest.param(360, "dark", marks=pytest.mark.slow),
        pytest.param(1440, "light", marks=pytest.mark.slow),
    ],
)
async def test_page_is_short_and_accessible(open_page: OpenPage, width: int, scheme: str) -> None:
    page = await open_page(width=width, color_scheme=scheme, reduced_motion="reduce")
    await page.goto("/api/docs")
    assert await page.evaluate("document.documentElement.scrollHeight") < MAX_HEIGHT_PX
    assert await page.evaluate("document.documentElement.scrollWidth") <= width
    await photograph(page, f"docs-folded-{width}-{scheme}")
    await page.goto("/api/docs#put_metadata")
    await expect(page.locator("#put_metadata")).to_be_visible()
    assert await page.evaluate("document.documentElement.scrollWidth") <= width
    assert await axe_findings(page) == []
    await photograph(page, f"docs-unfolded-{width}-{scheme}")
