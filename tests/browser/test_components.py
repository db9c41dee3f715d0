"""The page of all components: drawn by the portal's own templates, photographed in every state."""

import re
from pathlib import Path

import pytest
from chromium import OpenPage, suits_everyone
from jinja2 import ChoiceLoader, FileSystemLoader
from playwright.async_api import Page
from quart import Quart, render_template
from running_portal import LivePortal

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
SOURCE = (DOCS / "components.html").read_text(encoding="utf-8")
MACROS = (ROOT / "templates/_components.html").read_text(encoding="utf-8")


@pytest.fixture
async def components(app: Quart) -> str:
    """The page, as HTML."""
    loader = app.jinja_env.loader
    assert loader is not None
    app.jinja_env.loader = ChoiceLoader([loader, FileSystemLoader(DOCS)])
    async with app.test_request_context("/components"):
        return await render_template("components.html")


def test_every_component_is_on_the_page() -> None:
    macros = set(re.findall(r"{% macro (\w+)\(", MACROS))
    assert macros - set(re.findall(r"(?:call|{{) (\w+)\(", SOURCE)) == set()


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_components_suit_everyone_in_every_state(
    open_page: OpenPage, live_portal: LivePortal, components: str, scheme: str
) -> None:
    page = await open_page(color_scheme=scheme, reduced_motion="reduce")
    await page.route("**/components", lambda route: route.fulfill(body=components))
    await page.goto("/components")
    await page.locator(".card__menu summary").first.click()
    await _show_states(page)
    await suits_everyone(page, f"components-{scheme}")


async def _show_states(page: Page) -> None:
    """Make elements look as they do below a pointer, or with the focus of the keyboard."""
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
