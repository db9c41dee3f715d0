"""The check of `portal doctor` for private videos: whether storage answers unsigned requests.

Whoever has the address of a file gets it there, whoever may see its video. What it writes it
removes again: one object under `hls/doctor/`.
"""

from dataclasses import dataclass
from http import HTTPStatus
from uuid import uuid4

import aiohttp
from yarl import URL

from portal.config import Config
from portal.queue.app import Queue
from portal.storage.bucket import Storage
from portal.storage.objects import OUTPUT_FOLDER

PROBE_BODY = b"portal doctor: for signed requests alone"
PROBE_TYPE = "video/mp4"
ANSWER_TIMEOUT_S = 5
CLOSE_BUCKET = (
    "Private videos are no secret to who knows their files' names. Make the bucket private: remove "
    "the policies and ACLs that let everyone read (on AWS: Block Public Access)."
)
CLOSE_LISTING = "Anyone can list all files of all videos. " + CLOSE_BUCKET
KEEP_PRIVATE = (
    "Pages, records and playlists never name a private video's files there, but who knows their "
    "names gets them, such as from before the video became private. If that is too much, unset "
    "PLAYBACK_BASE_URL, or let the CDN check signatures of its own."
)


class Trouble(Exception):
    """A check failed; `fix` is what to do about it, unless it is what the check says itself."""

    def __init__(self, what: str, fix: str = "") -> None:
        super().__init__(what)
        self.fix = fix


class Exposed(Trouble):
    """Everything works, but files can be had by who should not."""


@dataclass(frozen=True, slots=True)
class Parts:
    """What is checked."""

    config: Config
    storage: Storage
    queue: Queue


async def unsigned_requests(parts: Parts) -> None:
    """Ask for a file and for the list of all as a stranger does. Raises `Exposed`."""
    storage, key = parts.storage, f"{OUTPUT_FOLDER}doctor/{uuid4().hex}.mp4"
    signed = URL(await storage.public.presign_get(key, ttl_s=60), encoded=True)
    plain = signed.with_query(None)
    bucket = URL(str(plain).removesuffix(key), encoded=True)
    await storage.put(key, PROBE_BODY, content_type=PROBE_TYPE, max_age_s=0)
    try:
        if PROBE_BODY in await _got(plain):
            raise Exposed("storage answers unsigned requests for files", CLOSE_BUCKET)
        if b"<ListBucketResult" in await _got(bucket.with_query({"list-type": "2"})):
            raise Exposed("storage lists its files for unsigned requests", CLOSE_LISTING)
        base_url = parts.config.playback_base_url
        if base_url and PROBE_BODY in await _got(URL(f"{base_url}/{key}")):
            raise Exposed(f"{base_url} answers for every file", KEEP_PRIVATE)
    finally:
        await storage.delete(key)


async def _got(address: URL) -> bytes:
    """What a stranger is answered; nothing if that is no success, or there is no answer."""
    timeout = aiohttp.ClientTimeout(total=ANSWER_TIMEOUT_S)
    try:
        async with (
            aiohttp.ClientSession(timeout=timeout) as session,
            session.get(address) as response,
        ):
            is_had = response.status == HTTPStatus.OK
            return await response.content.read(64 * 1024) if is_had else b""
    except (aiohttp.ClientError, TimeoutError):
        return b""
