"""Odd and hostile files through the whole service, next to normal films that may not wait.

Where the folder `../shared/cases` is present, the files in `EXPECTED` are used: one or two of each
kind. Other hostile inputs are made here.
"""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Any
from urllib.parse import urljoin

import aiohttp
import pytest
from aiohttp import web
from decoded_media import Heard, listen
from http_server import listening
from running_portal import (
    LivePortal,
    call,
    create,
    final_status,
    fresh_portal,
    run_ffmpeg,
    until,
)

from portal.transcoding.packaging.hls import media_playlist_name, parse_media_playlist

pytestmark = pytest.mark.slow
CASES = Path(__file__).parents[2].parent / "shared" / "cases"
CORPUS = Path(__file__).parents[2].parent / "shared" / "media"
SETTINGS = {
    "OUTGOING_NETWORKS": "127.0.0.0/8",
    "OUTGOING_ALLOW_HTTP": "on",
    **{f"RATE_LIMIT_{kind}": "0" for kind in ("CHANGES", "SEARCHES", "SIGN_INS")},
}
# Delay that a normal film may have next to any other input, in seconds.
DELAY_S = 10.0
SLOW_IMPORTS = 24
TOLERANCE_S = 0.3
LOUD = 0.02


@dataclass(frozen=True, kw_only=True, slots=True)
class Expected:
    """Expected result of a file: the length of both tracks, the size, and the notes for editors.

    `sound_levels` tells for each channel of the first sound track whether something is heard in
    its middle; None is a film without sound.
    """

    status: str = "ready"
    duration_s: float = 3.0
    size: tuple[int, int] = (320, 180)
    sound_levels: tuple[bool, ...] | None = (True, True)
    notes: frozenset[str] = frozenset()
    failure: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcome:
    """A published file as the API and its playlists tell it."""

    status: str
    duration_s: float
    sound_s: float | None
    size: tuple[int, int]
    sound: Heard | None
    transcode: dict[str, Any]


@asynccontextmanager
async def slow_server() -> AsyncIterator[str]:
    """A server that sends one byte of a film every few seconds."""

    async def drip(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "video/mp4"})
        response.content_length = 1_000_000
        await response.prepare(request)
        while True:
            await response.write(b"\0")
            await asyncio.sleep(5)

    app = web.Application()
    app.router.add_get("/{name}", drip)
    runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0)
    async with listening(runner) as address:
        yield address


def film_with_many_words(folder: Path) -> Path:
    """A film whose subtitles have 40,000 words, of which no two are alike."""
    words = [f"{number:030}" for number in range(40_000)]
    # A sample of the track holds 64 KiB.
    cues = [
        f"00:00:0{tenth // 10},{tenth % 10}00 --> 00:00:0{tenth // 10},{tenth % 10}90\n"
        f"{' '.join(words[tenth::40])}\n"
        for tenth in range(40)
    ]
    (folder / "words.srt").write_text(
        "\n\n".join(f"{number}\n{cue}" for number, cue in enumerate(cues, 1))
    )
    picture = ("-f", "lavfi", "-i", "testsrc2=size=64x48:rate=10:duration=4")
    return run_ffmpeg(
        folder / "words.mp4", *picture, "-i", str(folder / "words.srt"), "-c:s", "mov_text"
    )


async def usual_time_s(portal: LivePortal, film: Path) -> float:
    """Publish a normal film, and return the seconds until it is ready."""
    begun = monotonic()
    video = await create(portal.base_url, film)
    assert await final_status(portal.base_url, video["id"]) == "ready"
    return monotonic() - begun


async def outcome_of(portal: LivePortal, video_id: str) -> Outcome:
    """Wait until a film is complete, and read its playlists and sound."""
    api = f"{portal.base_url}/api/videos/{video_id}"
    transcode: dict[str, Any] = {}

    async def is_complete() -> bool:
        transcode.update(await call("GET", f"{api}/transcode"))
        return transcode["stage"] in ("ready", "failed") and transcode["remaining"] is None

    await until(is_complete, timeout_s=60)
    record = await call("GET", api)
    nothing = Outcome(
        status=record["status"],
        duration_s=0,
        sound_s=None,
        size=(0, 0),
        sound=None,
        transcode=transcode,
    )
    if record["status"] != "ready":
        return nothing
    pictures = [rung for rung in transcode["renditions"] if rung["kind"] == "video"]
    sounds = [rung for rung in transcode["renditions"] if rung["kind"] == "audio"]
    top = max(pictures, key=lambda rendition: rendition["width"] * rendition["height"])
    picture_s, _ = await read_rendition(record["playbackUrl"], top["name"])
    sound_s = None
    sound = None
    if sounds:
        sound_s, data = await read_rendition(record["playbackUrl"], sounds[0]["name"])
        sound = await asyncio.to_thread(listen, data)
    return Outcome(
        status="ready",
        duration_s=picture_s,
        sound_s=sound_s,
        size=(top["width"], top["height"]),
        sound=sound,
        transcode=transcode,
    )


async def read_rendition(master_url: str, name: str) -> tuple[float, bytes]:
    """Return the length of a rendition by its playlist, and its init segment and segments."""
    async with aiohttp.ClientSession() as session:

        async def fetch(url: str) -> bytes:
            async with session.get(url) as answer:
                assert answer.status == 200, url
                return await answer.read()

        master = (await fetch(master_url)).decode()
        uris = re.findall(rf'(?:^|")([^"\n]*{media_playlist_name(name)})', master, re.MULTILINE)
        url = urljoin(master_url, uris[0])
        playlist = parse_media_playlist((await fetch(url)).decode())
        parts = [playlist.map_uri, *(segment.uri for segment in playlist.segments)]
        data = [await fetch(urljoin(url, part)) for part in parts if part]
    return playlist.duration_s, b"".join(data)


@dataclass(frozen=True, kw_only=True, slots=True)
class Published:
    """Odd files on a portal, by file name, and the normal films that waited for some of them."""

    portal: LivePortal
    video_ids: dict[str, str]
    usual_s: float
    late: dict[str, float]


@pytest.fixture(scope="module")
async def published(
    services: dict[str, str], short_video: Path, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Published]:
    """Publish all odd files while imports hang, with a normal film after every four of them."""
    folder = tmp_path_factory.mktemp("odd")
    hostile = [film_with_many_words(folder)]
    if CASES.is_dir():
        hostile += [CASES / name for name in EXPECTED]
    for kind in ("fuzzed_invalid", "corrupt_truncated"):
        files = sorted((CORPUS / kind).glob("*.m*"))
        hostile += [path for path in files if path.stat().st_size][:2]
    settings = {**SETTINGS, "WORK_DIR": str(folder / "work")}
    async with fresh_portal(services, worker=True, **settings) as portal, slow_server() as slow:
        usual_s = await usual_time_s(portal, short_video)
        imports = [
            await call(
                "POST",
                f"{portal.base_url}/api/imports",
                status=202,
                json={"url": f"{slow}/{number}.mp4", "title": "Slow", "categoryIds": [1]},
            )
            for number in range(SLOW_IMPORTS)
        ]
        video_ids: dict[str, str] = {}
        late = {}
        for first in range(0, len(hostile), 4):
            films = hostile[first : first + 4]
            for film in films:
                video_ids[film.name] = (await create(portal.base_url, film))["id"]
            taken_s = await usual_time_s(portal, short_video)
            if taken_s > usual_s + DELAY_S:
                late[" and ".join(film.name for film in films)] = taken_s
        for video in imports:
            await call("DELETE", f"{portal.base_url}/api/videos/{video['id']}", status=202)
        yield Published(portal=portal, video_ids=video_ids, usual_s=usual_s, late=late)


SILENT = frozenset({"no_audio"})
EXPECTED = {
    "01-sound-ends-at-6s-film-150s.mp4": Expected(duration_s=150, sound_levels=(False, False)),
    "03-empty-sound-track.mp4": Expected(sound_levels=None, notes=frozenset({"sound_left_out"})),
    "05-apac-only.mp4": Expected(sound_levels=None, notes=frozenset({"apple_spatial_unsupported"})),
    "06-clap-240x180.mp4": Expected(size=(240, 180)),
    "06d-clap-240x180-square-in-the-middle-mpeg4.mp4": Expected(
        size=(240, 180), sound_levels=None, notes=SILENT
    ),
    "07-turns-upright-at-3s.mp4": Expected(
        duration_s=6, sound_levels=None, notes=frozenset({"no_audio", "size_changes_fitted"})
    ),
    "08b-apple-log-hevc.mov": Expected(
        duration_s=2, sound_levels=None, notes=frozenset({"no_audio", "log_unconverted"})
    ),
    "09-chapters-first-at-40ms.mp4": Expected(),
    "10-screen-vfr-gaps-of-60s.mp4": Expected(duration_s=130, sound_levels=None, notes=SILENT),
    "14-dolby-vision-profile-5.mov": Expected(
        duration_s=2, sound_levels=None, notes=frozenset({"no_audio", "dolby_vision_unconverted"})
    ),
    "15-sound-begins-at-3s.mp4": Expected(duration_s=8),
    "22-ambisonic-360.mov": Expected(notes=frozenset({"spatial_downmixed"})),
    "23o-4ch-all-unused.mov": Expected(duration_s=2, notes=frozenset({"channels_left_out"})),
    "23r-5.1-film-order-L-C-R-Ls-Rs-LFE.mov": Expected(
        duration_s=2, notes=frozenset({"surround_downmixed"})
    ),
    "24-four-mono-pcm-tracks.mov": Expected(),
    "29-progressive-then-interlaced.mp4": Expected(
        duration_s=6, sound_levels=None, notes=frozenset({"no_audio", "deinterlaced"})
    ),
    "30b-all-durations-unknown.mp4": Expected(),
    "30d-last-frame-lasts-14-hours.mp4": Expected(),
    "30g-same-without-edit-list.mp4": Expected(notes=frozenset({"frames_misplaced"})),
    "31-slides-every-5s.mp4": Expected(duration_s=60, sound_levels=None, notes=SILENT),
    "a1-drone-telemetry-subtitles.mp4": Expected(
        duration_s=6, notes=frozenset({"telemetry_left_out"})
    ),
    "a2d-two-views-both-enabled.mp4": Expected(
        duration_s=5, sound_levels=(True,), notes=frozenset({"other_picture_left_out"})
    ),
    "a3b-jpeg-track-first-both-default.mov": Expected(duration_s=6, sound_levels=(True,)),
    # The middle of the film is in the gap.
    "b1d-edit-list-gap-between.mp4": Expected(duration_s=7, sound_levels=(False,)),
    # The sound is two beeps before and after the middle of the film.
    "b1f-edit-list-freeze.mp4": Expected(duration_s=13, sound_levels=(False,)),
    "b1g-edit-list-zero-duration.mp4": Expected(duration_s=10, sound_levels=(False,)),
    "a4b-sar-1-100.mp4": Expected(sound_levels=None, notes=SILENT),
    "a6i-hlg-bt2020c.mov": Expected(
        duration_s=2, sound_levels=None, notes=frozenset({"no_audio", "hdr_converted"})
    ),
    "a10-chapters-timecode.mov": Expected(duration_s=6, sound_levels=None, notes=SILENT),
    "a12-out-of-phase.mp4": Expected(duration_s=4),
    "b2-chapters-beyond-the-end.mp4": Expected(duration_s=6, sound_levels=None, notes=SILENT),
    "c1-fragmented-screen-gap-of-33s.mp4": Expected(
        duration_s=38, size=(160, 90), sound_levels=(True,)
    ),
    "d1-anamorphic-only-in-stream.mp4": Expected(
        duration_s=5, size=(480, 360), sound_levels=None, notes=SILENT
    ),
}

# For each caption file the language it is sent for, and its first words once it is stored.
CAPTIONS = {
    "arrow-endash.srt": ("zh", "各位好，欢迎来到这里。"),  # noqa: RUF001
    "enc-cp1251-russian.srt": ("ru", "Здравствуйте, друзья."),
    "enc-gbk.srt": ("zh-Hans", "各位好，欢迎来到这里。"),  # noqa: RUF001
    "enc-shiftjis.srt": ("ja", "こんにちは、皆さん。"),
    "enc-utf8-one-bad-byte.srt": ("zh-Hant", "各位好，欢迎来到这頇\ufffd。"),  # noqa: RUF001
    "other.sbv": ("en", "First from YouTube's SubViewer."),
    "other.ttml": ("de", "First."),
    "text-an8.srt": ("fr", "This stands at the top,"),
    "text-arrow-in-text.srt": ("it", "In HTML a comment is &lt;!-- like this --&gt;"),
    "time-fullwidth-comma.srt": ("yue", "全角逗号。"),
    "time-negative.srt": ("pl", "Shifted below zero."),
    "time-no-ms.srt": ("pt", "No milliseconds."),
    "time-starts-at-1h.srt": ("es", "Exported from a timeline that starts at 01:00:00:00."),
    "time-zero-length-cue.srt": ("nl", "First."),
    "vtt-youtube-rolling.vtt": ("sv", "hello everybody and"),
}


# This is a single test, because the files would be published again in each test process.
@pytest.mark.soak
async def test_odd_files_keep_no_film_waiting_and_come_out_whole(published: Published) -> None:
    assert published.late == {}, f"a normal film takes {published.usual_s:.1f} s"
    for name, video_id in published.video_ids.items():
        status = await final_status(published.portal.base_url, video_id)
        assert status in ("ready", "failed"), name
    if CASES.is_dir():
        assert await wrong_outcomes(published) == {}


async def wrong_outcomes(published: Published) -> dict[str, dict[str, Any]]:
    """Return what is wrong with the cases and their captions, by file name."""
    wrong: dict[str, dict[str, Any]] = {}
    for name, expected in EXPECTED.items():
        outcome = await outcome_of(published.portal, published.video_ids[name])
        if differences := differing(outcome, expected):
            wrong[name] = differences
    chapters_id = published.video_ids["09-chapters-first-at-40ms.mp4"]
    api = f"{published.portal.base_url}/api/videos/{chapters_id}"
    for name, (language, words) in CAPTIONS.items():
        first = await stored_words(api, language, CASES / "captions" / name)
        if first != words:
            wrong[name] = {"words": first}
    return wrong


async def stored_words(api: str, language: str, file: Path) -> str:
    """Add captions to a film, and return the text of the first cue in its segments."""
    url = f"{api}/captions?language={language}"
    headers = {"Content-Type": "application/octet-stream"}
    await call("POST", url, status=201, data=file.read_bytes(), headers=headers)
    async with (
        aiohttp.ClientSession(headers={"Accept": "text/vtt"}) as session,
        session.get(f"{api}/captions/{language}") as answer,
    ):
        lines = (await answer.text()).splitlines()
    times = next(number for number, line in enumerate(lines) if "-->" in line)
    return lines[times + 1]


def differing(outcome: Outcome, expected: Expected) -> dict[str, Any]:
    """Return what differs from the expected result, by name; empty if nothing does."""
    transcode = outcome.transcode
    codes = {note["code"] for note in transcode["notes"]}
    if outcome.status != expected.status:
        return {"status": outcome.status, "failure": transcode["failure"]}
    differences: dict[str, Any] = {}
    if abs(outcome.duration_s - expected.duration_s) > TOLERANCE_S:
        differences["duration_s"] = outcome.duration_s
    if outcome.size != expected.size:
        differences["size"] = outcome.size
    if codes != expected.notes:
        differences["notes"] = codes
    levels = None
    if outcome.sound is not None and outcome.sound_s is not None:
        if abs(outcome.sound_s - expected.duration_s) > TOLERANCE_S:
            return {**differences, "sound_s": outcome.sound_s}
        middle_s = expected.duration_s / 2
        levels = tuple(
            outcome.sound.level(middle_s, middle_s + 0.5, channel) > LOUD
            for channel in range(len(outcome.sound.channels))
        )
    if levels != expected.sound_levels:
        differences["sound_levels"] = levels
    return differences
