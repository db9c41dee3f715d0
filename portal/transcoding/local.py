"""Transcode a source on this machine: probe, plan, one ffmpeg, ship, check, publish the master.

The source is read where it lies, by range requests; it is never downloaded as a whole. Segments
leave for the sink while the encode runs. The master playlist is put last, after a check, so that
its presence means the output is complete. Not here: when to retry, and what to tell the record.
"""

import asyncio
import shutil
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from fractions import Fraction
from pathlib import Path

from portal.transcoding import command, ffmpeg
from portal.transcoding.hls import (
    AudioRendition,
    MediaPlaylist,
    Variant,
    avc_codec,
    bandwidths_bps,
    master_playlist,
    parse_media_playlist,
)
from portal.transcoding.ladder import AudioRung, Rung, plan_audio, plan_ladder
from portal.transcoding.probe import Probe, probe
from portal.transcoding.process import first_error
from portal.transcoding.selfcheck import check_output
from portal.transcoding.shipping import Shipment, Sink

MASTER_NAME = "master.m3u8"
POSTER_NAME = "poster.jpg"

_PROBED_PERCENT = 1.0
_TRANSCODED_PERCENT = 97.0
_ESTIMATE_AFTER_S = 3.0


class Stage(StrEnum):
    """What a transcode is doing, for people watching."""

    PROBING = "probing"
    TRANSCODING = "transcoding"
    FINISHING = "finishing"


# Stage, percent (0 to 100, never falling), seconds left or None while that is unknown.
OnProgress = Callable[[Stage, float, float | None], Awaitable[None]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Rendition:
    """One video rendition as it was written; the bandwidths are without the audio."""

    name: str
    width: int
    height: int
    fps: Fraction
    codecs: str
    bandwidth_bps: int
    average_bandwidth_bps: int
    size_bytes: int
    segment_count: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Output:
    """What was written. Names are the sink's; `size_bytes` is everything, audio included.

    `width` and `height` are the source's display size, `duration_s` what was really written.
    `renditions` are lowest first.
    """

    duration_s: float
    width: int
    height: int
    renditions: tuple[Rendition, ...]
    has_audio: bool
    size_bytes: int
    poster_name: str | None
    master_name: str


@dataclass(slots=True)
class _Report:
    """Turns ffmpeg's position into a percentage that never falls and an honest estimate."""

    on_progress: OnProgress
    duration_s: float = 0.0
    percent: float = 0.0
    started_at: float = field(default_factory=time.monotonic)

    async def stage(self, stage: Stage, percent: float) -> None:
        self.percent = max(self.percent, percent)
        await self.on_progress(stage, self.percent, None)

    def start(self, duration_s: float) -> None:
        self.duration_s, self.started_at = duration_s, time.monotonic()

    async def encoded(self, progress: ffmpeg.Progress) -> None:
        share = min(1.0, progress.out_time_s / self.duration_s)
        span = _TRANSCODED_PERCENT - _PROBED_PERCENT
        self.percent = max(self.percent, _PROBED_PERCENT + share * span)
        await self.on_progress(Stage.TRANSCODING, self.percent, self._seconds_left(share))

    def _seconds_left(self, share: float) -> float | None:
        elapsed_s = time.monotonic() - self.started_at
        if elapsed_s < _ESTIMATE_AFTER_S or share <= 0:
            return None
        return elapsed_s / share * (1 - share)


async def transcode(
    source_url: str, *, sink: Sink, work_dir: Path, on_progress: OnProgress
) -> Output:
    """Turn a source into adaptive HLS in `sink`; `work_dir` is empty again afterwards.

    Raises SourceRejected, TranscodeFailed, or whatever the sink raised. However it ends, no
    process is left running.
    """
    report = _Report(on_progress)
    async with _emptied(work_dir):
        await report.stage(Stage.PROBING, 0.0)
        job = _plan(source_url, await probe(source_url), work_dir)
        folders = command.rendition_dirs(job)
        await asyncio.to_thread(_make_folders, folders)
        shipment = Shipment(sink=sink, folders=folders)
        await report.stage(Stage.TRANSCODING, _PROBED_PERCENT)
        await _encode(job, shipment, report)
        await report.stage(Stage.FINISHING, _TRANSCODED_PERCENT)
        output = await _finish(job, shipment, folders)
        await report.stage(Stage.FINISHING, 100.0)
        return output


def _plan(source_url: str, found: Probe, work_dir: Path) -> command.Job:
    return command.Job(
        source_url=source_url,
        probe=found,
        rungs=plan_ladder(found),
        audio=plan_audio(found),
        work_dir=work_dir,
    )


async def _encode(job: command.Job, shipment: Shipment, report: _Report) -> None:
    """Run ffmpeg and the shipping of its segments; when one fails the other is stopped."""
    report.start(job.probe.duration_s)
    try:
        async with asyncio.TaskGroup() as tasks:
            encoding = tasks.create_task(
                ffmpeg.run(
                    command.transcode_arguments(job),
                    on_progress=report.encoded,
                    timeout_s=ffmpeg.run_limit_s(job.probe.duration_s),
                    brake=shipment.brake,
                    cwd=job.work_dir,
                )
            )
            tasks.create_task(shipment.follow(encoding))
    except BaseExceptionGroup as group:
        raise first_error(group) from None


async def _finish(job: command.Job, shipment: Shipment, folders: Mapping[str, Path]) -> Output:
    """Check what ffmpeg made and put the files that make it playable, the master last."""
    texts = await asyncio.to_thread(_read_playlists, folders)
    playlists = {name: parse_media_playlist(text) for name, text in texts.items()}
    inits = {name: await asyncio.to_thread(_read_init, folders[name]) for name in folders}
    for name, init in inits.items():
        await shipment.put(f"{name}/{command.INIT_NAME}", init)
    check_output(
        playlists,
        sizes_bytes=shipment.sizes_bytes,
        video_names=tuple(rung.name for rung in job.rungs),
        probe=job.probe,
    )
    renditions = tuple(
        _rendition(rung, playlists[rung.name], shipment.sizes_bytes, inits[rung.name])
        for rung in job.rungs
    )
    for name, text in texts.items():
        await shipment.put(_playlist_uri(name), text.encode())
    poster_name = await _put_poster(job, shipment)
    master = _master(renditions, job.audio, playlists, shipment.sizes_bytes)
    await shipment.put(MASTER_NAME, master.encode())
    return Output(
        duration_s=max(playlist.duration_s for playlist in playlists.values()),
        width=job.probe.video.width,
        height=job.probe.video.height,
        renditions=renditions,
        has_audio=job.audio is not None,
        size_bytes=sum(shipment.sizes_bytes.values()),
        poster_name=poster_name,
        master_name=MASTER_NAME,
    )


def _rendition(
    rung: Rung, playlist: MediaPlaylist, sizes_bytes: Mapping[str, int], init: bytes
) -> Rendition:
    peak_bps, average_bps = _bandwidths_bps(rung.name, playlist, sizes_bytes)
    stored = [size for name, size in sizes_bytes.items() if name.startswith(f"{rung.name}/")]
    return Rendition(
        name=rung.name,
        width=rung.width,
        height=rung.height,
        fps=rung.fps,
        codecs=avc_codec(init),
        bandwidth_bps=peak_bps,
        average_bandwidth_bps=average_bps,
        size_bytes=sum(stored),
        segment_count=len(playlist.segments),
    )


def _bandwidths_bps(
    name: str, playlist: MediaPlaylist, sizes_bytes: Mapping[str, int]
) -> tuple[int, int]:
    return bandwidths_bps(
        playlist.segments,
        sizes_bytes=[sizes_bytes[f"{name}/{segment.uri}"] for segment in playlist.segments],
        target_duration_s=playlist.target_duration_s,
    )


def _master(
    renditions: tuple[Rendition, ...],
    audio: AudioRung | None,
    playlists: Mapping[str, MediaPlaylist],
    sizes_bytes: Mapping[str, int],
) -> str:
    variants = [
        Variant(
            uri=_playlist_uri(rendition.name),
            width=rendition.width,
            height=rendition.height,
            fps=rendition.fps,
            codecs=rendition.codecs,
            bandwidth_bps=rendition.bandwidth_bps,
            average_bandwidth_bps=rendition.average_bandwidth_bps,
        )
        for rendition in renditions
    ]
    if audio is None:
        return master_playlist(variants, audio=None)
    peak_bps, average_bps = _bandwidths_bps(audio.name, playlists[audio.name], sizes_bytes)
    shared = AudioRendition(
        uri=_playlist_uri(audio.name),
        channels=audio.channels,
        bandwidth_bps=peak_bps,
        average_bandwidth_bps=average_bps,
    )
    return master_playlist(variants, audio=shared)


async def _put_poster(job: command.Job, shipment: Shipment) -> str | None:
    """Put the candidate with most detail: black and blurred pictures make small files."""
    sizes_bytes = await asyncio.to_thread(_poster_sizes_bytes, job.work_dir)
    if not sizes_bytes:
        return None
    await shipment.put(POSTER_NAME, max(sizes_bytes, key=lambda path: sizes_bytes[path]))
    return POSTER_NAME


def _poster_sizes_bytes(work_dir: Path) -> dict[Path, int]:
    candidates = work_dir.glob(command.POSTER_PATTERN.replace("%d", "*"))
    return {path: path.stat().st_size for path in sorted(candidates)}


def _playlist_uri(rendition_name: str) -> str:
    return f"{rendition_name}/{command.PLAYLIST_NAME}"


def _read_playlists(folders: Mapping[str, Path]) -> dict[str, str]:
    return {name: (folder / command.PLAYLIST_NAME).read_text() for name, folder in folders.items()}


def _read_init(folder: Path) -> bytes:
    return (folder / command.INIT_NAME).read_bytes()


def _make_folders(folders: Mapping[str, Path]) -> None:
    for folder in folders.values():
        folder.mkdir(parents=True, exist_ok=True)


@asynccontextmanager
async def _emptied(work_dir: Path) -> AsyncIterator[None]:
    """Leave nothing behind in `work_dir`, and start with nothing of an earlier attempt's."""
    await asyncio.to_thread(_empty, work_dir)
    try:
        yield
    finally:
        # Not in a thread: a cancelled await would leave files behind, and few are left by now.
        _empty(work_dir)


def _empty(work_dir: Path) -> None:
    work_dir.mkdir(parents=True, exist_ok=True)
    for entry in work_dir.iterdir():
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry, ignore_errors=True)
        else:
            entry.unlink(missing_ok=True)
