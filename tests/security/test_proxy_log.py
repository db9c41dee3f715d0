"""The shipped nginx file keeps secrets in addresses out of its log."""

import shutil
from pathlib import Path

import aiohttp
import pytest
from shipped_nginx import shipped_nginx
from yarl import URL

SECRET = "eyJ2IjoiMSJ9.5ec7e7"
PATHS = (
    f"/p/{SECRET}/hls/1/1/master.m3u8",
    f"//p//{SECRET}/embed/1",
    f"/%70/{SECRET}/embed/1",
    f"/P/{SECRET}",
    f"/welcome/{SECRET}",
    f"/hand-in/{SECRET}",
    f"/hand-in-files/{SECRET}/uploads",
    f"/sign-in/oidc/callback?code={SECRET}",
    "/videos/1",
)


@pytest.mark.skipif(shutil.which("nginx") is None, reason="needs nginx")
async def test_shipped_nginx_logs_no_secret(tmp_path: Path) -> None:
    """nginx logs the requests although no portal runs behind it."""
    async with (
        shipped_nginx(tmp_path, "127.0.0.1:9") as address,
        aiohttp.ClientSession() as session,
    ):
        for path in PATHS:
            async with session.get(URL(address + path, encoded=True)) as response:
                assert response.status >= 500, path
    text = (tmp_path / "portal.log").read_text()
    assert "GET /videos/1 HTTP/1.1" in text
    assert "/p/..." in text
    for file in tmp_path.glob("*.log"):
        assert SECRET not in file.read_text(), file
