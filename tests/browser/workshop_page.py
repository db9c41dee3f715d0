"""What the tests of a video's workshop share."""

from playwright.async_api import Locator, Page


async def open_workshop(page: Page, address: str, form: str) -> Locator:
    """Open the workshop of the video at this address, and wait for its scripts; answers a form."""
    await page.goto(f"{address}/edit")
    await page.wait_for_load_state("networkidle")
    return page.get_by_role("form", name=form)
