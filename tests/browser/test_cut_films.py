"""A cut film in Chromium: every position shows the wanted frame, and it plays over its joins."""

import random
from pathlib import Path

import pytest
from chromium import Publish, play_past
from numbered_film import DIGITS, FPS, make_numbered
from player_page import open_player, read, wait_for
from playwright.async_api import Page
from running_portal import LivePortal, call, until

pytestmark = pytest.mark.slow

FILM_S = 60
# Five parts are removed: the beginning, the end, and three in between.
KEPT_S = ((1.2, 9.04), (12.52, 13.32), (20.0, 31.96), (33.0, 40.6), (47.4, 58.0))
SEEKS = 30
# Seeks to a position, and returns the number that the frame shows.
SHOWN = """async ([at_s, digits]) => {
    const video = document.querySelector("video");
    // The frame is presented some time after the seek has ended.
    const presented = new Promise((resolve) => video.requestVideoFrameCallback(resolve));
    video.currentTime = at_s;
    await presented;
    const canvas = new OffscreenCanvas(digits, 1);
    const context = canvas.getContext("2d");
    context.imageSmoothingEnabled = false;
    context.drawImage(video, 0, 0, canvas.width, 1);
    const { data } = context.getImageData(0, 0, canvas.width, 1);
    let number = 0;
    for (let digit = 0; digit < canvas.width; digit += 1)
        if (data[4 * digit] > 128) number += 2 ** digit;
    return number;
}"""
HOLES_S = """() => {
    const { buffered } = document.querySelector("video");
    return Array.from({ length: buffered.length - 1 }, (_, index) =>
        buffered.start(index + 1) - buffered.end(index));
}"""


async def test_a_film_with_five_cuts_shows_the_wanted_frame_at_thirty_random_positions(
    publish: Publish, live_portal: LivePortal, page: Page, tmp_path: Path
) -> None:
    film = make_numbered(tmp_path / "film.mp4", "-g", "999", seconds=FILM_S)
    video_id = await publish(film, "A film with five cuts", until="ready")
    address = f"{live_portal.base_url}/api/videos/{video_id}"
    keep = [{"startSeconds": start_s, "endSeconds": end_s} for start_s, end_s in KEPT_S]

    async def is_saved() -> bool:
        # A film can be cut once all of its qualities are made.
        rows = (await call("GET", f"{address}/transcode"))["renditions"]
        return all(row["state"] == "complete" for row in rows)

    async def is_live() -> bool:
        return bool((await call("GET", f"{address}/cuts"))["state"] == "live")

    await until(is_saved, timeout_s=60)
    await call("PUT", f"{address}/cuts", status=202, json={"keep": keep})
    await until(is_live, timeout_s=60)
    expected = [n for first, last in KEPT_S for n in range(round(first * FPS), round(last * FPS))]

    await open_player(page, f"/videos/{video_id}")
    assert await read(page, "video.duration") == pytest.approx(len(expected) / FPS, abs=0.05)
    places = random.Random(7).sample(range(len(expected)), SEEKS)  # noqa: S311 - no secret
    numbers = [await page.evaluate(SHOWN, [(place + 0.5) / FPS, DIGITS]) for place in places]
    assert numbers == [expected[place] for place in places]

    # Over the second join, which is between two short intervals.
    await read(page, "void (video.currentTime = 7)")
    await wait_for(page, "video.readyState >= 3")
    await play_past(page, 10)
    assert all(hole_s <= 0.05 for hole_s in await page.evaluate(HOLES_S))
    await read(page, "void (video.currentTime = video.duration - 1)")
    await wait_for(page, "video.ended")
