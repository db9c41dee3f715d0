"""The web process is killed at each step of handing a file in, and the sender repeats the request.

There is exactly one video, one row and the right count, whatever was lost.
"""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest
from api_client import RAW_FILE, rows, run_sql
from running_portal import SLOWDOWN, answers, free_port, fresh_database, until
from upload_client import put_to

from portal.accounts.tokens import digest

pytestmark = pytest.mark.slow
SECRET = "a-secret-of-a-link"
# A web process that dies after a step, before it answers; `count` is within the transaction.
DYING = """
import os, signal, sys
from functools import wraps
from portal.cli.main import main
from portal.features.hand_in import service
from portal.uploads import service as uploads

step = sys.argv[1]

def dying(function, is_step=lambda *_: True):
    @wraps(function)
    async def dies(*args, **options):
        result = await function(*args, **options)
        if is_step(*args):
            os.kill(os.getpid(), signal.SIGKILL)
        return result
    return dies

if step == "count":
    service.execute = dying(service.execute, lambda statement, *_: statement == service.RECEIVE)
elif step in ("start", "complete"):
    setattr(uploads, step, dying(getattr(uploads, step)))
elif step:
    setattr(service, step, dying(getattr(service, step)))
main(["web"])
"""
LINK = f"""
INSERT INTO hand_ins (id, digest, name, category_id, max_files, expires_at)
VALUES (gen_random_uuid(), '{digest(SECRET)}', 'Essays', 5, 3, now() + interval '1 day')
"""
RESULT = """
SELECT received_files, (SELECT count(*) FROM hand_in_files), (SELECT count(*) FROM videos),
       (SELECT count(*) FROM procrastinate_jobs)
FROM hand_ins
"""


@asynccontextmanager
async def web(environ: dict[str, str], step: str) -> AsyncIterator[asyncio.subprocess.Process]:
    """Run a web process that dies after a step; with an empty step it doesn't."""
    settings = {"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/"), **environ}
    child = await asyncio.create_subprocess_exec(sys.executable, "-c", DYING, step, env=settings)
    try:
        await until(lambda: answers(f"{environ['PUBLIC_URL']}/healthz"), timeout_s=60)
        yield child
    finally:
        if child.returncode is None:
            child.terminate()
        await asyncio.wait_for(child.wait(), 15 * SLOWDOWN)


class Sender:
    """Browser that hands a file in. It repeats what got no answer."""

    def __init__(self, environ: dict[str, str], session: aiohttp.ClientSession) -> None:
        self.base_url = environ["PUBLIC_URL"]
        self.session = session
        self.key = ""
        # Requests of the flow, of which each is repeated until it is answered.
        self.steps = [self.begin, self.start, self.send, self.complete, self.hand_in]

    async def run(self) -> bool:
        """Take the steps that are left, and return whether all were answered."""
        while self.steps:
            try:
                await self.steps[0]()
            except aiohttp.ClientError:
                return False
            del self.steps[0]
        return True

    async def ask(self, path: str, body: dict[str, Any] | None = None) -> Any:
        async with self.session.post(f"{self.base_url}/{path}", json=body) as response:
            assert response.ok, await response.text()
            return None if response.status == 204 else await response.json()

    async def begin(self) -> None:
        body = {"fileName": "a.mp4", "contentType": "video/mp4"}
        self.key = (await self.ask(f"hand-in-files/{SECRET}/uploads", body))["key"]

    async def start(self) -> None:
        await self.ask("api/uploads", {"key": self.key, "sizeBytes": len(RAW_FILE)})

    async def send(self) -> None:
        part = await self.ask(f"api/uploads/{self.key[7:39]}/parts/1")
        assert (await put_to(part["uploadUrl"], RAW_FILE))[0] == 200

    async def complete(self) -> None:
        await self.ask(f"api/uploads/{self.key[7:39]}/complete")

    async def hand_in(self) -> None:
        details = {"fileName": "a.mp4", "title": "My essay", "sender": "Ben Example"}
        await self.ask(f"hand-in-files/{SECRET}", {"key": self.key, **details})


@pytest.mark.parametrize("step", ["begin", "start", "complete", "count", "receive"])
async def test_kill_at_each_step_leaves_one_video_once_the_request_is_repeated(
    services: dict[str, str], step: str
) -> None:
    port = free_port()
    async with fresh_database(services) as database:
        environ = {**database, "PORT": str(port), "PUBLIC_URL": f"http://127.0.0.1:{port}"}
        await run_sql(environ["DATABASE_URL"], LINK)
        jar = aiohttp.CookieJar(unsafe=True)
        async with aiohttp.ClientSession(cookie_jar=jar) as session:
            sender = Sender(environ, session)
            async with web(environ, step) as dying:
                assert not await sender.run()
                await asyncio.wait_for(dying.wait(), 15 * SLOWDOWN)
            assert dying.returncode == -signal.SIGKILL
            async with web(environ, ""):
                assert await sender.run()
                await sender.hand_in()
        assert await rows(environ["DATABASE_URL"], RESULT) == [(1, 1, 1, 1)]
