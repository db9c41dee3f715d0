"""The same ladder made without the portal: by one hand-written ffmpeg, and as two peers do it.

The floor is what a person would write who knows the source: one decode, split, scaled, encoded.
PeerTube and MediaCMS are played after their documents, with their own encoder options but the
portal's sizes, quality, rate caps and preset, so that the flow alone makes the difference. They
get only what makes renditions: no upload, database, pictures or storage. MediaCMS packages with
Bento4's `mp4hls`, and does so again after every rendition; an ffmpeg that copies all finished
renditions into HLS stands in for it. Sources are under five minutes, so it cuts no chunks.
"""

import itertools
import resource
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import imageio_ffmpeg

from portal.transcoding.planning.ladder import PRESET, Rung
from portal.transcoding.probing.facts import Probe

# The priority the portal's worker gives it, so that all are disturbed alike.
NICE = 19

SEGMENT_S = 4
AUDIO_BPS = 128_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A source and the ladder to make of it, lowest rung first."""

    source: Path
    probe: Probe
    rungs: Sequence[Rung]

    @property
    def top(self) -> Rung:
        """The rung of the source's own size."""
        return self.rungs[-1]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a flow took, and a file or playlist of each rung. `ready_s` is until one plays."""

    ready_s: float
    full_s: float
    cpu_s: float
    renditions: Mapping[str, Path]


class _Steps:
    """Runs of ffmpeg one after the other, added up; `ready_s` is when the first plays."""

    def __init__(self) -> None:
        self.wall_s = self.cpu_s = 0.0
        self.ready_s: float | None = None

    def run(self, *arguments: str) -> None:
        before, started_at = _children_cpu_s(), time.monotonic()
        run_ffmpeg(*arguments)
        self.wall_s += time.monotonic() - started_at
        self.cpu_s += _children_cpu_s() - before

    def outcome(self, renditions: Mapping[str, Path]) -> Outcome:
        return Outcome(
            ready_s=self.ready_s or self.wall_s,
            full_s=self.wall_s,
            cpu_s=self.cpu_s,
            renditions=renditions,
        )


def run_ffmpeg(*arguments: str) -> None:
    """Run ffmpeg to its end; what it complains about is shown."""
    program = ("nice", "-n", str(NICE), imageio_ffmpeg.get_ffmpeg_exe())
    subprocess.run((*program, "-loglevel", "error", "-nostdin", "-y", *arguments), check=True)


def _children_cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def floor(task: Task, folder: Path) -> Outcome:
    """One process, one decode, every rung scaled from the source, sound once."""
    steps = _Steps()
    steps.run(
        *("-i", str(task.source), "-filter_complex", _split(task)),
        *itertools.chain.from_iterable(_floor_output(rung, folder) for rung in task.rungs),
        *(("-map", "0:a:0", *_audio(task), *_hls(folder / "audio")) if task.probe.audio else ()),
    )
    return steps.outcome({rung.name: folder / rung.name / "index.m3u8" for rung in task.rungs})


def peertube(task: Task, folder: Path) -> Outcome:
    """A file of the full size, HLS of that, then each lower rung from it in a process of its own.

    It takes a fitting source as it is ("quick transcode"), here whenever the portal copies. Every
    rendition carries its own sound.
    """
    steps = _Steps()
    full = folder / "full.mp4"
    if task.top.copied:
        steps.run("-i", str(task.source), *_tracks(task), "-c", "copy", *_fast_start(full))
    else:
        encoder = (*_peertube_video(task, task.top), *_audio(task))
        steps.run("-i", str(task.source), *_tracks(task), *encoder, *_fast_start(full))
    single_file = ("-hls_flags", "single_file")
    steps.run("-i", str(full), "-c", "copy", *_hls(folder / task.top.name, *single_file))
    steps.ready_s = steps.wall_s
    for rung in reversed(task.rungs[:-1]):
        encoder = (*_peertube_video(task, rung), *_audio(task))
        output = _hls(folder / rung.name, *single_file)
        steps.run("-i", str(full), *_tracks(task), *encoder, *output)
    return steps.outcome({rung.name: folder / rung.name / "index.m3u8" for rung in task.rungs})


def mediacms(task: Task, folder: Path) -> Outcome:
    """Each rung from the source in a process of its own, all packaged again after each."""
    steps = _Steps()
    finished: dict[str, Path] = {}
    for rung in task.rungs:
        made = folder / f"{rung.name}.mp4"
        encoder = (*_mediacms_video(rung), *_audio(task))
        steps.run("-i", str(task.source), *_tracks(task), *encoder, *_fast_start(made))
        finished[rung.name] = made
        steps.run(*_packaging(finished, folder / f"hls-{rung.name}"))
        steps.ready_s = steps.ready_s or steps.wall_s
    return steps.outcome(finished)


def _split(task: Task) -> str:
    pads = [f"[{rung.name}]" for rung in task.rungs]
    scales = (
        f"[source{pad[1:]}{_scale(rung)}{pad}" for rung, pad in zip(task.rungs, pads, strict=True)
    )
    sources = "".join(f"[source{pad[1:]}" for pad in pads)
    return ";".join((f"[0:v:0]split={len(pads)}{sources}", *scales))


def _scale(rung: Rung, flags: str = "bicubic") -> str:
    return f"scale={rung.width}:{rung.height}:flags={flags},setsar=1"


def _floor_output(rung: Rung, folder: Path) -> Iterator[str]:
    yield from ("-map", f"[{rung.name}]")
    yield from _x264(rung, buffer_s=rung.buffer_bits / rung.max_bitrate_bps)
    yield from ("-profile:v", "high", *_key_frames(), "-sc_threshold", "0")
    yield from _hls(folder / rung.name)


def _peertube_video(task: Task, rung: Rung) -> Iterator[str]:
    fps = round(rung.fps)
    if rung is not task.top:
        yield from ("-vf", f"scale={rung.width}:{rung.height}")
    yield from _x264(rung, buffer_s=2)
    yield from ("-b_strategy", "1", "-bf", "16", "-r", str(fps), "-g", str(2 * fps))


def _mediacms_video(rung: Rung) -> Iterator[str]:
    yield from ("-vf", _scale(rung, "lanczos"), "-profile:v", "main")
    yield from _x264(rung, buffer_s=1)
    yield from _key_frames()


def _x264(rung: Rung, *, buffer_s: float) -> Iterator[str]:
    """What all flows have in common; each has its own size of the decoder buffer."""
    yield from ("-c:v", "libx264", "-preset", PRESET, "-pix_fmt", "yuv420p")
    yield from ("-crf", str(rung.crf), "-maxrate", str(rung.max_bitrate_bps))
    yield from ("-bufsize", str(round(rung.max_bitrate_bps * buffer_s)))


def _key_frames() -> tuple[str, ...]:
    return ("-g", "600", "-force_key_frames", f"expr:gte(t,n_forced*{SEGMENT_S})")


def _tracks(task: Task) -> tuple[str, ...]:
    return ("-map", "0:v:0", *(("-map", "0:a:0") if task.probe.audio else ()))


def _audio(task: Task) -> tuple[str, ...]:
    if not task.probe.audio:
        return ()
    return ("-c:a", "aac", "-b:a", str(AUDIO_BPS), "-ac", "2", "-ar", "48000")


def _fast_start(path: Path) -> tuple[str, ...]:
    return ("-movflags", "+faststart", str(path))


def _packaging(finished: Mapping[str, Path], folder: Path) -> Iterator[str]:
    for path in finished.values():
        yield from ("-i", str(path))
    for number, name in enumerate(finished):
        yield from ("-map", str(number), "-c", "copy", *_hls(folder / name))


def _hls(folder: Path, *options: str) -> tuple[str, ...]:
    folder.mkdir(parents=True)
    return (
        *("-f", "hls", "-hls_time", str(SEGMENT_S), "-hls_list_size", "0"),
        *("-hls_playlist_type", "vod", "-hls_segment_type", "fmp4", *options),
        str(folder / "index.m3u8"),
    )
