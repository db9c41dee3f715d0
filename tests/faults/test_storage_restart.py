"""A file is the same after its storage server was started again, whenever it was sent."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from fault_kit import AT_ONCE
from portal_kit import free_port, until

from portal.bundled.data_folder import open_data_folder
from portal.bundled.services import start_embedded
from portal.config import Config
from portal.errors import StorageUnavailable
from portal.processes.supervisor import running_children
from portal.storage.bucket import ObjectInfo, Storage, open_storage

KEY = "videos/0123456789abcdef0123456789abcdef.mp4"


async def sent_in_parts(storage: Storage) -> ObjectInfo:
    """An upload that is begun in one second of the clock, and whose data comes in another."""
    multipart_id = await storage.multiparts.create(KEY, content_type="video/mp4")
    await asyncio.sleep(1.1)
    await storage._client.upload_part(
        Bucket=storage.bucket, Key=KEY, UploadId=multipart_id, PartNumber=1, Body=b"a"
    )
    parts = await storage.multiparts.list_parts(KEY, multipart_id)
    await storage.multiparts.complete(KEY, multipart_id, parts)
    return await storage.head(KEY)


async def test_file_is_the_same_after_a_restart_of_its_storage(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with TemporaryDirectory(prefix="portal-fault-") as folder:
        async with running_children(policy=AT_ONCE) as children:
            environ = await start_embedded(
                children,
                open_data_folder(Path(folder) / "data"),
                host="127.0.0.1",
                storage_port=free_port(),
                database=False,
            )
            for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
                monkeypatch.setenv(name, environ[name])
            config = Config.from_env({**environ, "DATABASE_URL": "postgresql:///nowhere"})
            async with open_storage(config) as storage:
                before = await sent_in_parts(storage)
                killed = children.pid("storage")
                assert killed is not None
                os.kill(killed, signal.SIGKILL)

                async def is_back() -> bool:
                    return children.pid("storage") not in (killed, None) and await _works(storage)

                await until(is_back, timeout_s=60)
                assert await storage.head(KEY) == before


async def _works(storage: Storage) -> bool:
    try:
        await storage.check_bucket()
    except StorageUnavailable:
        return False
    return True
