"""Storage servers that behave oddly, below what S3 says of them: no call waits for ever."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import replace

import pytest

from portal.config import Config
from portal.errors import StorageDenied, StorageUnavailable
from portal.storage import calls
from portal.storage.bucket import Storage, open_storage

MEGABYTES = bytes(32 * 1024 * 1024)
Behaviour = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def storage_at(behave: Behaviour, config: Config) -> AsyncIterator[Storage]:
    """A worker's storage whose server treats every connection like this."""
    serving: dict[asyncio.StreamWriter, asyncio.Task[object] | None] = {}

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        serving[writer] = asyncio.current_task()
        await behave(reader, writer)

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    host, port = server.sockets[0].getsockname()
    async with open_storage(replace(config, s3_endpoint_url=f"http://{host}:{port}")) as storage:
        yield storage
    server.close()
    for writer in serving:
        writer.transport.abort()
    await asyncio.gather(*filter(None, serving.values()), return_exceptions=True)


async def read_nothing(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Takes a connection, and freezes."""
    with suppress(ConnectionError):
        await writer.wait_closed()


async def test_server_that_stops_reading_is_given_up(
    config: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calls, "BACKGROUND_CALL_TIMEOUT_S", 1.0)
    async with storage_at(read_nothing, config) as storage, asyncio.timeout(10):
        with pytest.raises(StorageUnavailable):
            await storage.put("hls/a", MEGABYTES, content_type="video/mp4")


def answering(status: str, code: str) -> Behaviour:
    """Answers every request with this error."""
    body = f"<Error><Code>{code}</Code></Error>".encode()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(asyncio.IncompleteReadError):
            while await reader.readuntil(b"\r\n\r\n"):
                length = f"Content-Length: {len(body)}".encode()
                writer.write(b"\r\n".join([b"HTTP/1.1 " + status.encode(), length, b"", body]))

    return answer


@pytest.mark.parametrize(
    ("status", "code", "is_denial"),
    [
        ("403 Forbidden", "AccessDenied", True),
        ("400 Bad Request", "ExpiredToken", True),
        ("403 Forbidden", "RequestTimeTooSkewed", True),
        ("400 Bad Request", "RequestTimeout", False),
    ],
)
async def test_refused_credentials_are_told_from_an_outage(
    config: Config, status: str, code: str, is_denial: bool
) -> None:
    async with storage_at(answering(status, code), config) as storage:
        with pytest.raises(StorageUnavailable) as caught:
            await storage.get("hls/a")
    assert isinstance(caught.value, StorageDenied) is is_denial
    assert caught.value.code == StorageUnavailable.code
    if isinstance(caught.value, StorageDenied):
        assert caught.value.s3_code == code
