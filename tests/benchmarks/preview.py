"""Time from the creation of a film until Chromium shows a frame.

The films are published one after the other, and their pages opened.

    python tests/benchmarks/preview.py FILM…
"""

import argparse
import asyncio
import shutil
import tempfile
from pathlib import Path
from time import monotonic

from benchmark_portal import measured_portal
from playwright.async_api import Page, async_playwright
from running_portal import call, until, upload

AIM_S = 6
HAS_FRAME = "() => (document.querySelector('video')?.readyState ?? 0) >= 2"


async def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("films", nargs="+", type=Path, metavar="FILM")
    films = parser.parse_args().films
    with tempfile.TemporaryDirectory(prefix="portal-benchmark-") as folder:
        async with (
            measured_portal(Path(folder), worker=True) as portal,
            async_playwright() as playwright,
        ):
            chromium = shutil.which("chromium") or shutil.which("google-chrome")
            browser = await playwright.chromium.launch(executable_path=chromium)
            for film in films:
                page = await browser.new_page()
                taken_s = await measure(page, portal.base_url, film)
                print(f"{film.name}: {taken_s:.1f} s (aim: {AIM_S})")
                await page.close()
            await browser.close()


async def measure(page: Page, base_url: str, film: Path) -> float:
    """Return the seconds from a film's creation to the first frame on its page."""
    body = {"title": film.stem, "description": "", "categoryIds": [1], "tags": ""}
    body |= {"fileName": film.name, "key": await upload(base_url, film)}
    begun = monotonic()
    video = await call("POST", f"{base_url}/api/videos", status=201, json=body)
    await page.goto(f"{base_url}/videos/{video['id']}")
    await until(lambda: page.evaluate(HAS_FRAME), timeout_s=60, interval_s=0.05)
    taken_s = monotonic() - begun
    await call("DELETE", f"{base_url}/api/videos/{video['id']}", status=202)
    return taken_s


if __name__ == "__main__":
    asyncio.run(main())
