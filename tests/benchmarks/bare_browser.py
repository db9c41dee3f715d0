"""Chromium with as little watching as it takes to run a script and choose a file.

Playwright is told of every request with its body, gigabytes of them, which slows uploads to a
fraction. Here the DevTools protocol's network part stays off.
"""

import asyncio
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import aiohttp
from chromium import CHROMIUM_ARGUMENTS, find_chromium
from running_portal import free_port

START_TIMEOUT_S = 30


@dataclass
class BarePage:
    """One page, by the DevTools protocol."""

    socket: aiohttp.ClientWebSocketResponse
    session_id: str = ""

    def __post_init__(self) -> None:
        self._ids = count(1)

    async def run(self, script: str) -> Any:
        """The value of an expression; a promise's once it is fulfilled."""
        options = {"awaitPromise": True, "returnByValue": True}
        answer = await self.call("Runtime.evaluate", expression=script, **options)
        if "exceptionDetails" in answer:
            raise RuntimeError(str(answer["exceptionDetails"]))
        return answer["result"].get("value")

    async def choose(self, selector: str, file: Path) -> None:
        """Choose a file as an editor does."""
        found = await self.call(
            "Runtime.evaluate", expression=f"document.querySelector({selector!r})"
        )
        await self.call(
            "DOM.setFileInputFiles", files=[str(file)], objectId=found["result"]["objectId"]
        )

    async def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        message: dict[str, Any] = {"id": next(self._ids), "method": method, "params": parameters}
        if self.session_id:
            message["sessionId"] = self.session_id
        await self.socket.send_json(message)
        while (answer := await self.socket.receive_json()).get("id") != message["id"]:
            pass
        if "error" in answer:
            raise RuntimeError(str(answer["error"]))
        result: dict[str, Any] = answer["result"]
        return result


@asynccontextmanager
async def bare_page(url: str) -> AsyncIterator[BarePage]:
    """A page of a browser of its own, loaded."""
    chromium = find_chromium()
    if chromium is None:
        sys.exit("chromium is missing: apt-get install chromium")
    port = free_port()
    with tempfile.TemporaryDirectory(prefix="portal-browser-", ignore_cleanup_errors=True) as home:
        browser = await asyncio.create_subprocess_exec(
            chromium,
            "--headless=new",
            f"--remote-debugging-port={port}",
            f"--user-data-dir={home}",
            *CHROMIUM_ARGUMENTS,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
        )
        try:
            async with aiohttp.ClientSession() as session:
                address = await _socket_address(session, port)
                async with session.ws_connect(address, max_msg_size=0) as socket:
                    yield await _open(socket, url)
        finally:
            browser.terminate()
            await browser.wait()


async def _socket_address(session: aiohttp.ClientSession, port: int) -> str:
    async with asyncio.timeout(START_TIMEOUT_S):
        while True:
            try:
                async with session.get(f"http://127.0.0.1:{port}/json/version") as answer:
                    return str((await answer.json())["webSocketDebuggerUrl"])
            except aiohttp.ClientConnectionError:
                await asyncio.sleep(0.1)


async def _open(socket: aiohttp.ClientWebSocketResponse, url: str) -> BarePage:
    page = BarePage(socket)
    target = await page.call("Target.createTarget", url=url)
    attached = await page.call("Target.attachToTarget", targetId=target["targetId"], flatten=True)
    page.session_id = attached["sessionId"]
    async with asyncio.timeout(START_TIMEOUT_S):
        # Nothing tells of it while the protocol's other parts are off.
        while await page.run("location.href + document.readyState") != f"{url}complete":  # noqa: ASYNC110
            await asyncio.sleep(0.1)
    return page
