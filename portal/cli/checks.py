"""The checks of `portal doctor`: every part is tried for real; each failure names its fix.

What it writes it removes again: one object under `doctor/` and one job in a queue of its own.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from http import HTTPStatus
from uuid import uuid4

import aiohttp
import click
from tortoise.exceptions import OperationalError
from yarl import URL

from portal.cli.exposure import Exposed, Parts, Trouble, unsigned_requests
from portal.config import Config
from portal.database.connection import open_database
from portal.database.models import Category
from portal.errors import ProviderUnavailable
from portal.maintenance.consistency import Report, compare
from portal.queue.app import open_queue
from portal.storage.bucket import Storage, open_storage
from portal.storage.calls import ObjectMissing
from portal.text import error_words
from portal.transcoding.encoding.output_validation import check_ffmpeg

CHECK_TIMEOUT_S = 20
PROBE_TYPE = "video/mp4"
PROBE_BODY = b"portal doctor"
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


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that must work, in the words it is printed with, and what it builds on.

    `fix` is what to do about any failure that is not foreseen.
    """

    name: str
    run: Callable[[Parts], Awaitable[None]]
    fix: str
    needs: str = ""


@asynccontextmanager
async def _opened(config: Config) -> AsyncIterator[Parts]:
    async with open_database(config), open_storage(config) as storage:
        yield Parts(config, storage, open_queue(config.database_url))


async def examine(config: Config) -> bool:
    """Run all checks, print a line for each, and return whether all passed."""
    failed: set[str] = set()
    async with _opened(config) as parts:
        for check in (*CHECKS, *([SINGLE_SIGN_ON] if config.oidc_issuer else [])):
            if check.needs in failed:
                click.echo(f"{click.style('skip', fg='yellow')}  {check.name}")
            elif not await _passes(check, parts):
                failed.add(check.name)
    return not failed


async def examine_deeply(
    config: Config, *, fix: bool, accepts_sources: bool, quietly: bool
) -> Report | None:
    """Compare database and storage; None when one of them can't be used, which is printed."""
    async with _opened(config) as parts:
        for check in CHECKS:
            if check.run in (_database, _bucket) and not await _passes(check, parts, quietly):
                return None
        async with parts.queue.open_async():
            return await compare(
                config,
                storage=parts.storage,
                queue=parts.queue,
                fix=fix,
                accepts_sources=accepts_sources,
            )


async def _passes(check: Check, parts: Parts, quietly: bool = False) -> bool:
    try:
        async with asyncio.timeout(CHECK_TIMEOUT_S):
            await check.run(parts)
    except Exposed as exposed:
        # Everything works; whether it should is for who runs the portal to say.
        if not quietly:
            _print_fault("WARN", "yellow", check.name, str(exposed), exposed.fix)
        return True
    except Trouble as trouble:
        _print_failure(check.name, str(trouble), trouble.fix or check.fix)
        return False
    except TimeoutError:
        _print_failure(check.name, f"no answer within {CHECK_TIMEOUT_S} s", "Check the address.")
        return False
    except Exception as exc:  # noqa: BLE001  # whatever it is, the part does not work
        _print_failure(check.name, _first_line(exc.__cause__ or exc), check.fix)
        return False
    if not quietly:
        click.echo(f"{click.style('ok', fg='green')}    {check.name}")
    return True


def _print_failure(name: str, what: str, fix: str) -> None:
    _print_fault("FAIL", "red", name, what, fix)


def _print_fault(mark: str, colour: str, name: str, what: str, fix: str) -> None:
    click.echo(f"{click.style(mark, fg=colour)}  {name}: {what}")
    click.echo("\n".join(f"      {line}" for line in fix.splitlines()))


async def _database(parts: Parts) -> None:
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


async def _bucket(parts: Parts) -> None:
    try:
        await parts.storage.check_bucket()
    except ObjectMissing as exc:
        name = parts.storage.bucket
        fix = f"Create it: aws s3api create-bucket --bucket {name}"
        raise Trouble(f"there is no bucket {name!r}", fix) from exc


async def _browser_upload(parts: Parts) -> None:
    """Does what a browser does: preflight, PUT, reading the ETag, a range GET."""
    storage, config = parts.storage, parts.config
    key = f"doctor/{uuid4().hex}.mp4"
    put_url = await storage.public.presign_put(key, content_type=PROBE_TYPE, ttl_s=60)
    get_url = await storage.public.presign_get(key, ttl_s=60)
    async with aiohttp.ClientSession() as session:
        await _preflight(session, put_url, config)
        await _put(session, put_url, config)
        await _range_get(session, get_url)
        await storage.delete(key)


async def _upload_in_parts(parts: Parts) -> None:
    """Sends a file as a single part and puts it together."""
    storage, key = parts.storage, f"doctor/{uuid4().hex}.mp4"
    multipart_id = await storage.multiparts.create(key, content_type=PROBE_TYPE)
    try:
        await _put_part(storage, key, multipart_id)
        sent = await storage.multiparts.list_parts(key, multipart_id)
        await storage.multiparts.complete(key, multipart_id, sent)
    finally:
        # Done or not: this wants its own permission, and nothing may stay behind.
        await storage.multiparts.abort(key, multipart_id)
    size_bytes = (await storage.head(key)).size_bytes
    await storage.delete(key)
    if size_bytes != len(PROBE_BODY):
        raise Trouble("a file sent in parts does not arrive whole")


async def _put_part(storage: Storage, key: str, multipart_id: str) -> None:
    url = await storage.public.presign_part(
        key, multipart_id, 1, size_bytes=len(PROBE_BODY), ttl_s=CHECK_TIMEOUT_S
    )
    address = URL(url, encoded=True)
    async with (
        aiohttp.ClientSession() as session,
        session.put(address, data=PROBE_BODY) as response,
    ):
        if response.status != HTTPStatus.OK:
            raise Trouble(f"storage answers a signed PUT of a part with {response.status}")


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


async def _range_get(session: aiohttp.ClientSession, url: str) -> None:
    async with session.get(url, headers={"Range": "bytes=0-5"}) as response:
        body = await response.read()
    if response.status >= HTTPStatus.BAD_REQUEST or body != PROBE_BODY[:6]:
        fix = "The worker reads sources by ranges: use a storage server or proxy that honours them."
        raise Trouble("storage does not answer range requests", fix)


async def _single_sign_on(parts: Parts) -> None:
    from portal.accounts.oidc import Provider

    try:
        await Provider(parts.config).check()
    except ProviderUnavailable as exc:
        cause = exc.__cause__
        raise Trouble(_first_line(cause) if cause else exc.detail) from exc


def _cors_fix(config: Config) -> str:
    rule = {
        "AllowedOrigins": [_origin(config)],
        "AllowedMethods": ["GET", "HEAD", "PUT"],
        "AllowedHeaders": ["Content-Type"],
        "ExposeHeaders": ["ETag"],
        "MaxAgeSeconds": 3600,
    }
    endpoint = f" --endpoint-url {config.s3_endpoint_url}" if config.s3_endpoint_url else ""
    return (
        f"aws s3api put-bucket-cors --bucket {config.s3_bucket}{endpoint} "
        f"--cors-configuration '{json.dumps({'CORSRules': [rule]})}'"
    )


def _origin(config: Config) -> str:
    return "/".join(config.public_url.split("/")[:3])


def _first_line(exc: BaseException) -> str:
    return error_words(exc).splitlines()[0]


BROWSER_UPLOAD = "Upload and playback as a browser does them"
CHECKS = (
    Check("Database and tables", _database, DATABASE),
    Check("Queue round trip", _queue, MIGRATE, needs="Database and tables"),
    Check("ffmpeg", _ffmpeg, FFMPEG),
    Check("Bucket", _bucket, CREDENTIALS),
    Check(BROWSER_UPLOAD, _browser_upload, REACHABLE, needs="Bucket"),
    Check("Upload in parts", _upload_in_parts, PARTS_CREDENTIALS, needs=BROWSER_UPLOAD),
    Check("Files for signed addresses alone", unsigned_requests, REACHABLE, needs=BROWSER_UPLOAD),
)
SINGLE_SIGN_ON = Check("Single sign-on", _single_sign_on, SIGN_ON)
