"""The same ladder made without the portal: by one hand-written ffmpeg, and as two peers do it.

The floor is a command for this very source: one decode, split, scaled, encoded. PeerTube and
MediaCMS are imitated from their documents, with their own encoder options but the portal's sizes,
quality, rate caps and preset, so that only the flow differs. They only make renditions: no upload,
database, pictures or storage. MediaCMS packages with Bento4's `mp4hls` again after every
rendition; here an ffmpeg copies all finished renditions into HLS instead. Sources are under five
minutes, so that MediaCMS cuts no chunks.
"""

import resource
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import imageio_ffmpeg

from portal.transcoding.planning.ladder import CRF, PRESET, Rung
from portal.transcoding.probing.facts import Probe

# Priority of the portal's ffmpeg, so that all flows are disturbed alike.
NICE = 19

SEGMENT_S = 4
AUDIO_BPS = 128_000
KEY_FRAMES = ("-g", "600", "-force_key_frames", f"expr:gte(t,n_forced*{SEGMENT_S})")


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
    """Times of a flow, and a file or playlist of each rung; `ready_s` is until one plays."""

    ready_s: float
    full_s: float
    cpu_s: float
    renditions: Mapping[str, Path]


class _Steps:
    """Sums of consecutive runs of ffmpeg; `ready_s` is the time until the first rendition plays."""

    def __init__(self, task: Task) -> None:
        self.task = task
        self.wall_s = self.cpu_s = self.ready_s = 0.0

    def run(self, *arguments: str) -> None:
        before = _children_cpu_s()
        started_at = time.monotonic()
        run_ffmpeg(*arguments)
        self.wall_s += time.monotonic() - started_at
        self.cpu_s += _children_cpu_s() - before

    def encode(self, source: Path, rung: Rung, video: Sequence[str], output: Sequence[str]) -> None:
        """Make one rendition with its sound from a file."""
        tracks = ("-map", "0:v:0", *(("-map", "0:a:0") if self.task.probe.audio else ()))
        encoder = ("-c:v", "libx264", *_rate(rung), *video, *_audio(self.task))
        self.run("-i", str(source), *tracks, *encoder, *output)

    def outcome(self, renditions: Mapping[str, Path]) -> Outcome:
        return Outcome(
            ready_s=self.ready_s or self.wall_s,
            full_s=self.wall_s,
            cpu_s=self.cpu_s,
            renditions=renditions,
        )


def run_ffmpeg(*arguments: str) -> None:
    """Run ffmpeg until it ends, showing its errors."""
    program = ("nice", "-n", str(NICE), imageio_ffmpeg.get_ffmpeg_exe())
    subprocess.run((*program, "-loglevel", "error", "-nostdin", "-y", *arguments), check=True)


def _children_cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def floor(task: Task, folder: Path) -> Outcome:
    """Make all rungs in one process with one decode, and the sound once."""
    steps = _Steps(task)
    inputs = "".join(f"[in{rung.name}]" for rung in task.rungs)
    scales = (f";[in{rung.name}]{_scale(rung)}[{rung.name}]" for rung in task.rungs)
    outputs: list[str] = []
    for rung in task.rungs:
        outputs += ["-map", f"[{rung.name}]", "-c:v", "libx264", *_rate(rung), *KEY_FRAMES]
        outputs += ["-profile:v", "high", "-sc_threshold", "0", *_hls(folder / rung.name)]
    if task.probe.audio:
        outputs += ["-map", "0:a:0", *_audio(task), *_hls(folder / "audio")]
    graph = f"[0:v:0]split={len(task.rungs)}{inputs}{''.join(scales)}"
    steps.run("-i", str(task.source), "-filter_complex", graph, *outputs)
    return steps.outcome({rung.name: folder / rung.name / "index.m3u8" for rung in task.rungs})


def peertube(task: Task, folder: Path) -> Outcome:
    """Make a file of the full size, HLS of it, then each lower rung from it in a separate process.

    A suitable source is copied ("quick transcode"), here whenever the portal copies. Every
    rendition has its own sound.
    """
    steps = _Steps(task)
    full = folder / "full.mp4"
    if task.top.copied:
        steps.run(
            "-i", str(task.source), "-map", "0:v:0", "-map", "0:a:0?", "-c", "copy", str(full)
        )
    else:
        steps.encode(task.source, task.top, _peertube(task.top), [str(full)])
    single_file = ("-hls_flags", "single_file")
    steps.run("-i", str(full), "-c", "copy", *_hls(folder / task.top.name, *single_file))
    steps.ready_s = steps.wall_s
    for rung in reversed(task.rungs[:-1]):
        video = ("-vf", f"scale={rung.width}:{rung.height}", *_peertube(rung))
        steps.encode(full, rung, video, _hls(folder / rung.name, *single_file))
    return steps.outcome({rung.name: folder / rung.name / "index.m3u8" for rung in task.rungs})


def mediacms(task: Task, folder: Path) -> Outcome:
    """Make each rung from the source in a separate process, and package all again after each."""
    steps = _Steps(task)
    finished: dict[str, Path] = {}
    for rung in task.rungs:
        finished[rung.name] = folder / f"{rung.name}.mp4"
        video = ("-vf", _scale(rung, "lanczos"), "-profile:v", "main", *KEY_FRAMES)
        steps.encode(task.source, rung, video, [str(finished[rung.name])])
        inputs: list[str] = []
        outputs: list[str] = []
        for number, (name, path) in enumerate(finished.items()):
            inputs += ["-i", str(path)]
            place = folder / f"hls-{rung.name}" / name
            outputs += ["-map", str(number), "-c", "copy", *_hls(place)]
        steps.run(*inputs, *outputs)
        steps.ready_s = steps.ready_s or steps.wall_s
    return steps.outcome(finished)


def _scale(rung: Rung, flags: str = "bicubic") -> str:
    return f"scale={rung.width}:{rung.height}:flags={flags},setsar=1"


def _peertube(rung: Rung) -> tuple[str, ...]:
    fps = round(rung.fps)
    return ("-b_strategy", "1", "-bf", "16", "-r", str(fps), "-g", str(2 * fps))


def _rate(rung: Rung) -> tuple[str, ...]:
    """Return the options that all flows share."""
    quality = ("-preset", PRESET, "-pix_fmt", "yuv420p", "-bf", "0", "-crf", str(CRF))
    return (*quality, "-maxrate", str(rung.max_bitrate_bps), "-bufsize", str(rung.buffer_bits))


def _audio(task: Task) -> tuple[str, ...]:
    if not task.probe.audio:
        return ()
    return ("-c:a", "aac", "-b:a", str(AUDIO_BPS), "-ac", "2", "-ar", "48000")


def _hls(folder: Path, *options: str) -> tuple[str, ...]:
    folder.mkdir(parents=True)
    return (
        *("-f", "hls", "-hls_time", str(SEGMENT_S), "-hls_list_size", "0"),
        *("-hls_playlist_type", "vod", "-hls_segment_type", "fmp4", *options),
        str(folder / "index.m3u8"),
    )
