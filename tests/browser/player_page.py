"""A film with two languages, and the state of the player."""

from pathlib import Path
from typing import Any

import numpy as np
from numbered_film import DIGITS, number_in
from playwright.async_api import Frame, Page
from running_portal import run_ffmpeg

FILM_S = 24


def make_film(folder: Path, *, size: str = "854x480") -> Path:
    """Make 24 s, half red and half blue, with English and German sound and subtitles."""
    half = FILM_S // 2
    colours = [f"color=c={name}:s={size}:r=10:d={half}" for name in ("red", "blue")]
    subtitles = []
    for name, words in (("en", "Good morning."), ("de", "Guten Morgen.")):
        path = folder / f"{name}.srt"
        path.write_text(f"1\n00:00:00,500 --> 00:00:{FILM_S - 1},000\n{words}\n", encoding="utf-8")
        subtitles.append(path)
    tones = [f"sine=f={pitch}:d={FILM_S}" for pitch in (440, 880)]
    inputs = [("-f", "lavfi", "-i", source) for source in (*colours, *tones)]
    inputs += [("-i", str(path)) for path in subtitles]
    languages = [
        ("-metadata:s:" + kind, f"language={code}")
        for kind, code in (("a:0", "eng"), ("a:1", "deu"), ("s:0", "eng"), ("s:1", "deu"))
    ]
    arguments = [
        *(part for source in inputs for part in source),
        *("-filter_complex", "[0][1]concat=n=2,format=yuv420p[v]"),
        *("-map", "[v]", "-map", "2", "-map", "3", "-map", "4", "-map", "5"),
        *("-c:v", "libx264", "-preset", "ultrafast", "-g", "999", "-c:a", "aac"),
        *("-c:s", "mov_text", *(part for pair in languages for part in pair)),
    ]
    return run_ffmpeg(folder / "film.mp4", *arguments)


async def wait_for(page: Page | Frame, condition: str, *, timeout_s: float = 120) -> None:
    """Wait until an expression about `video`, the page's video, is true."""
    script = f"() => {{ const video = document.querySelector('video'); return {condition}; }}"
    await page.wait_for_function(script, timeout=timeout_s * 1000)


async def read(page: Page | Frame, expression: str) -> Any:
    """Return the value of an expression about `video`, the page's video."""
    return await page.evaluate(
        f"(() => {{ const video = document.querySelector('video'); return {expression}; }})()"
    )


async def shown_number(page: Page) -> int:
    """Return the number that the player's picture shows, of a film by `make_numbered`."""
    script = """(video, width) => {
        const context = new OffscreenCanvas(width, 1).getContext("2d");
        context.drawImage(video, 0, 0, width, 1);
        return [...context.getImageData(0, 0, width, 1).data].filter((_, at) => at % 4 === 0);
    }"""
    row = await page.locator("video").evaluate(script, DIGITS)
    return number_in(np.array([row], np.uint8))


async def open_player(page: Page, address: str) -> None:
    """Go to a page with a player, and wait until it could play."""
    await page.goto(address)
    await wait_for(page, "video.readyState >= 2")
