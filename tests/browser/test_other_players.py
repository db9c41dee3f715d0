"""Whole and cut films in hls.js as other sites use it, in Chromium and Firefox."""

import asyncio
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from aiohttp import web
from api_client import Client
from cut_films import cut, save_stream, whole_video
from front_end import STATIC
from http_server import listening
from numbered_film import DIGITS, FPS, make_numbered
from playwright.async_api import Browser, Page

from portal.database.models import Video
from portal.http.composition import WebContext

pytestmark = pytest.mark.slow

FILM_S = 8
# Beginnings in the middle of a segment, at a segment, and at a key frame inside one.
KEPT_S = ((0.52, 1.6), (4.0, 5.0), (6.0, FILM_S))
# Frames that are looked at from before each join, and up to the end.
STEPS = 16
PAGE = """<!doctype html><video muted></video><script src="/player.js"></script>"""
# Loads a film in one of its qualities with hls.js, and returns once all of it is in the buffer.
LOAD = """([master, level]) => new Promise((resolve, reject) => {
    const video = document.querySelector("video");
    window.seeks = 0;
    const hls = new Hls({ startLevel: level, enableWorker: false });
    hls.on(Hls.Events.ERROR, (_event, { fatal, details }) => fatal && reject(details));
    hls.on(Hls.Events.BUFFERED_TO_END, () => resolve(hls.levels.length));
    hls.once(Hls.Events.MANIFEST_PARSED, () => { hls.currentLevel = level; });
    hls.loadSource(master);
    hls.attachMedia(video);
})"""
PLAY = """async () => {
    const video = document.querySelector("video");
    let seeks = 0;
    video.addEventListener("seeking", () => { seeks += 1; });
    const ended = new Promise((resolve) => video.addEventListener("ended", resolve));
    video.playbackRate = 4;
    await video.play();
    await ended;
    return [seeks, video.buffered.length, video.buffered.start(0), video.duration];
}"""
# Seeks from frame to frame, as "+ Frame" does, and returns the numbers that the frames show. Each
# is awaited, because frames are presented some time after a seek.
STEP = """async ([first, expected, fps, digits, limit_ms]) => {
    const video = document.querySelector("video");
    const canvas = new OffscreenCanvas(digits, 1);
    const context = canvas.getContext("2d", { willReadFrequently: true });
    context.imageSmoothingEnabled = false;
    const read = () => {
        context.drawImage(video, 0, 0, canvas.width, 1);
        const { data } = context.getImageData(0, 0, canvas.width, 1);
        let number = 0;
        for (let digit = 0; digit < canvas.width; digit += 1)
            if (data[4 * digit] > 128) number += 2 ** digit;
        return number;
    };
    const numbers = [];
    for (const [place, wanted] of expected.entries()) {
        video.currentTime = (first + place + 0.5) / fps;
        const limit = performance.now() + limit_ms;
        while (read() !== wanted && performance.now() < limit)
            await new Promise(requestAnimationFrame);
        numbers.push(read());
    }
    return numbers;
}"""
STEP_LIMIT_MS = 20_000


@asynccontextmanager
async def site_with(folder: Path) -> AsyncIterator[str]:
    """Serve a folder with films, and a page with hls.js."""
    (folder / "page.html").write_text(PAGE)
    player = STATIC / "node_modules" / "hls.js" / "dist" / "hls.min.js"
    shutil.copyfile(player, folder / "player.js")
    app = web.Application()
    app.router.add_static("/", folder)
    async with listening(web.AppRunner(app)) as address:
        yield address


async def check_qualities(page: Page, master: str, expected: list[int]) -> None:
    """Check in each quality that a film plays to its end, and shows each frame around its joins."""
    joins = [at for at in range(1, len(expected)) if expected[at] != expected[at - 1] + 1]
    places = [*(join - STEPS // 2 for join in joins), len(expected) - STEPS]
    level = 0
    levels = 2
    while level < levels:
        await page.goto("/page.html")
        levels = await page.evaluate(LOAD, [master, level])
        for first in places:
            wanted = expected[first : first + STEPS]
            numbers = await page.evaluate(STEP, [first, wanted, FPS, DIGITS, STEP_LIMIT_MS])
            assert numbers == wanted, f"quality {level}"
        await page.evaluate("document.querySelector('video').currentTime = 0")
        seeks, ranges, start_s, end_s = await page.evaluate(PLAY)
        assert (seeks, ranges) == (0, 1), f"quality {level}"
        assert start_s == pytest.approx(0, abs=0.001)
        assert end_s == pytest.approx(len(expected) / FPS, abs=0.05)
        level += 1


async def test_whole_and_cut_films_play_to_their_end_and_show_each_frame_in_hls_js(
    client: Client, resources: WebContext, browser: Browser, firefox: Browser, tmp_path: Path
) -> None:
    groups = ("-g", "50", "-bf", "3", "-sc_threshold", "0")
    film = make_numbered(tmp_path / "film.mp4", *groups, seconds=FILM_S)
    whole = await whole_video(client, resources, film, tmp_path)
    frames = list(range(FILM_S * FPS))
    kept = [n for first, last in KEPT_S for n in frames[round(first * FPS) : round(last * FPS)]]
    folder = tmp_path / "stream"
    folder.mkdir()
    async with site_with(folder) as address:
        pages = [await each.new_page(base_url=address) for each in (browser, firefox)]
        await cut(whole, resources, tmp_path, *KEPT_S)
        for version, expected in ((whole, frames), (await Video.get(id=whole.id), kept)):
            master = await save_stream(version, resources, folder)
            path = f"/{master.relative_to(folder)}"
            await asyncio.gather(*(check_qualities(page, path, expected) for page in pages))
        await pages[0].close()
