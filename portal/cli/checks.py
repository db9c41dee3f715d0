"""The checks of `portal doctor`: each one tests a part of the portal and names the fix.

Objects below `doctor/` and a job in a separate queue are created for the checks and deleted again.
"""

import asyncio
import json
import re
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from shutil import disk_usage
from uuid import uuid4

import aiohttp
from tortoise.exceptions import OperationalError
from yarl import URL

from portal.config import Config, misspelt_variables
from portal.database.connection import connect_once, server_time
from portal.database.models import Category
from portal.errors import ProviderUnavailable
from portal.queue.app import open_queue
from portal.storage.bucket import Storage
from portal.storage.calls import ObjectMissing
from portal.storage.objects import OUTPUT_FOLDER, UPLOAD_FOLDER
from portal.text import error_words
from portal.transcoding.encoding.output_validation import check_ffmpeg

PART_TTL_S = 20
PROBE_TYPE = "video/mp4"
PROBE_BODY = b"portal doctor: for signed requests alone"
QUEUE = "doctor"
DATABASE = "Check DATABASE_URL, and that the server accepts connections from this machine."
MIGRATE = "Run `portal migrate` with the same environment."
FFMPEG = "Reinstall the portal, or set IMAGEIO_FFMPEG_EXE to the path of an ffmpeg with libx264."
REACHABLE = "Set S3_PUBLIC_ENDPOINT_URL to an address at which browsers can reach storage."
CREDENTIALS = (
    "Check S3_ENDPOINT_URL, S3_BUCKET and the AWS variables; the credentials must allow "
    "s3:GetObject, s3:PutObject, s3:DeleteObject and s3:ListBucket."
)
SIGN_ON = (
    "Set OIDC_ISSUER to exactly the issuer that the provider publishes, including a trailing "
    "slash, and make sure that this machine can reach it."
)
PARTS_CREDENTIALS = (
    "The storage server must support multipart uploads, and the credentials must allow "
    "s3:PutObject, s3:ListMultipartUploadParts and s3:AbortMultipartUpload."
)
STORAGE_FAULT = "Read the log of the storage server, and check that its disk is not full."
DISK = "Free space on this disk. Uploads, conversions and the database stop without it."
CLOCK = "Set the clocks of both machines by NTP, such as with `timedatectl set-ntp true`."
# S3 refuses signatures that are 15 min old.
MAX_CLOCK_DIFFERENCE_S = 60
MIN_FREE_BYTES = 512 * 1024**2
RESPONSE_TIMEOUT_S = 5
# Browsers send this origin after a redirect between two foreign hosts, which players on other
# sites follow for private videos.
REDIRECTED_ORIGIN = "null"
CLOSE_BUCKET = (
    "Anyone who knows the names of a private video's files can download them. Make the bucket "
    "private: remove the policies and ACLs for public read access (on AWS: Block Public Access)."
)
CLOSE_LISTING = "Anyone can list the files of all videos. " + CLOSE_BUCKET
FORWARD_OUTPUT = (
    "Records contain the storage keys of uploaded files, so anyone can download those, uncut and "
    f"with their metadata. Let the CDN forward only requests for /{OUTPUT_FOLDER}."
)
KEEP_PRIVATE = (
    "Pages, records and playlists don't contain these URLs. But someone may know them from before "
    "a video became private or was cut, and can guess those of the removed parts. To prevent that, "
    "unset PLAYBACK_BASE_URL, or let the CDN check signatures."
)


class Trouble(Exception):
    """Failure of a check; an empty `fix` stands for the fix of the check."""

    def __init__(self, problem: str, fix: str = "") -> None:
        super().__init__(problem)
        self.fix = fix


class Concern(Trouble):
    """Problem that doesn't stop the portal, such as files that are readable without signature."""


@dataclass(frozen=True, slots=True)
class Parts:
    """Settings and clients that the checks use."""

    config: Config
    storage: Storage


@dataclass(frozen=True, slots=True)
class Check:
    """Check of one part.

    `name` is printed, `fix` is the remedy for any failure that names none. The check is skipped if
    the check with the name `needs` has failed.
    """

    name: str
    run: Callable[[Parts], Awaitable[None]]
    fix: str
    needs: str = ""


async def check_settings(parts: Parts) -> None:
    """Look for variables that are nearly the name of a setting."""
    if messages := list(misspelt_variables()):
        raise Concern(" ".join(messages))


async def check_disk(parts: Parts) -> None:
    """Check that the disk of the folder for temporary files has space."""
    folder = parts.config.work_dir.absolute()
    while not folder.exists():
        folder = folder.parent
    free_bytes = disk_usage(folder).free
    if free_bytes < MIN_FREE_BYTES:
        raise Trouble(f"the disk of {folder} is full: {free_bytes // 1024**2} MiB are free")


async def check_clock(parts: Parts) -> None:
    """Compare this machine's clock with that of storage, which refuses signatures of other times.

    Storage that doesn't answer fails the next check.
    """
    signed = URL(await parts.storage.public.presign_get("doctor/clock", ttl_s=60), encoded=True)
    timeout = aiohttp.ClientTimeout(total=RESPONSE_TIMEOUT_S)
    with suppress(aiohttp.ClientError, TimeoutError):
        async with (
            aiohttp.ClientSession(timeout=timeout) as session,
            session.head(signed.with_query(None)) as response,
        ):
            if date := response.headers.get("Date"):
                _compare_clocks(parsedate_to_datetime(date), "storage")


def _compare_clocks(answer: datetime, name: str) -> None:
    difference_s = (datetime.now(UTC) - answer).total_seconds()
    if abs(difference_s) > MAX_CLOCK_DIFFERENCE_S:
        words = f"{abs(difference_s) / 60:.0f} min {'ahead of' if difference_s > 0 else 'behind'}"
        raise Trouble(f"this machine's clock is {words} that of {name}", CLOCK)


async def check_database(parts: Parts) -> None:
    """Connect to the database, read a table that migrations fill, and compare the clocks."""
    # The pool's error doesn't give the server's reason, such as a wrong password.
    await connect_once(parts.config)
    try:
        is_filled = await Category.exists()
    except OperationalError as exc:  # Tortoise raises it for missing tables and columns
        raise Trouble("the tables are missing", MIGRATE) from exc
    if not is_filled:
        raise Trouble("the category table is empty", MIGRATE)
    _compare_clocks(await server_time(), "the database")


async def _queue(parts: Parts) -> None:
    queue = open_queue(parts.config.database_url)
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
        fix = f"Stop the other worker that takes jobs from the queue {QUEUE!r}."
        raise Trouble("a job was enqueued but not run", fix)


async def _ffmpeg(parts: Parts) -> None:
    try:
        await check_ffmpeg()
    except Exception as exc:
        raise Trouble("ffmpeg does not run or has no libx264") from exc


async def check_bucket(parts: Parts) -> None:
    """Check that the bucket exists and accepts the credentials."""
    try:
        await parts.storage.check_bucket()
    except ObjectMissing as exc:
        name = parts.storage.bucket
        fix = f"Create it: aws s3api create-bucket --bucket {name}{_endpoint(parts.config)}"
        raise Trouble(f"the bucket {name!r} does not exist", fix) from exc


async def _browser_upload(parts: Parts) -> None:
    """Send the requests of a browser: preflight, PUT with its ETag, range GET."""
    storage = parts.storage
    config = parts.config
    key = f"doctor/{uuid4().hex}.mp4"
    put_url = await storage.public.presign_put(key, content_type=PROBE_TYPE, ttl_s=60)
    get_url = await storage.public.presign_get(key, ttl_s=60)
    async with aiohttp.ClientSession() as session:
        await _preflight(session, put_url, config)
        await _put(session, put_url, config)
        allowed_origin = await _range_get(session, get_url)
        await storage.delete(key)
    if allowed_origin not in ("*", REDIRECTED_ORIGIN):
        raise Concern("storage refuses players on other sites", _cors_fix(config))


async def _upload_in_parts(parts: Parts) -> None:
    """Send a file as a single part and complete the upload."""
    storage = parts.storage
    key = f"doctor/{uuid4().hex}.mp4"
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
            await require_stored(response, "PUT of a part", PARTS_CREDENTIALS)
        stored_parts = await storage.multiparts.list_parts(key, multipart_id)
        await storage.multiparts.complete(key, multipart_id, stored_parts)
    finally:
        # Always sent, because aborting needs a permission that the check has to test.
        await storage.multiparts.abort(key, multipart_id)
    stored_bytes = (await storage.head(key)).size_bytes
    await storage.delete(key)
    if stored_bytes != size_bytes:
        raise Trouble("a file sent in parts arrives incomplete")


async def _preflight(session: aiohttp.ClientSession, url: str, config: Config) -> None:
    headers = {
        "Origin": _origin(config),
        "Access-Control-Request-Method": "PUT",
        "Access-Control-Request-Headers": "content-type",
    }
    async with session.options(url, headers=headers) as response:
        methods = response.headers.get("Access-Control-Allow-Methods", "")
        origin = response.headers.get("Access-Control-Allow-Origin")
        is_allowed = origin in ("*", _origin(config)) and "PUT" in methods
        if response.status >= HTTPStatus.BAD_REQUEST or not is_allowed:
            raise Trouble(f"storage refuses PUT from pages of {_origin(config)}", _cors_fix(config))


async def _put(session: aiohttp.ClientSession, url: str, config: Config) -> None:
    headers = {"Origin": _origin(config), "Content-Type": PROBE_TYPE}
    async with session.put(url, data=PROBE_BODY, headers=headers) as response:
        await require_stored(response, "PUT", CREDENTIALS)
        exposed = response.headers.get("Access-Control-Expose-Headers", "").lower()
        if "etag" not in exposed and exposed.strip() != "*":
            raise Trouble("storage does not expose the ETag of an upload", _cors_fix(config))


async def require_stored(response: aiohttp.ClientResponse, name: str, refused_fix: str) -> None:
    """Raise `Trouble` with the error of storage unless it has stored the body of a request."""
    if response.status != HTTPStatus.OK:
        codes = re.findall("<Code>(.*?)</Code>", await response.text())
        words = " ".join([f"storage answers a signed {name} with {response.status}", *codes])
        is_broken = response.status >= HTTPStatus.INTERNAL_SERVER_ERROR
        raise Trouble(words, STORAGE_FAULT if is_broken else refused_fix)


async def _range_get(session: aiohttp.ClientSession, url: str) -> str:
    """Read a few bytes like a player on another site; return the origin that storage allows."""
    headers = {"Range": "bytes=0-5", "Origin": REDIRECTED_ORIGIN}
    async with session.get(url, headers=headers) as response:
        body = await response.read()
    if response.status >= HTTPStatus.BAD_REQUEST or body != PROBE_BODY[:6]:
        fix = "Use a storage server and proxies that support range requests: workers need them."
        raise Trouble("storage does not support range requests", fix)
    return response.headers.get("Access-Control-Allow-Origin", "")


async def _single_sign_on(parts: Parts) -> None:
    from portal.accounts.oidc import Provider

    try:
        await Provider(parts.config).check()
    except ProviderUnavailable as exc:
        cause = exc.__cause__
        raise Trouble(first_line(cause) if cause else exc.detail) from exc


async def check_exposure(parts: Parts) -> None:
    """Request files and the bucket's listing without signature. Raise `Concern` on success."""
    storage = parts.storage
    name = f"doctor/{uuid4().hex}.mp4"
    key = OUTPUT_FOLDER + name
    uploaded_key = UPLOAD_FOLDER + name
    signed = URL(await storage.public.presign_get(key, ttl_s=60), encoded=True)
    plain = signed.with_query(None)
    bucket = URL(str(plain).removesuffix(key), encoded=True)
    try:
        for probe in (key, uploaded_key):
            await storage.put(probe, PROBE_BODY, content_type=PROBE_TYPE, max_age_s=0)
        if PROBE_BODY in await _get_unsigned(plain):
            raise Concern("storage answers unsigned requests for files", CLOSE_BUCKET)
        listing = await _get_unsigned(bucket.with_query({"list-type": "2"}))
        if b"<ListBucketResult" in listing:
            raise Concern("storage lists its files for unsigned requests", CLOSE_LISTING)
        base_url = parts.config.playback_base_url
        if base_url and PROBE_BODY in await _get_unsigned(URL(f"{base_url}/{uploaded_key}")):
            raise Concern(f"{base_url} serves uploaded files", FORWARD_OUTPUT)
        if base_url and PROBE_BODY in await _get_unsigned(URL(f"{base_url}/{key}")):
            raise Concern(
                f"{base_url} serves the files of private videos, and the removed parts of cut ones",
                KEEP_PRIVATE,
            )
    finally:
        await storage.delete(key)
        await storage.delete(uploaded_key)


async def _get_unsigned(address: URL) -> bytes:
    """Return the start of a response with status 200; empty for any other, or for none."""
    timeout = aiohttp.ClientTimeout(total=RESPONSE_TIMEOUT_S)
    try:
        async with (
            aiohttp.ClientSession(timeout=timeout) as session,
            session.get(address) as response,
        ):
            if response.status == HTTPStatus.OK:
                return await response.content.read(64 * 1024)
    except (aiohttp.ClientError, TimeoutError):
        pass
    return b""


def _cors_fix(config: Config) -> str:
    """Return the command that allows uploads from the portal's pages, and players on every site.

    Signatures protect the files, so reads need no list of origins.
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
    """Return the endpoint option of the AWS command line, empty for AWS itself."""
    return f" --endpoint-url {config.s3_endpoint_url}" if config.s3_endpoint_url else ""


def _origin(config: Config) -> str:
    return "/".join(config.public_url.split("/")[:3])


def first_line(exc: BaseException) -> str:
    """Return the first line of an error's message, or its name if it has none."""
    return error_words(exc).splitlines()[0]


BROWSER_UPLOAD = "Upload and playback from a browser"
CHECKS = (
    Check("Names of settings", check_settings, "Rename the variable, or unset it."),
    Check("Disk space", check_disk, DISK),
    Check("Database and tables", check_database, DATABASE),
    Check("Queue round trip", _queue, MIGRATE, needs="Database and tables"),
    Check("ffmpeg", _ffmpeg, FFMPEG),
    Check("Clock", check_clock, CLOCK),
    Check("Bucket", check_bucket, CREDENTIALS, needs="Clock"),
    Check(BROWSER_UPLOAD, _browser_upload, REACHABLE, needs="Bucket"),
    Check("Upload in parts", _upload_in_parts, PARTS_CREDENTIALS, needs=BROWSER_UPLOAD),
    Check("Files need signed URLs", check_exposure, REACHABLE, needs=BROWSER_UPLOAD),
)
SINGLE_SIGN_ON = Check("Single sign-on", _single_sign_on, SIGN_ON)
