"""The shipped nginx file in front of a portal, on a free port and without TLS and passwords."""

import asyncio
import os
import re
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
from running_portal import free_port, until

SHIPPED = Path(__file__).parents[1] / "docs/deploy/nginx.conf"


@asynccontextmanager
async def shipped_nginx(folder: Path, upstream: str) -> AsyncIterator[str]:
    """Run nginx before an upstream (host and port), with logs in a folder; yields its address."""
    port = free_port()
    maps, _, sites = SHIPPED.read_text().partition("server {")
    site = "server {" + sites.split("server {")[1].partition("# Uploads and segments")[0]
    site = re.sub(r"    listen .*\n    listen .*", f"    listen 127.0.0.1:{port};", site)
    site = re.sub(r"    (ssl_certificate|auth_basic).*\n", "", site)
    shared = (maps + site).replace("127.0.0.1:8000", upstream)
    shared = shared.replace("/var/cache/nginx", str(folder)).replace("/var/log/nginx", str(folder))
    config = folder / "nginx.conf"
    # Folders of pytest are closed to the account as which root's nginx would work.
    user = "user root;" if os.geteuid() == 0 else ""
    start = f"daemon off; {user} pid {folder}/nginx.pid; events {{}}"
    config.write_text(f"{start} http {{ access_log off; {shared} }}")
    command = ("nginx", "-e", f"{folder}/start.log", "-c", str(config))
    process = await asyncio.create_subprocess_exec(*command, stderr=subprocess.PIPE)
    address = f"http://127.0.0.1:{port}"

    async def is_up() -> bool:
        assert process.returncode is None, (folder / "start.log").read_text()
        try:
            async with aiohttp.ClientSession() as session, session.get(f"{address}/healthz"):
                return True
        except aiohttp.ClientConnectionError:
            return False

    try:
        await until(is_up, timeout_s=5, interval_s=0.02)
        yield address
    finally:
        process.terminate()
        await process.wait()
