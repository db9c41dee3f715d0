"""The page of all components: drawn by the portal's own templates, photographed in every state."""

import re
from pathlib import Path

import pytest
from chromium import OpenPage, axe_findings, photograph, suits_everyone
from jinja2 import ChoiceLoader, FileSystemLoader
from player_page import wait_for
from playwright.async_api import Page, expect
from quart import Quart, render_template
from running_portal import LivePortal

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
SOURCE = (DOCS / "components.html").read_text(encoding="utf-8")
MACROS = (ROOT / "templates/_components.html").read_text(encoding="utf-8")

# What shared templates draw, which take no state: selector, which of them, and its state.
DRAWN_STATES = [
    ("media-settings-menu-item", 0, "hover"),
    ("media-settings-menu-item", 1, "focus-visible"),
    (".menu__item", 1, "hover"),
    (".menu__item", 2, "focus-visible"),
    (".card", 1, "hover"),
    (".card__link", 2, "focus-visible"),
    (".entry .button", 0, "hover"),
    (".entry .button", 1, "focus-visible"),
]


@pytest.fixture
async def components(app: Quart, page: Page, film: str) -> str:
    """The page, as HTML."""
    await page.goto(f"/videos/{film}")
    playback_url = await page.locator("video").get_attribute("data-src")
    loader = app.jinja_env.loader
    assert loader is not None
    app.jinja_env.loader = ChoiceLoader([loader, FileSystemLoader(DOCS)])
    async with app.test_request_context("/components"):
        return await render_template("components.html", playback_url=playback_url)


def test_every_component_is_on_the_page() -> None:
    macros = set(re.findall(r"{% macro (\w+)\(", MACROS))
    # `labelled` is what fields and selects are made of.
    assert macros - set(re.findall(r"(?:call|{{) (\w+)\(", SOURCE)) == {"labelled"}


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_components_suit_everyone_in_every_state(
    open_page: OpenPage, live_portal: LivePortal, components: str, scheme: str
) -> None:
    # What a test answers comes from nowhere, and the player's stream from this machine.
    permissions = ["local-network-access"]
    page = await open_page(color_scheme=scheme, reduced_motion="reduce", permissions=permissions)
    await page.route("**/components", lambda route: route.fulfill(body=components))
    await page.goto("/components")
    await wait_for(page, "video.readyState >= 2")
    await page.locator("media-settings-menu-button").click()
    await _show_states(page)
    await suits_everyone(page, f"components-{scheme}")
    await page.set_viewport_size({"width": 360, "height": 900})
    await page.locator("media-settings-menu-item").filter(has_text="Speed").click()
    await expect(page.get_by_role("menuitemradio", name="1.25")).to_be_visible()
    assert await axe_findings(page) == []
    await photograph(page, f"components-sheet-{scheme}")


async def _show_states(page: Page) -> None:
    """Make elements look as they do below a pointer, with the focus of the keyboard, or open."""
    await page.locator(".card__menu").first.evaluate("it => { it.open = true; }")
    for selector, number, state in DRAWN_STATES:
        element = page.locator(selector).nth(number)
        await element.evaluate("(it, state) => { it.dataset.state = state; }", state)
    session = await page.context.new_cdp_session(page)
    await session.send("DOM.enable")
    await session.send("CSS.enable")
    document = await session.send("DOM.getDocument")
    for state in ("hover", "focus-visible"):
        found = await session.send(
            "DOM.querySelectorAll",
            {"nodeId": document["root"]["nodeId"], "selector": f"[data-state={state}]"},
        )
        for node in found["nodeIds"]:
            forced = {"nodeId": node, "forcedPseudoClasses": [state]}
            await session.send("CSS.forcePseudoState", forced)
