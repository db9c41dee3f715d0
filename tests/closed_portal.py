"""A running portal with an owner, whose videos are private, and one that can be played."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
from command_line import portal as command
from running_portal import LivePortal, fresh_portal, until

OWNER, PASSWORD = "ann@example.org", "four calm green boats"
SCOPES = ("videos:read", "videos:write", "videos:delete")


@dataclass(frozen=True)
class ClosedPortal:
    """That portal, its owner's API token, and the video."""

    portal: LivePortal
    token: str
    video_id: str

    async def ask(self, method: str, path: str = "", *, status: int = 200, **options: Any) -> Any:
        """What the owner's program is answered of the video, with this status."""
        headers = {"Authorization": f"Bearer {self.token}"}
        if method == "PUT":
            headers["If-Match"] = "*"
        url = f"{self.portal.base_url}/api/videos/{self.video_id}{path}"
        async with (
            aiohttp.ClientSession(headers=headers) as http,
            http.request(method, url, **options) as answer,
        ):
            assert answer.status == status, await answer.text()
            return await answer.json() if status != 204 else None

    async def make_link(self) -> dict[str, str]:
        """A new playback link."""
        body = {"expiresInSeconds": 600}
        made: dict[str, str] = await self.ask("POST", "/playback-links", status=201, json=body)
        return made

    async def revoke(self, link: dict[str, str]) -> None:
        await self.ask("DELETE", f"/playback-links/{link['id']}", status=204)

    async def set_sites(self, *sites: str) -> None:
        """Let these sites alone frame the player."""
        body = {"visibility": "private", "signedInOnly": False, "embedOrigins": sites}
        await self.ask("PUT", "/access", json=body)

    async def is_complete(self) -> bool:
        """Whether everything there will ever be of the video is made."""
        found = await self.ask("GET", "/transcode")
        return found["remaining"] is None and bool(found["storyboardUrl"])


@asynccontextmanager
async def closed_portal(
    services: dict[str, str], work_dir: Path, film: Path
) -> AsyncIterator[ClosedPortal]:
    """Start it, and publish the film as its owner's program."""
    settings = {"WORK_DIR": str(work_dir), "DEFAULT_VISIBILITY": "private"}
    async with fresh_portal(services, worker=True, **settings) as live:
        add = ("accounts", "add", OWNER, "--role", "owner", "--password-stdin")
        assert (await command(live.environ, *add, typed=f"{PASSWORD}\n")).code == 0
        scopes = [part for scope in SCOPES for part in ("--scope", scope)]
        made = await command(live.environ, "tokens", "add", OWNER, "--name", "a", *scopes)
        token = made.out.strip()
        send = ("publish", str(film), "--category", "1", "--url", live.base_url)
        sent = await command({"PORTAL_TOKEN": token}, *send, "--title", "A film", "--no-wait")
        assert sent.code == 0, sent.err
        closed = ClosedPortal(live, token, sent.out.strip())
        await until(closed.is_complete, timeout_s=60, interval_s=0.5)
        yield closed
