"""The database and the object storage that the portal brings along, and the settings to use them.

`portal up` runs them among its other children.
"""

import time

from portal.bundled.addresses import authority, local_peer, reachable_host
from portal.bundled.data_folder import DataFolder
from portal.bundled.object_store import (
    BUCKET,
    ObjectStore,
    prepare_object_store,
    remove_unfinished_uploads,
)
from portal.bundled.postgres import prepare_postgres
from portal.processes.supervisor import Children, ChildSpec

REGION = "us-east-1"  # the only one an S3 server without regions is sure to know


async def start_embedded(
    children: Children,
    folder: DataFolder,
    *,
    host: str,
    storage_port: int | None,
    database: bool,
    public_host: str = "",
    durable: bool = True,
) -> dict[str, str]:
    """Add the parts wanted to the running set, wait until they work, return the settings.

    Afterwards, when the set has ended, call `release_socket_folder`.
    """
    environ = {"WORK_DIR": str(folder.work)}
    specs: list[ChildSpec] = []
    if storage_port is not None:
        store = prepare_object_store(folder, host=host, port=storage_port)
        environ |= _storage_settings(store, public_host or reachable_host(host))
        specs.append(store.spec())
        children.background(remove_unfinished_uploads(folder.objects, older_than=time.time()))
    if database:
        server = await prepare_postgres(children, folder, durable=durable)
        environ["DATABASE_URL"] = server.url()
        specs.append(server.spec())
    await children.start(*specs)
    if database:
        await server.create_database()
    return environ


def _storage_settings(store: ObjectStore, public_host: str) -> dict[str, str]:
    return {
        "S3_ENDPOINT_URL": f"http://{authority(local_peer(store.host), store.port)}",
        "S3_PUBLIC_ENDPOINT_URL": f"http://{authority(public_host, store.port)}",
        "S3_BUCKET": BUCKET,
        "AWS_ACCESS_KEY_ID": store.access_key,
        "AWS_SECRET_ACCESS_KEY": store.secret_key,
        "AWS_REGION": REGION,
    }
