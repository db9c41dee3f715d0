"""A site of another origin that shows any address in a frame."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiohttp import web
from aiohttp.test_utils import TestServer
from playwright.async_api import Frame, Page


@asynccontextmanager
async def framing_site() -> AsyncIterator[str]:
    """Run the site and yield its origin; `/?src=…` shows an address in the frame `#frame`.

    `&sandbox=…` are the permissions of the frame.
    """

    async def page(request: web.Request) -> web.Response:
        sandbox = f'sandbox="{request.query["sandbox"]}"' if "sandbox" in request.query else ""
        size = 'width="640" height="360"'
        frame = f'<iframe id="frame" {size} {sandbox} src="{request.query["src"]}"></iframe>'
        html = f'<!DOCTYPE html><title>Elsewhere</title><link rel="icon" href="data:,">{frame}'
        return web.Response(text=html, content_type="text/html")

    app = web.Application()
    app.router.add_get("/", page)
    async with TestServer(app, host="localhost") as server:
        yield f"http://localhost:{server.port}"


async def show_framed(page: Page, site: str, address: str, *, sandbox: str = "") -> Frame:
    """Open an address in the site's frame, and return the frame."""
    await page.goto(f"{site}/?src={address}{sandbox and f'&sandbox={sandbox}'}")
    handle = await page.locator("#frame").element_handle()
    assert handle is not None
    frame = await handle.content_frame()
    assert frame is not None
    return frame
