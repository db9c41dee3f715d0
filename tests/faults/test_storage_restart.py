"""A file is the same after its storage server was started again, whenever it was sent."""

import os
import signal
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from fault_injection import AT_ONCE
from running_portal import free_port, until
from stored_objects import another_second

from portal.bundled.data_folder import open_data_folder
from portal.bundled.up import start_embedded
from portal.config import Config
from portal.database.models import Video
from portal.errors import StorageUnavailable
from portal.processes.supervisor import running_children
from portal.processing.sources import holds_source, identify
from portal.storage.bucket import Storage, open_storage

KEPT, REPLACED = (f"videos/{digit * 32}.mp4" for digit in "01")


async def sent_in_parts(key: str, storage: Storage) -> None:
    """An upload that begins in one second of the clock, is written in another, and ends later."""
    multipart_id = await storage.multiparts.create(key, content_type="video/mp4")
    await another_second()
    await storage._client.upload_part(
        Bucket=storage.bucket, Key=key, UploadId=multipart_id, PartNumber=1, Body=b"a"
    )
    await another_second()
    parts = await storage.multiparts.list_parts(key, multipart_id)
    await storage.multiparts.complete(key, multipart_id, parts)


async def recorded(key: str, storage: Storage) -> Video:
    video = Video(source_etag=(await identify(key, storage)).etag)
    video.upload_id = key
    return video


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
                for key in (KEPT, REPLACED):
                    await sent_in_parts(key, storage)
                kept, replaced = [await recorded(key, storage) for key in (KEPT, REPLACED)]
                assert await holds_source(kept, storage)
                assert await holds_source(replaced, storage)
                await another_second()
                await storage.put(REPLACED, b"a", content_type="video/mp4")
                assert not await holds_source(replaced, storage)

                killed = children.pid("storage")
                assert killed is not None
                os.kill(killed, signal.SIGKILL)

                async def is_back() -> bool:
                    return children.pid("storage") not in (killed, None) and await _works(storage)

                await until(is_back, timeout_s=60)
                assert await holds_source(kept, storage)
                assert not await holds_source(replaced, storage)
                # What is created only now is the same as well.
                assert await holds_source(await recorded(KEPT, storage), storage)
                await storage.put(KEPT, b"a", content_type="video/mp4")
                assert not await holds_source(kept, storage)


async def _works(storage: Storage) -> bool:
    try:
        await storage.check_bucket()
    except StorageUnavailable:
        return False
    return True
