"""The shipped nginx file keeps secrets in addresses out of its log."""

import asyncio
import re
import shutil
import subprocess
from pathlib import Path

import aiohttp
import pytest
from running_portal import free_port, until
from yarl import URL

SHIPPED = Path(__file__).parents[2] / "docs/deploy/nginx.conf"
SECRET = "eyJ2IjoiMSJ9.5ec7e7"
PATHS = (
    f"/p/{SECRET}/hls/1/1/master.m3u8",
    f"//p//{SECRET}/embed/1",
    f"/%70/{SECRET}/embed/1",
    f"/P/{SECRET}",
    f"/welcome/{SECRET}",
    f"/sign-in/oidc/callback?code={SECRET}",
    "/videos/1",
)


@pytest.mark.skipif(shutil.which("nginx") is None, reason="needs nginx")
async def test_shipped_nginx_logs_no_secret(tmp_path: Path) -> None:
    """nginx logs the requests although no portal runs behind it."""
    port = free_port()
    maps, _, sites = SHIPPED.read_text().partition("server {")
    site = "server {" + sites.split("server {")[1].partition("# Uploads and segments")[0]
    site = re.sub(r"    listen .*\n    listen .*", f"    listen 127.0.0.1:{port};", site)
    site = re.sub(r"    (ssl_certificate|auth_basic).*\n", "", site).replace(":8000", ":9")
    shared = (maps + site).replace("/var/cache/nginx", str(tmp_path))
    shared = shared.replace("/var/log/nginx", str(tmp_path))
    config = tmp_path / "nginx.conf"
    config.write_text(
        f"daemon off; pid {tmp_path}/nginx.pid; events {{}} http {{ access_log off; {shared} }}"
    )
    command = ("nginx", "-e", f"{tmp_path}/start.log", "-c", str(config))
    process = await asyncio.create_subprocess_exec(*command, stderr=subprocess.PIPE)
    try:
        async with aiohttp.ClientSession() as session:

            async def ask(path: str) -> int:
                address = URL(f"http://127.0.0.1:{port}{path}", encoded=True)
                async with session.get(address) as response:
                    return response.status

            async def is_up() -> bool:
                assert process.returncode is None, (tmp_path / "start.log").read_text()
                try:
                    return await ask("/healthz") >= 500
                except aiohttp.ClientConnectionError:
                    return False

            await until(is_up, timeout_s=5, interval_s=0.02)
            for path in PATHS:
                assert await ask(path) >= 500, path
    finally:
        process.terminate()
        await process.wait()
    text = (tmp_path / "portal.log").read_text()
    assert "GET /videos/1 HTTP/1.1" in text
    assert "/p/..." in text
    for file in tmp_path.glob("*.log"):
        assert SECRET not in file.read_text(), file
