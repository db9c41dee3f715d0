"""Plays a published video from storage, as far as a program can: every name, every duration, and
the lowest rendition decoded from beginning to end (RFC 8216)."""

import posixpath
import re
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import imageio_ffmpeg
from command_line import run_program
from published_checks import entries, variants

DECODE_TIMEOUT_S = 120.0
# A last frame, encoder delay, and what a half-second audio frame more or less adds.
DURATION_SLACK_S = 1.0

NAMED = re.compile(r'^#EXT-X-(?:MEDIA|I-FRAME-STREAM-INF|MAP):.*?URI="([^"]+)"', re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Bucket:
    """The bucket, and what it held when it was listed."""

    client: Any
    name: str
    keys: Collection[str]
    unfinished_uploads: Collection[str]

    async def read(self, key: str) -> bytes:
        answer = await self.client.get_object(Bucket=self.name, Key=key)
        async with answer["Body"] as body:
            content: bytes = await body.read()
        return content


async def check_playback(
    bucket: Bucket, master: str, *, names: Collection[str], duration_s: float | None
) -> list[str]:
    """What is wrong with a video whose complete renditions are `names`."""
    if master not in bucket.keys:
        return [f"{master} is missing"]
    text = (await bucket.read(master)).decode()
    playlists = {_resolve(master, uri) for uri in (*variants(text), *NAMED.findall(text))}
    told = {posixpath.basename(posixpath.dirname(key)) for key in playlists}
    problems = [f"{name} is complete, and not played" for name in sorted(set(names) - told)]
    problems += [f"{name} is played, and not complete" for name in sorted(told - set(names))]
    for playlist in sorted(playlists):
        problems += await _check_playlist(bucket, playlist, duration_s)
    if not problems:
        lowest = min((_resolve(master, uri) for uri in variants(text)), key=_height)
        problems += await _check_decoding(bucket, lowest, duration_s)
    return problems


async def _check_playlist(bucket: Bucket, key: str, duration_s: float | None) -> list[str]:
    if key not in bucket.keys:
        return [f"{key} is named, and missing"]
    text = (await bucket.read(key)).decode()
    named = set(_uris(text))
    problems = [
        f"{key} names {uri}, which is missing"
        for uri in sorted(named)
        if _resolve(key, uri) not in bucket.keys
    ]
    if "#EXT-X-ENDLIST" not in text:
        problems.append(f"{key} has no end")
    is_whole = duration_s is None or abs(_length_s(text) - duration_s) <= DURATION_SLACK_S
    if key.endswith("/playlist.m3u8") and "/sub" not in key and not is_whole:
        problems.append(f"{key} lasts {_length_s(text):.1f} s, not {duration_s:.1f} s")
    return problems


async def _check_decoding(bucket: Bucket, playlist: str, duration_s: float | None) -> list[str]:
    text = (await bucket.read(playlist)).decode()
    parts = [await bucket.read(_resolve(playlist, uri)) for uri in dict.fromkeys(_uris(text))]
    with TemporaryDirectory() as folder:
        file = Path(folder) / "whole.mp4"
        file.write_bytes(b"".join(parts))
        said, decoded_s = await _decode(file)
    if said:
        return [f"{playlist} does not decode: {said[-300:]}"]
    if duration_s is not None and abs(decoded_s - duration_s) > DURATION_SLACK_S:
        return [f"{playlist} decodes to {decoded_s:.1f} s, not {duration_s:.1f} s"]
    return []


async def _decode(file: Path) -> tuple[str, float]:
    """What ffmpeg complains about, and the seconds it decoded."""
    _, progress, said = await run_program(
        *(imageio_ffmpeg.get_ffmpeg_exe(), "-nostdin", "-v", "error", "-xerror"),
        *("-progress", "pipe:1", "-i", str(file), "-f", "null", "-"),
        timeout_s=DECODE_TIMEOUT_S,
    )
    times = re.findall(r"out_time_us=(\d+)", progress)
    return said.strip(), int(times[-1]) / 1e6 if times else 0.0


def _uris(text: str) -> list[str]:
    """What a media playlist names, the initialization segment first."""
    return [*NAMED.findall(text), *(uri for _, uri in entries(text))]


def _length_s(text: str) -> float:
    return sum(duration_s for duration_s, _ in entries(text))


def _resolve(base: str, uri: str) -> str:
    return posixpath.normpath(posixpath.join(posixpath.dirname(base), uri))


def _height(playlist: str) -> int:
    found = re.search(r"/(\d+)p[^/]*/[^/]+$", playlist)
    return int(found[1]) if found else 0
