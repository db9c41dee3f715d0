"""Reasons and fixes that the checks of `portal doctor` report."""

import asyncio
import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import aiohttp
import psycopg
import pytest
from aiohttp import web
from command_line import portal
from running_portal import LivePortal
from serving import serving

from portal.cli import checks
from portal.cli.checks import Concern, Parts, Trouble
from portal.config import Config
from portal.storage.bucket import open_storage

REFUSAL = b'SFATAL\0C28P01\0Mpassword authentication failed for user "ann"\0\0'


async def test_database_check_reports_the_error_of_the_server(config: Config) -> None:
    """The server sends PostgreSQL's error for a wrong password."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(8)
        writer.write(b"N")
        await reader.read(1000)
        writer.write(b"E" + (len(REFUSAL) + 4).to_bytes(4) + REFUSAL)
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1")
    async with server, open_storage(config) as storage:
        port = server.sockets[0].getsockname()[1]
        url = f"postgresql://ann:wrong@127.0.0.1:{port}/portal"
        parts = Parts(replace(config, database_url=url), storage)
        with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
            await checks.check_database(parts)


async def test_full_disk_is_named(config: Config, monkeypatch: pytest.MonkeyPatch) -> None:
    async with open_storage(config) as storage:
        parts = Parts(config, storage)
        await checks.check_disk(parts)
        monkeypatch.setattr(checks, "MIN_FREE_BYTES", 10**18)
        with pytest.raises(Trouble, match="is full"):
            await checks.check_disk(parts)


@pytest.mark.parametrize(("minutes", "words"), [(20, "20 min behind"), (-20, "20 min ahead of")])
async def test_wrong_clock_is_named(config: Config, minutes: int, words: str) -> None:
    async def answer(request: web.Request) -> web.Response:
        date = format_datetime(datetime.now(UTC) + timedelta(minutes=minutes), usegmt=True)
        return web.Response(status=403, headers={"Date": date})

    async with serving(web.route("*", "/{path:.*}", answer)) as url:
        other = replace(config, s3_endpoint_url=url, s3_public_endpoint_url=url)
        async with open_storage(other) as storage:
            with pytest.raises(Trouble, match=f"{words} that of storage"):
                await checks.check_clock(Parts(other, storage))


async def test_storage_with_a_full_disk_is_not_blamed_on_credentials(config: Config) -> None:
    async def answer(request: web.Request) -> web.Response:
        return web.Response(status=507, text="<Error><Code>XMinioStorageFull</Code></Error>")

    full = serving(web.put("/", answer))
    async with full as url, aiohttp.ClientSession() as session, session.put(url) as response:
        with pytest.raises(Trouble, match="507 XMinioStorageFull") as caught:
            await checks.require_stored(response, "PUT", checks.CREDENTIALS)
    assert caught.value.fix == checks.STORAGE_FAULT


async def test_checks_that_depend_on_a_failed_one_are_skipped(live_portal: LivePortal) -> None:
    ended = await portal({**live_portal.environ, "AWS_SECRET_ACCESS_KEY": "w" * 40}, "doctor")
    assert ended.out.count("FAIL") == 1
    assert "FAIL  Bucket: " in ended.out
    assert "Forbidden" in ended.out
    assert "Check S3_ENDPOINT_URL" in ended.out
    assert ended.out.count("skip") == 3
    ended = await portal({**live_portal.environ, "S3_BUCKET": "missing"}, "doctor")
    assert "bucket 'missing' does not exist" in ended.out
    endpoint = live_portal.environ["S3_ENDPOINT_URL"]
    assert f"create-bucket --bucket missing --endpoint-url {endpoint}" in ended.out


async def test_storage_must_allow_players_on_other_sites(config: Config) -> None:
    """This storage allows the portal's origin only; redirected requests have the origin null."""
    origin = "http://127.0.0.1:8000"

    async def answer(request: web.Request) -> web.Response:
        headers = {"Access-Control-Allow-Methods": "GET, PUT"}
        if request.headers["Origin"] == origin:
            headers["Access-Control-Allow-Origin"] = origin
            headers["Access-Control-Expose-Headers"] = "ETag"
        return web.Response(body=checks.PROBE_BODY[:6], headers=headers)

    async with serving(web.route("*", "/{path:.*}", answer)) as address:
        config = replace(config, public_url=origin, s3_public_endpoint_url=address)
        async with open_storage(config) as storage:
            parts = Parts(config, storage)
            with pytest.raises(Concern, match="players on other sites") as concern:
                await checks._browser_upload(parts)
    [_, rule, _] = concern.value.fix.split("'")
    uploads, playback = json.loads(rule)["CORSRules"]
    assert (uploads["AllowedOrigins"], uploads["AllowedMethods"]) == ([origin], ["PUT"])
    assert (playback["AllowedOrigins"], playback["AllowedMethods"]) == (["*"], ["GET", "HEAD"])
