"""The embedded database and storage on their own, without the portal's processes."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from portal.bundled.addresses import free_port
from portal.bundled.data_folder import open_data_folder
from portal.bundled.postgres import release_socket_folder
from portal.bundled.up import start_embedded
from portal.processes.supervisor import running_children

LOOPBACK = "127.0.0.1"


@asynccontextmanager
async def embedded_services(
    data_dir: Path, *, database: bool = True, storage: bool = True, durable: bool = True
) -> AsyncIterator[dict[str, str]]:
    """Run PostgreSQL and the S3 server; yields the environment variables that lead to them.

    The caller has the folder to itself. `durable=False` saves the time of writing to disk
    safely, for data that is thrown away anyway.
    """
    folder = open_data_folder(data_dir)
    port = free_port(LOOPBACK) if storage else None
    try:
        async with running_children() as children:
            yield await start_embedded(
                children,
                folder,
                host=LOOPBACK,
                storage_port=port,
                database=database,
                durable=durable,
            )
    finally:
        release_socket_folder(folder)
