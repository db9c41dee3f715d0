"""What all pages have in common stands at the same place on each."""

from collections.abc import AsyncIterator

import pytest
from chromium import OpenPage
from library_rows import Rows
from playwright.async_api import Page
from running_portal import LivePortal, fresh_database, run_portal

pytestmark = pytest.mark.complaint("status of (404|405)")

OWNER = {"email": "ann@example.org", "password": "four calm green boats"}
LOGO = ".wordmark img"


@pytest.fixture(scope="module")
async def portal(services: dict[str, str]) -> AsyncIterator[LivePortal]:
    """A portal of its own, without a worker."""
    async with fresh_database(services) as environ, run_portal(environ, worker=False) as portal:
        yield portal


@pytest.fixture(scope="module")
async def video(portal: LivePortal) -> str:
    return await Rows(portal.environ["DATABASE_URL"]).add(1, "A video")


async def left_edge(page: Page, address: str) -> float:
    await page.goto(address)
    assert page.url == address
    box = await page.locator(LOGO).bounding_box()
    assert box is not None
    return box["x"]


@pytest.mark.parametrize(
    "width", [360, 1440, *(pytest.param(it, marks=pytest.mark.slow) for it in (768, 2560))]
)
async def test_logo_stands_at_the_same_place_on_every_page(
    open_page: OpenPage, portal: LivePortal, video: str, width: int
) -> None:
    page = await open_page(width=width, height=800)
    edges = {path: await left_edge(page, portal.base_url + path) for path in ("/sign-in", "/")}
    for path in ("/set-up", "/sign-in"):
        await page.request.post(f"{portal.base_url}{path}", form=OWNER)
    pages = ["/", "/videos", "/upload", "/api/docs", "/account", "/people", "/audit", "/none"]
    of_the_video = [f"/videos/{video}{path}" for path in ("", "/edit", "/access", "/delete")]
    for path in [*pages, *of_the_video]:
        edges[f"own {path}"] = await left_edge(page, portal.base_url + path)
    assert set(edges.values()) == {edges["/"]}, edges


# What is pressed, as large as what takes the finger for it: a label, for a hidden box. Links in
# the middle of a text are as high as its lines.
SMALL_TARGETS = """() => [...document.querySelectorAll(
    "button, select, summary, input:not([type=hidden]), textarea, nav a, a.button")]
    .map((it) => it.matches("input:is([type=checkbox], [type=radio], [type=file])")
        ? it.closest("label") ?? it : it)
    .filter((it) => it.checkVisibility({ visibilityProperty: true, opacityProperty: true }))
    .filter((it) => !it.closest("media-controller, .visually-hidden"))
    .map((it) => [it, it.getBoundingClientRect()])
    .filter(([, box]) => box.height && (box.height < 44 || box.width < 44))
    .map(([it, box]) => `${it.outerHTML.slice(0, 90)} ${box.width} x ${box.height}`)"""


async def test_what_is_pressed_is_large_enough_for_a_thumb(
    open_page: OpenPage, portal: LivePortal, video: str
) -> None:
    page = await open_page(width=360, height=800, has_touch=True, is_mobile=True)
    await page.request.post(f"{portal.base_url}/set-up", form=OWNER)
    await page.request.post(f"{portal.base_url}/sign-in", form=OWNER)
    of_the_video = [f"/videos/{video}{path}" for path in ("", "/edit", "/delete")]
    for path in ["/", "/videos", "/upload", "/account", "/people", "/audit", *of_the_video]:
        await page.goto(portal.base_url + path)
        assert await page.evaluate(SMALL_TARGETS) == [], path
