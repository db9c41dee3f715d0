"""A site of another origin, which frames the address it is given."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiohttp import web
from playwright.async_api import Frame, Page
from running_portal import free_port


@asynccontextmanager
async def framing_site() -> AsyncIterator[str]:
    """Its origin; `/?src=…` shows that address in the frame with the id `frame`."""

    async def page(request: web.Request) -> web.Response:
        address = request.query["src"]
        frame = f'<iframe id="frame" width="640" height="360" src="{address}"></iframe>'
        icon = '<link rel="icon" href="data:,">'
        html = f"<!DOCTYPE html><title>Elsewhere</title>{icon}{frame}"
        return web.Response(text=html, content_type="text/html")

    app = web.Application()
    app.router.add_get("/", page)
    runner = web.AppRunner(app)
    await runner.setup()
    port = free_port()
    await web.TCPSite(runner, "localhost", port).start()
    try:
        yield f"http://localhost:{port}"
    finally:
        await runner.cleanup()


async def show_framed(page: Page, site: str, address: str) -> Frame:
    """What that site shows in its frame of this address."""
    await page.goto(f"{site}/?src={address}")
    handle = await page.locator("#frame").element_handle()
    assert handle is not None
    frame = await handle.content_frame()
    assert frame is not None
    return frame
