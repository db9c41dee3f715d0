"""A portal behind a network that breaks, for clients that upload to it."""

import hashlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
from api_client import rows
from bad_network import Network, network_to
from running_portal import LivePortal, fresh_database, run_portal
from upload_client import MIB

from portal.config import Config
from portal.storage.bucket import Storage, open_storage


@dataclass
class Site:
    """A portal whose storage clients reach through a bad network."""

    portal: LivePortal
    network: Network
    storage: Storage

    async def state(self, upload_id: str) -> str:
        """What the portal says of an upload; `gone` when it knows none."""
        found = await self.look(upload_id)
        return str(found["state"]) if found else "gone"

    async def look(self, upload_id: str) -> dict[str, Any]:
        """How an upload stands; empty when the portal knows none."""
        async with (
            aiohttp.ClientSession(self.portal.base_url) as session,
            session.get(f"/api/uploads/{upload_id}") as answer,
        ):
            if answer.status == 404:
                return {}
            assert answer.status == 200, await answer.text()
            return await answer.json()

    async def forget(self, key: str) -> None:
        """Make storage forget an unfinished upload, as the embedded server does at a restart."""
        query = "SELECT multipart_id FROM uploads WHERE key = %s"
        [(multipart_id,)] = await rows(self.portal.environ["DATABASE_URL"], query, key)
        await self.storage.multiparts.abort(key, multipart_id)

    async def digest(self, key: str) -> str:
        """SHA-256 of what is stored."""
        address = await self.storage.internal.presign_get(key, ttl_s=600)
        digest = hashlib.sha256()
        async with aiohttp.ClientSession() as session, session.get(address) as answer:
            assert answer.status == 200
            async for data in answer.content.iter_chunked(MIB):
                digest.update(data)
        return digest.hexdigest()

    async def mend(self) -> None:
        """Let the network work again."""
        await self.network.up()
        self.network.flow()
        self.network.limit_bps = 0
        self.network.cut_at(())
        self.network.on_upload = None


@asynccontextmanager
async def open_site(services: dict[str, str]) -> AsyncIterator[Site]:
    """Start the portal; `services` hold the credentials, which botocore looks for itself."""
    async with (
        network_to(services["S3_ENDPOINT_URL"]) as network,
        fresh_database(services) as environ,
    ):
        environ = {**environ, "S3_PUBLIC_ENDPOINT_URL": network.url}
        async with (
            run_portal(environ, worker=False) as portal,
            open_storage(Config.from_env(portal.environ)) as storage,
        ):
            yield Site(portal, network, storage)


def file_digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
