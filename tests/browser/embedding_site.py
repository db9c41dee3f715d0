"""Script of a site that embeds a player and speaks the player.js protocol."""

import asyncio
from typing import Any

import pytest
from chromium import TIMEOUT_MS
from playwright.async_api import Page

# It keeps all messages, sends some, and waits for answers.
SITE = """
if (window === top) {
    window.received = [];
    addEventListener("message", ({ data }) => received.push(JSON.parse(data)));
    window.tell = (method, value, listener) => frames[0].postMessage(JSON.stringify(
        { context: "player.js", version: "0.0.11", method, value, listener }), "*");
    window.valuesOf = (event) => received.filter((message) => message.event === event)
        .map(({ value }) => value ?? null);
    window.ask = (method) => new Promise((resolve) => {
        const listener = `answer-${Math.random()}`;
        addEventListener("message", ({ data }) => {
            const message = JSON.parse(data);
            if (message.listener === listener) resolve(message.value);
        });
        tell(method, undefined, listener);
    });
}
"""


async def tell(page: Page, method: str, value: Any = None, listener: str | None = None) -> None:
    await page.evaluate("(message) => tell(...message)", [method, value, listener])


async def wait_until(page: Page, condition: str) -> None:
    """Wait until an expression is true, which may wait for answers of the player."""
    script = f"""async () => {{
        while (!({condition})) await new Promise((resolve) => setTimeout(resolve, 50));
    }}"""
    try:
        await asyncio.wait_for(page.evaluate(script), TIMEOUT_MS / 1000)
    except TimeoutError:
        pytest.fail(f"{condition} isn't true: {await page.evaluate('received.slice(-20)')}")
