"""Serve sources over http, correctly or with faults, and wait for the effects."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any

import psutil
import pytest
from aiohttp import web
from http_server import listening
from running_portal import until

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
# Types of the fixtures with these names.
Serve = Callable[..., Awaitable[str]]


@dataclass(frozen=True)
class Hanging:
    """A source whose server takes requests and never answers."""

    address: str
    requested: asyncio.Event


@asynccontextmanager
async def serving(*routes: web.AbstractRouteDef) -> AsyncIterator[str]:
    """A server on a free port; yields its address."""
    app = web.Application()
    app.add_routes(routes)
    async with listening(web.AppRunner(app, shutdown_timeout=0.1)) as address:
        yield address


async def begin_range(request: web.Request, size_bytes: int) -> tuple[int, web.StreamResponse]:
    """Begin a response at the offset of the request; return the offset and the response."""
    start = request.http_range.start or 0
    headers = {"Content-Range": f"bytes {start}-{size_bytes - 1}/{size_bytes}"}
    response = web.StreamResponse(status=206, headers=headers)
    response.content_length = size_bytes - start
    await response.prepare(request)
    return start, response


def cut(request: web.Request) -> None:
    """Break the connection off."""
    if request.transport is not None:
        request.transport.abort()


def children_naming(text: str) -> list[psutil.Process]:
    """Return the children of this process with this text among their arguments."""
    children = []
    for child in psutil.Process().children():
        with suppress(psutil.NoSuchProcess):
            if text in " ".join(child.cmdline()):
                children.append(child)
    return children


async def eventually(condition: Callable[[], object]) -> None:
    """Wait until a condition holds, and fail when it doesn't in time."""
    await until(condition, timeout_s=15, interval_s=0.02)


async def cancel(task: asyncio.Task[Any]) -> None:
    """Cancel a task that runs, and see it end by that."""
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
