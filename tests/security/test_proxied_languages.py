"""The shipped nginx file keeps one answer for each language of pages."""

import re
import shutil
from pathlib import Path

import aiohttp
import pytest
from running_portal import fresh_portal
from shipped_nginx import shipped_nginx


@pytest.mark.skipif(shutil.which("nginx") is None, reason="needs nginx")
async def test_shipped_nginx_keeps_languages_apart(
    services: dict[str, str], tmp_path: Path
) -> None:
    async with fresh_portal(services) as portal:
        upstream = portal.base_url.removeprefix("http://")
        async with shipped_nginx(tmp_path, upstream) as address, aiohttp.ClientSession() as session:

            async def language_of(query: str = "", **headers: str) -> str:
                async with session.get(f"{address}/{query}", headers=headers) as response:
                    assert response.status == 200
                    match = re.search(r'<html lang="(\w+)"', await response.text())
                    return match[1] if match else ""

            german = {"Accept-Language": "de-CH,de;q=0.9,en;q=0.8"}
            # Each is asked twice, so that the second answer comes from the cache.
            for _ in range(2):
                assert await language_of(**german) == "de"
                assert await language_of(**{"Accept-Language": "fr"}) == "fr"
                assert await language_of(**{"Accept-Language": "ja,it;q=0.5"}) == "it"
                assert await language_of(**{"Accept-Language": "ja"}) == "en"
                assert await language_of() == "en"
                assert await language_of(**german, Cookie="portal_language=es") == "es"
                assert await language_of("?lang=fr", **german) == "fr"
                assert await language_of(**german, **{"Portal-Language": "it"}) == "it"
