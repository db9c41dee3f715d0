"""The checks of `portal doctor`: every part is tried for real; each failure names its fix.

What it writes it removes again: one object under `doctor/` and one job in a queue of its own.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from http import HTTPStatus
from uuid import uuid4

import aiohttp
from tortoise.exceptions import OperationalError
from yarl import URL

from portal.config import Config
from portal.database.connection import connect_once
from portal.database.models import Category
from portal.errors import ProviderUnavailable
from portal.queue.app import Queue
from portal.storage.bucket import Storage
from portal.storage.calls import ObjectMissing
from portal.storage.objects import OUTPUT_FOLDER
from portal.text import error_words
from portal.transcoding.encoding.output_validation import check_ffmpeg

PART_TTL_S = 20
PROBE_TYPE = "video/mp4"
PROBE_BODY = b"portal doctor: for signed requests alone"
QUEUE = "doctor"
DATABASE = "Check DATABASE_URL and that the server accepts connections from this machine."
MIGRATE = "Run `portal migrate` with the same environment."
FFMPEG = "Reinstall the portal, or point IMAGEIO_FFMPEG_EXE at an ffmpeg with libx264."
REACHABLE = "Browsers must reach storage: set S3_PUBLIC_ENDPOINT_URL to an address they can use."
CREDENTIALS = (
    "Check S3_ENDPOINT_URL, S3_BUCKET and the AWS variables; the credentials must allow "
    "s3:GetObject, s3:PutObject, s3:DeleteObject and s3:ListBucket."
)
SIGN_ON = (
    "Set OIDC_ISSUER to exactly the address by which the provider names itself, a slash at its end "
    "included, and let this machine reach it."
)
PARTS_CREDENTIALS = (
    "The storage server must know multipart uploads, and the credentials must allow "
    "s3:PutObject, s3:ListMultipartUploadParts and s3:AbortMultipartUpload."
)
ANSWER_TIMEOUT_S = 5
# Sent by browsers after a redirect from one foreign host to another, as players elsewhere meet it
# for private videos.
REDIRECTED_ORIGIN = "null"
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


class Concern(Trouble):
    """Fault that the portal works with: more, or less, may be done with files than is usual."""


@dataclass(frozen=True, slots=True)
class Parts:
    """What is checked."""

    config: Config
    storage: Storage
    queue: Queue


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that must work, in the words it is printed with, and what it builds on.

    `fix` is what to do about any failure that is not foreseen.
    """

    name: str
    run: Callable[[Parts], Awaitable[None]]
    fix: str
    needs: str = ""


async def check_database(parts: Parts) -> None:
    # The pool's error doesn't give the server's reason, such as a wrong password.
    await connect_once(parts.config)
    try:
        is_filled = await Category.exists()
    except OperationalError as exc:  # Tortoise's name for a query the schema does not bear
        raise Trouble("the tables are missing", MIGRATE) from exc
    if not is_filled:
        raise Trouble("the category table is empty", MIGRATE)


async def _queue(parts: Parts) -> None:
    queue = parts.queue
    ran = asyncio.Event()

    @queue.task(name=f"portal:doctor:{uuid4().hex}", queue=QUEUE)
    async def ping() -> None:
        ran.set()

    async with queue.open_async():
        await ping.defer_async()
        await queue.run_worker_async(
            queues=[QUEUE],
            wait=False,
            install_signal_handlers=False,
            listen_notify=False,
            delete_jobs="always",
        )
    if not ran.is_set():
        raise Trouble("a job was queued but not run", f"Is another worker on queue {QUEUE!r}?")


async def _ffmpeg(parts: Parts) -> None:
    try:
        await check_ffmpeg()
    except Exception as exc:
        raise Trouble("ffmpeg does not run or has no libx264") from exc


async def check_bucket(parts: Parts) -> None:
    try:
        await parts.storage.check_bucket()
    except ObjectMissing as exc:
        name = parts.storage.bucket
        fix = f"Create it: aws s3api create-bucket --bucket {name}{_endpoint(parts.config)}"
        raise Trouble(f"there is no bucket {name!r}", fix) from exc


async def _browser_upload(parts: Parts) -> None:
    """Do what a browser does: preflight, PUT, reading the ETag, a range GET."""
    storage, config = parts.storage, parts.config
    key = f"doctor/{uuid4().hex}.mp4"
    put_url = await storage.public.presign_put(key, content_type=PROBE_TYPE, ttl_s=60)
    get_url = await storage.public.presign_get(key, ttl_s=60)
    async with aiohttp.ClientSession() as session:
        await _preflight(session, put_url, config)
        await _put(session, put_url, config)
        allowed_origin = await _range_get(session, get_url)
        await storage.delete(key)
    if allowed_origin not in ("*", REDIRECTED_ORIGIN):
        raise Concern("players on other sites can't read from storage", _cors_fix(config))


async def _upload_in_parts(parts: Parts) -> None:
    """Sends a file as a single part and puts it together."""
    storage, key = parts.storage, f"doctor/{uuid4().hex}.mp4"
    multipart_id = await storage.multiparts.create(key, content_type=PROBE_TYPE)
    try:
        size_bytes = len(PROBE_BODY)
        url = await storage.public.presign_part(
            key, multipart_id, 1, size_bytes=size_bytes, ttl_s=PART_TTL_S
        )
        async with (
            aiohttp.ClientSession() as session,
            session.put(URL(url, encoded=True), data=PROBE_BODY) as response,
        ):
            if response.status != HTTPStatus.OK:
                raise Trouble(f"storage answers a signed PUT of a part with {response.status}")
        sent = await storage.multiparts.list_parts(key, multipart_id)
        await storage.multiparts.complete(key, multipart_id, sent)
    finally:
        # Done or not: this wants its own permission, and nothing may stay behind.
        await storage.multiparts.abort(key, multipart_id)
    stored_bytes = (await storage.head(key)).size_bytes
    await storage.delete(key)
    if stored_bytes != size_bytes:
        raise Trouble("a file sent in parts does not arrive whole")


async def _preflight(session: aiohttp.ClientSession, url: str, config: Config) -> None:
    headers = {
        "Origin": _origin(config),
        "Access-Control-Request-Method": "PUT",
        "Access-Control-Request-Headers": "content-type",
    }
    async with session.options(url, headers=headers) as response:
        allowed = response.headers
        methods = allowed.get("Access-Control-Allow-Methods", "")
        permits = allowed.get("Access-Control-Allow-Origin") in ("*", _origin(config))
        if response.status >= HTTPStatus.BAD_REQUEST or not permits or "PUT" not in methods:
            raise Trouble(f"storage refuses PUT from pages of {_origin(config)}", _cors_fix(config))


async def _put(session: aiohttp.ClientSession, url: str, config: Config) -> None:
    headers = {"Origin": _origin(config), "Content-Type": PROBE_TYPE}
    async with session.put(url, data=PROBE_BODY, headers=headers) as response:
        if response.status != HTTPStatus.OK:
            raise Trouble(f"storage answers a signed PUT with {response.status}", CREDENTIALS)
        exposed = response.headers.get("Access-Control-Expose-Headers", "").lower()
        if "etag" not in exposed and exposed.strip() != "*":
            raise Trouble("pages may not read the ETag of an upload", _cors_fix(config))


async def _range_get(session: aiohttp.ClientSession, url: str) -> str:
    """Read a few bytes, as players of other sites do; returns the origin that may read them."""
    headers = {"Range": "bytes=0-5", "Origin": REDIRECTED_ORIGIN}
    async with session.get(url, headers=headers) as response:
        body = await response.read()
    if response.status >= HTTPStatus.BAD_REQUEST or body != PROBE_BODY[:6]:
        fix = "The worker reads sources by ranges: use a storage server or proxy that honours them."
        raise Trouble("storage does not answer range requests", fix)
    return response.headers.get("Access-Control-Allow-Origin", "")


async def _single_sign_on(parts: Parts) -> None:
    from portal.accounts.oidc import Provider

    try:
        await Provider(parts.config).check()
    except ProviderUnavailable as exc:
        cause = exc.__cause__
        raise Trouble(first_line(cause) if cause else exc.detail) from exc


async def check_exposure(parts: Parts) -> None:
    """Ask for a file and for the list of all as a stranger does. Raises `Concern`."""
    storage, key = parts.storage, f"{OUTPUT_FOLDER}doctor/{uuid4().hex}.mp4"
    signed = URL(await storage.public.presign_get(key, ttl_s=60), encoded=True)
    plain = signed.with_query(None)
    bucket = URL(str(plain).removesuffix(key), encoded=True)
    await storage.put(key, PROBE_BODY, content_type=PROBE_TYPE, max_age_s=0)
    try:
        if PROBE_BODY in await _got(plain):
            raise Concern("storage answers unsigned requests for files", CLOSE_BUCKET)
        if b"<ListBucketResult" in await _got(bucket.with_query({"list-type": "2"})):
            raise Concern("storage lists its files for unsigned requests", CLOSE_LISTING)
        base_url = parts.config.playback_base_url
        if base_url and PROBE_BODY in await _got(URL(f"{base_url}/{key}")):
            raise Concern(f"{base_url} answers for every file", KEEP_PRIVATE)
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


def _cors_fix(config: Config) -> str:
    """Return the command that lets these pages upload, and players on every site read.

    Signed addresses decide what players get, so the origin need not.
    """
    uploads = {
        "AllowedOrigins": [_origin(config), *config.api_allowed_origins],
        "AllowedMethods": ["PUT"],
        "AllowedHeaders": ["Content-Type"],
        "ExposeHeaders": ["ETag"],
        "MaxAgeSeconds": 3600,
    }
    playback = {
        "AllowedOrigins": ["*"],
        "AllowedMethods": ["GET", "HEAD"],
        "AllowedHeaders": ["Range"],
        "ExposeHeaders": ["Content-Length", "Content-Range"],
        "MaxAgeSeconds": 3600,
    }
    return (
        f"aws s3api put-bucket-cors --bucket {config.s3_bucket}{_endpoint(config)} "
        f"--cors-configuration '{json.dumps({'CORSRules': [uploads, playback]})}'"
    )


def _endpoint(config: Config) -> str:
    """Return the option by which the AWS command line finds storage."""
    return f" --endpoint-url {config.s3_endpoint_url}" if config.s3_endpoint_url else ""


def _origin(config: Config) -> str:
    return "/".join(config.public_url.split("/")[:3])


def first_line(exc: BaseException) -> str:
    return error_words(exc).splitlines()[0]


BROWSER_UPLOAD = "Upload and playback as a browser does them"
CHECKS = (
    Check("Database and tables", check_database, DATABASE),
    Check("Queue round trip", _queue, MIGRATE, needs="Database and tables"),
    Check("ffmpeg", _ffmpeg, FFMPEG),
    Check("Bucket", check_bucket, CREDENTIALS),
    Check(BROWSER_UPLOAD, _browser_upload, REACHABLE, needs="Bucket"),
    Check("Upload in parts", _upload_in_parts, PARTS_CREDENTIALS, needs=BROWSER_UPLOAD),
    Check("Files for signed addresses alone", check_exposure, REACHABLE, needs=BROWSER_UPLOAD),
)
SINGLE_SIGN_ON = Check("Single sign-on", _single_sign_on, SIGN_ON)
