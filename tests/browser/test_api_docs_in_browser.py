"""The API's page is short: what is asked for is unfolded, by links, with and without scripts."""

import pytest
from chromium import OpenPage
from playwright.async_api import Locator, Page, expect


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
