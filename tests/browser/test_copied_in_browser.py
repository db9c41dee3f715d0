"""Copied and encoded renditions of one video, in Chromium: anywhere, and from one to the other."""

import random
from pathlib import Path

import pytest
from chromium import Publish
from player_page import open_player, read, wait_for
from playwright.async_api import Page
from running_portal import LivePortal, call, run_ffmpeg, until

DURATION_S = 24
MAX_GAP_S = 0.05
H264 = ("-c:v", "libx264", "-preset", "ultrafast", "-bf", "2", "-pix_fmt", "yuv420p")
JITTERING = (
    *("-vf", "settb=1/90000,setpts='PTS+mod(N*7919,300)'"),
    *("-fps_mode", "passthrough", "-enc_time_base", "1:90000"),
)
SECONDS_APART = ("-g", "60")
BADLY_CUT = ("-g", "999", "-force_key_frames", "0,1,3.9,7,9.5,10,11,18")
VARIABLE = ("-vf", "select='not(mod(n,3))+lt(mod(n,40),15)'", "-fps_mode", "vfr")
KINDS = {
    "copied": SECONDS_APART,
    "copied, jittering": (*SECONDS_APART, *JITTERING),
    "copied, key frames here and there": BADLY_CUT,
    "encoded, variable": (*VARIABLE, "-level:v", "5.1"),
}


def make_kind(path: Path, kind: str) -> Path:
    picture = f"testsrc2=size=854x480:rate=30:duration={DURATION_S}"
    inputs = ("-f", "lavfi", "-i", picture, "-f", "lavfi", "-i", f"sine=duration={DURATION_S}")
    fine = ("-video_track_timescale", "90000")
    return run_ffmpeg(path, *inputs, *H264, *KINDS[kind], "-c:a", "aac", *fine)


def with_late_picture(path: Path, source: Path) -> Path:
    inputs = ("-itsoffset", "0.4", "-i", str(source), "-i", str(source))
    return run_ffmpeg(path, *inputs, "-map", "0:v", "-map", "1:a", "-c", "copy")


@pytest.mark.parametrize("kind", [*KINDS, "copied, late picture"])
@pytest.mark.slow
async def test_renditions_play_from_anywhere_and_switch_without_a_gap(
    kind: str, page: Page, publish: Publish, live_portal: LivePortal, tmp_path: Path
) -> None:
    if kind in KINDS:
        source = make_kind(tmp_path / "source.mp4", kind)
    else:
        plain = make_kind(tmp_path / "plain.mp4", "copied")
        source = with_late_picture(tmp_path / "source.mp4", plain)
    video_id = await publish(source, kind, until="ready")

    async def is_whole() -> bool:
        transcode = await call("GET", f"{live_portal.base_url}/api/videos/{video_id}/transcode")
        videos = [it for it in transcode["renditions"] if it["kind"] == "video"]
        assert any(it["copied"] for it in videos) == kind.startswith("copied")
        return all(it["state"] == "complete" for it in videos)

    await until(is_whole, timeout_s=120)
    await open_player(page, f"/videos/{video_id}")
    last = await read(page, "video.videoRenditions.length") - 1
    assert last >= 1

    places = random.Random(7)  # noqa: S311 - the same places each time
    for turn, at_s in enumerate([0.0, *(places.uniform(0, DURATION_S - 4) for _ in range(5))]):
        chosen = 0 if turn % 2 else last
        await read(page, f"void (video.videoRenditions.selectedIndex = {chosen})")
        await read(page, f"void (video.muted = true, video.currentTime = {at_s}, video.play())")
        await wait_for(page, f"!video.seeking && video.currentTime > {at_s + 1.5}")
        # On to the other in the middle of playing.
        await read(page, f"void (video.videoRenditions.selectedIndex = {last - chosen})")
        await wait_for(page, f"video.currentTime > {at_s + 3}")
        assert await read(page, "video.error") is None
        gaps_s = await read(
            page,
            "Array.from({length: Math.max(0, video.buffered.length - 1)},"
            " (_, i) => video.buffered.start(i + 1) - video.buffered.end(i))",
        )
        assert not [gap_s for gap_s in gaps_s if MAX_GAP_S < gap_s < 1]
