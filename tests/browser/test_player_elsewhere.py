"""Playing on another device: offered where the browser can, and without a script of anyone's."""

import pytest
from chromium import record_requests
from player_page import open_player
from playwright.async_api import Page, expect
from running_portal import LivePortal

BUTTONS = ("media-cast-button", "media-airplay-button")
# A browser that has found a device for each way.
DEVICES = """
window.chrome ??= {};
window.asked = [];
const remote = Object.assign(new EventTarget(), {
    state: "disconnected",
    async watchAvailability(tell) { setTimeout(tell, 50, true); return 1; },
    async cancelWatchAvailability() {},
    async prompt() {
        window.asked.push("cast");
        remote.state = "connected";
        remote.dispatchEvent(new Event("connect"));
    },
});
Object.defineProperty(HTMLMediaElement.prototype, "remote", { get: () => remote });
window.WebKitPlaybackTargetAvailabilityEvent = class extends Event {};
HTMLMediaElement.prototype.webkitShowPlaybackTargetPicker = () => window.asked.push("airplay");
"""


async def test_browser_without_devices_shows_no_button_and_asks_nobody_else(
    page: Page, film: str, live_portal: LivePortal
) -> None:
    asked = record_requests(page)
    await open_player(page, f"/videos/{film}")
    await page.locator("media-fullscreen-button").hover()
    for name in BUTTONS:
        await expect(page.locator(name)).to_be_hidden()
    pages = [it for it in asked if "X-Amz-" not in it and not it.startswith("blob:")]
    assert all(it.startswith(live_portal.base_url) for it in pages), pages


@pytest.mark.parametrize("path", ["/videos/{}", "/embed/{}"])
async def test_browser_with_devices_is_asked_to_play_there(
    page: Page, film: str, path: str
) -> None:
    await page.add_init_script(DEVICES)
    await open_player(page, path.format(film))
    cast, airplay = (page.locator(name) for name in BUTTONS)
    await expect(cast).to_have_attribute("aria-label", "start casting")
    await airplay.click()
    await cast.click()
    assert await page.evaluate("asked") == ["airplay", "cast"]
    await expect(cast).to_have_attribute("aria-label", "stop casting")
