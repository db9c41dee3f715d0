"""What the benchmarks of encoding share: running ffmpeg with a stopwatch, VMAF, a made clip."""

import itertools
import json
import os
import resource
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import imageio_ffmpeg

# Every so many frames are scored; all of them are decoded, so that motion is seen as it is.
VMAF_EVERY_FRAMES = 4
# ffmpeg runs at the priority the portal's worker gives it, so that all are disturbed alike.
NICE = 19
VMAF_MODEL = "vmaf_v0.6.1"
# Between a tagged and an untagged picture ffmpeg would convert colours before comparing them.
_UNTAGGED = "setparams=colorspace=unknown:color_primaries=unknown:color_trc=unknown:range=unknown"


@dataclass(frozen=True, slots=True)
class Cost:
    """What a run took: by the clock, and of the processor in user and system mode together."""

    wall_s: float
    cpu_s: float


@dataclass(frozen=True, slots=True)
class Scores:
    """VMAF, 0 to 100: on a television, and on a phone."""

    screen: float
    phone: float


def vmaf(
    distorted: Path,
    reference: Path,
    *,
    size: tuple[int, int],
    seconds: float | None = None,
) -> Scores:
    """Score a video against what it was made from, both brought to `size` first."""
    width, height = size
    same = f"{_UNTAGGED},scale={width}:{height}:flags=bicubic,format=yuv420p,setpts=PTS-STARTPTS"
    graph = f"[0:v]{same}[made];[1:v]{same}[given];"
    models = "|".join(
        f"version={VMAF_MODEL}\\:name={name}{more}"
        for name, more in (("screen", ""), ("phone", "\\:enable_transform=true"))
    )
    excerpt = ("-t", f"{seconds:.3f}") if seconds else ()
    with tempfile.TemporaryDirectory() as folder:
        measure = f"libvmaf=model='{models}':n_threads={os.cpu_count()}"
        measure += f":n_subsample={VMAF_EVERY_FRAMES}:log_fmt=json:log_path=vmaf.json"
        run_ffmpeg(
            (
                *(*excerpt, "-i", str(distorted), *excerpt, "-i", str(reference)),
                *("-filter_complex", f"{graph}[made][given]{measure}"),
                *("-f", "null", "-"),
            ),
            cwd=Path(folder),
        )
        pooled = json.loads((Path(folder) / "vmaf.json").read_text())["pooled_metrics"]
    return Scores(screen=pooled["screen"]["mean"], phone=pooled["phone"]["mean"])


def make_clip(path: Path, *, seconds: float, encoder: Sequence[str] = ()) -> Path:
    """1080p30 with sound: a pan over cloudy texture, a zoom into a fractal, shapes; all grainy."""
    encoder = encoder or ("-crf", "20", "-g", "60")
    run_ffmpeg(
        (
            *("-f", "lavfi", "-i", "sine=frequency=300:sample_rate=48000:beep_factor=3"),
            *("-filter_complex", ";".join(_scenes(seconds / 3)), "-map", "[video]", "-map", "0:a"),
            *("-t", str(seconds), "-c:v", "libx264", "-preset", "veryfast", *encoder),
            *("-c:a", "aac", "-b:a", "128k", str(path)),
        )
    )
    return path


def _scenes(seconds: float) -> Iterator[str]:
    finish = f"trim=duration={seconds},format=yuv420p,noise=c0s=5:c0f=t,setsar=1"
    clouds = "perlin=random_mode=seed:octaves=9:persistence=0.7:xscale=6:yscale=4:random_seed"
    yield f"{clouds}=1:size=2880x1620,format=gray[luma]"
    yield f"{clouds}=2:size=1440x810,format=gray[blue]"
    yield f"{clouds}=3:size=1440x810,format=gray[red]"
    yield (
        "[luma][blue][red]mergeplanes=0x001020:yuv420p,trim=end_frame=1,loop=-1:size=1,fps=30,"
        "crop=1920:1080:'(in_w-out_w)/2*(1+sin(t*0.9))':'(in_h-out_h)/2*(1+cos(t*0.7))',"
        f"{finish}[pan]"
    )
    yield f"mandelbrot=size=1920x1080:rate=30:maxiter=300:end_pts=1500,{finish}[zoom]"
    yield f"testsrc2=size=1920x1080:rate=30,boxblur=2,{finish}[shapes]"
    yield "[pan][zoom][shapes]concat=n=3[video]"


def run_ffmpeg(arguments: Sequence[str], *, cwd: Path | None = None) -> Cost:
    """Run ffmpeg to its end and say what it took; what it complains about is shown."""
    before, started_at = _children_cpu_s(), time.monotonic()
    program = ("nice", "-n", str(NICE), imageio_ffmpeg.get_ffmpeg_exe())
    subprocess.run(
        (*program, "-loglevel", "error", "-nostdin", "-y", *_quietly(arguments)),
        check=True,
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
    )
    return Cost(wall_s=time.monotonic() - started_at, cpu_s=_children_cpu_s() - before)


def _quietly(arguments: Sequence[str]) -> Iterator[str]:
    """Without the portal's own log level, which tells more than errors."""
    for before, argument in itertools.pairwise(("", *arguments)):
        if before == "-loglevel":
            yield "error"
        else:
            yield argument


def _children_cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
