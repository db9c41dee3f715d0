"""A pass of several runs gives the same renditions as one run over the whole film."""

import json
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import pytest
from decoded_media import Packet, packets
from media_recipes import IRREGULAR, MakeMedia, lavfi
from published import FolderSink, Result, ignore, joined, make_pass, playlist, probe
from running_portal import run_ffmpeg
from test_continued import B_FRAMES, ONE_RUNG, TICK_S, TWO_RUNGS, X264, Record, times_s

from portal.transcoding.encoding.continuation import (
    MadeRendition,
    Run,
    Starts,
    Whole,
    broken_joins,
)
from portal.transcoding.encoding.runs import make_run
from portal.transcoding.packaging.cmaf import inspect_segment, time_scale
from portal.transcoding.packaging.hls import INIT_NAME
from portal.transcoding.planning.ladder import Rung, plan_renditions

# Segments of the runs in the order in which they are made; the last one is another worker's.
CUTS = ((0, 2), (4, 7), (2, 4))
HEVC = ("-c:v", "libx265", "-preset", "ultrafast", "-tag:v", "hvc1", "-x265-params")
GROUPS = "log-level=error:open-gop=1:bframes=4:keyint={0}:min-keyint={0}:scenecut=0"
FLAGS = ("-flags", "+ilme+ildct")
TURNED = ("-noautorotate", "-display_rotation", "90")
# Size, rate and options.
SOURCES: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "ntsc": (ONE_RUNG, "30000/1001", (*HEVC, GROUPS.format(75))),
    "turned film": (ONE_RUNG, "24000/1001", (*HEVC, GROUPS.format(48))),
    "far apart": (ONE_RUNG, "30", (*HEVC, GROUPS.format(300))),
    "thinned out": (ONE_RUNG, "120", (*X264, "-g", "999")),
    "variable": (ONE_RUNG, "60", ("-vf", IRREGULAR, *X264, "-g", "999", "-fps_mode", "vfr")),
    "interlaced": (ONE_RUNG, "50", ("-vf", "interlace", *X264, *FLAGS)),
    # A frame is repeated where a part begins, once long after it is shown.
    "pauses": (
        "64x48",
        "10",
        ("-vf", "select='lt(mod(t,13),2.6)'", *X264, "-bf", "2", "-g", "999", "-fps_mode", "vfr"),
    ),
    "picture ends early": ("64x48", "10", ("-vf", "select='lt(t,5)'", *X264, "-bf", "2")),
    "beside a copy": (TWO_RUNGS, "25", (*B_FRAMES, "-b:v", "9M")),
}


class SharedRuns:
    """Runs of a pass whose middle is made by another worker."""

    def __init__(self, path: Path, sink: FolderSink, work_dir: Path, record: Record) -> None:
        self.path = path
        self.sink = sink
        self.work_dir = work_dir
        self.record = record
        self.open_cuts = list(CUTS)
        self.starts_s: Starts = None

    async def begin(self, starts_s: Starts) -> None:
        self.starts_s = starts_s
        assert starts_s is not None
        assert len(starts_s) == CUTS[1][1]

    async def next(self) -> Run | None:
        if not self.open_cuts:
            return None
        first, end = self.open_cuts.pop(0)
        run = Run(self.starts_s, first, end, self.origins() if first else {}, f"{first}-")
        if self.open_cuts:
            return run
        await self.help(run)
        return None

    async def help(self, run: Run) -> None:
        source = await probe(str(self.path))
        await make_run(
            str(self.path),
            source,
            plan_renditions(source),
            run,
            names=run.made.keys(),
            sink=self.sink,
            work_dir=self.work_dir,
            on_progress=ignore,
            on_made=self.record,
        )

    def origins(self) -> dict[str, MadeRendition]:
        return {
            name: MadeRendition(
                init=(self.sink.folder / name / INIT_NAME).read_bytes(),
                segments=(),
                origin_ticks=segments[0].facts.from_ticks,
            )
            for name, segments in self.record.made.items()
            if not name.startswith("audio")
        }

    async def done(self, run: Run, *, faults: int, network_faults: int) -> None:
        assert not faults

    async def whole(self) -> Whole:
        renditions = {
            name: MadeRendition(
                init=origin.init,
                segments=tuple(segment for _, segment in sorted(self.record.made[name].items())),
            )
            for name, origin in self.origins().items()
        }
        assert not list(broken_joins(renditions))
        return Whole(renditions=renditions)


@pytest.mark.parametrize(
    "kind",
    [
        kind if kind in ("ntsc", "pauses") else pytest.param(kind, marks=pytest.mark.slow)
        for kind in SOURCES
    ],
)
async def test_runs_that_are_made_apart_have_no_seam(
    kind: str, make_media: MakeMedia, tmp_path: Path
) -> None:
    size, rate, options = SOURCES[kind]
    turn = TURNED if kind.startswith("turned") else ()
    # Only times are compared, and a plain picture is quick to encode. 9 Mbit/s need a busy picture.
    picture = "testsrc2=" if "9M" in options else "color=teal:"
    inputs = lavfi(f"{picture}s={size}:r={rate}:d=27", "sine=f=440:d=27:r=48000")
    path = make_media(f"shared {kind}.mp4", *turn, *inputs, *options)
    whole = tmp_path / "whole"
    parts = tmp_path / "parts"
    undivided, shared = await made_both(path, whole, parts)
    for each in undivided.renditions:
        check_alike(whole, parts, each.name)
        assert each.copied or prefixes(parts, each.name) == {"", "2-", "4-"}
    assert shared.output.duration_s == pytest.approx(undivided.output.duration_s, abs=TICK_S)
    sounds = [packets(joined(folder, "audio"), "audio") for folder in (whole, parts)]
    assert [packet.data for packet in sounds[0]] == [packet.data for packet in sounds[1]]


@pytest.mark.slow
async def test_rate_and_quality_hold_where_runs_meet(make_media: MakeMedia, tmp_path: Path) -> None:
    # This picture takes all bits that the cap allows.
    hard = f"mandelbrot=s={TWO_RUNGS}:r=30:end_pts=900,noise=c0s=4:c0f=t,trim=duration=27"
    path = make_media("hard.mp4", *lavfi(hard), *HEVC, GROUPS.format(75))
    whole = tmp_path / "whole"
    parts = tmp_path / "parts"
    undivided, _ = await made_both(path, whole, parts)
    for rung in undivided.plan.video:
        renditions = [joined(folder, rung.name) for folder in (whole, parts)]
        assert most_in_buffer(packets(renditions[1]), rung) <= 1
        for at_s in (8, 16):
            scores = [vmaf(each, path, at_s, rung, tmp_path / "log") for each in renditions]
            assert scores[1] == pytest.approx(scores[0], abs=1)


def most_in_buffer(frames: Sequence[Packet], rung: Rung) -> float:
    """Return the most bits above the cap in any window of time, as a share of the buffer."""
    bits = most = 0.0
    for before, packet in pairwise((frames[0], *frames)):
        drained = float(packet.decoded_s - before.decoded_s) * rung.max_bitrate_bps
        bits = max(0.0, bits - drained) + 8 * len(packet.data)
        most = max(most, bits)
    return most / rung.buffer_bits


def vmaf(rendition: bytes, path: Path, at_s: float, rung: Rung, log: Path) -> float:
    """Return VMAF of the second before and the second after this time."""
    excerpt = f"setparams=range=tv,trim={at_s - 1}:{at_s + 1},setpts=PTS-STARTPTS"
    graph = (
        f"[0:v]{excerpt}[made];[1:v]{excerpt},scale={rung.width}:{rung.height}[given];"
        f"[made][given]libvmaf=log_fmt=json:log_path={log}"
    )
    file = log.with_name("rendition.mp4")
    file.write_bytes(rendition)
    inputs = ("-i", str(file), "-i", str(path))
    run_ffmpeg(Path("-"), *inputs, "-filter_complex", graph, "-f", "null")
    score: float = json.loads(log.read_text())["pooled_metrics"]["vmaf"]["mean"]
    return score


async def made_both(path: Path, whole: Path, parts: Path) -> tuple[Result, Result]:
    """Make a film in one run, and in the runs of `CUTS`, into these folders."""
    sink = FolderSink(parts)
    record = Record()
    undivided = await make_pass(path, sink=FolderSink(whole), work_dir=parts.parent)
    runs = SharedRuns(path, sink, parts.parent, record)
    shared = await make_pass(path, sink=sink, work_dir=parts.parent, runs=runs, on_made=record)
    return undivided, shared


def prefixes(folder: Path, name: str) -> set[str]:
    return {segment.uri[:-9] for segment in playlist(folder, name).segments}


def check_alike(whole: Path, parts: Path, name: str) -> None:
    """Check that frames and segments are the same, and that segments follow each other."""
    assert times_s(parts, name) == pytest.approx(times_s(whole, name), abs=TICK_S)
    shared = playlist(parts, name)
    assert shared.starts_s == pytest.approx(playlist(whole, name).starts_s, abs=TICK_S)
    scale = time_scale((parts / name / INIT_NAME).read_bytes())
    segments = [inspect_segment((parts / name / each.uri).read_bytes()) for each in shared.segments]
    assert all(segment.is_closed for segment in segments)
    gaps_s = [(b.from_ticks - a.until_ticks) / scale for a, b in pairwise(segments)]
    assert max(map(abs, gaps_s)) <= TICK_S
