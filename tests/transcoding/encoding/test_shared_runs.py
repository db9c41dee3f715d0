"""A pass that is made in several runs at once: as one run over the whole film."""

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

# In this order: 2 is made before 1, by who began with 0; 1 by a helper.
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
    """Lends out the middle of a pass, and makes the other runs."""

    def __init__(self, path: Path, sink: FolderSink, work_dir: Path, record: Record) -> None:
        self.path, self.sink, self.work_dir, self.record = path, sink, work_dir, record
        self.left = list(CUTS)
        self.starts_s: Starts = None

    async def begin(self, starts_s: Starts) -> None:
        self.starts_s = starts_s
        assert starts_s is not None
        assert len(starts_s) == CUTS[1][1]

    async def next(self) -> Run | None:
        if not self.left:
            return None
        first, end = self.left.pop(0)
        run = Run(self.starts_s, first, end, self.origins() if first else {}, f"{first}-")
        if self.left:
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
                origin_ticks=made[0].facts.from_ticks,
            )
            for name, made in self.record.made.items()
            if not name.startswith("audio")
        }

    async def done(self, run: Run, *, faults: int, network_faults: int) -> None:
        assert not faults

    async def whole(self) -> Whole:
        made = {
            name: MadeRendition(
                init=origin.init,
                segments=tuple(self.record.made[name][it] for it in sorted(self.record.made[name])),
            )
            for name, origin in self.origins().items()
        }
        assert not list(broken_joins(made))
        return Whole(renditions=made)


@pytest.mark.parametrize(
    "kind",
    [
        it if it in ("ntsc", "pauses") else pytest.param(it, marks=pytest.mark.slow)
        for it in SOURCES
    ],
)
async def test_runs_that_are_made_apart_have_no_seam(
    kind: str, make_media: MakeMedia, tmp_path: Path
) -> None:
    size, rate, options = SOURCES[kind]
    turn = TURNED if kind.startswith("turned") else ()
    # Only times are compared, and a plain picture is quick to encode. The one of 9 Mbit/s is busy.
    picture = "testsrc2=" if "9M" in options else "color=teal:"
    inputs = lavfi(f"{picture}s={size}:r={rate}:d=27", "sine=f=440:d=27:r=48000")
    path = make_media(f"shared {kind}.mp4", *turn, *inputs, *options)
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    undivided, shared = await made_both(path, whole, parts)
    for each in undivided.renditions:
        check_alike(whole, parts, each.name)
        assert each.copied or prefixes(parts, each.name) == {"", "2-", "4-"}
    assert shared.output.duration_s == pytest.approx(undivided.output.duration_s, abs=TICK_S)
    sounds = [packets(joined(it, "audio"), "audio") for it in (whole, parts)]
    assert [it.data for it in sounds[0]] == [it.data for it in sounds[1]]


@pytest.mark.slow
async def test_rate_and_quality_hold_where_runs_meet(make_media: MakeMedia, tmp_path: Path) -> None:
    # It takes all that the cap allows.
    hard = f"mandelbrot=s={TWO_RUNGS}:r=30:end_pts=900,noise=c0s=4:c0f=t,trim=duration=27"
    path = make_media("hard.mp4", *lavfi(hard), *HEVC, GROUPS.format(75))
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    undivided, _ = await made_both(path, whole, parts)
    for rung in undivided.plan.video:
        made = [joined(folder, rung.name) for folder in (whole, parts)]
        assert most_in_buffer(packets(made[1]), rung) <= 1
        for at_s in (8, 16):
            one, other = (vmaf(it, path, at_s, rung, tmp_path / "log") for it in made)
            assert other == pytest.approx(one, abs=1)


def most_in_buffer(made: Sequence[Packet], rung: Rung) -> float:
    """What any window of time takes at most above the cap, as a share of the decoder's buffer."""
    bits = most = 0.0
    for before, packet in pairwise((made[0], *made)):
        drained = float(packet.decoded_s - before.decoded_s) * rung.max_bitrate_bps
        bits = max(0.0, bits - drained) + 8 * len(packet.data)
        most = max(most, bits)
    return most / rung.buffer_bits


def vmaf(made: bytes, path: Path, at_s: float, rung: Rung, log: Path) -> float:
    """Of the second before and the one after this time."""
    excerpt = f"setparams=range=tv,trim={at_s - 1}:{at_s + 1},setpts=PTS-STARTPTS"
    graph = (
        f"[0:v]{excerpt}[made];[1:v]{excerpt},scale={rung.width}:{rung.height}[given];"
        f"[made][given]libvmaf=log_fmt=json:log_path={log}"
    )
    rendition = log.with_name("rendition.mp4")
    rendition.write_bytes(made)
    inputs = ("-i", str(rendition), "-i", str(path))
    run_ffmpeg(Path("-"), *inputs, "-filter_complex", graph, "-f", "null")
    score: float = json.loads(log.read_text())["pooled_metrics"]["vmaf"]["mean"]
    return score


async def made_both(path: Path, whole: Path, parts: Path) -> tuple[Result, Result]:
    """Make a film in one run, and in those of `CUTS`, into these folders."""
    sink, record = FolderSink(parts), Record()
    undivided = await make_pass(path, sink=FolderSink(whole), work_dir=parts.parent)
    runs = SharedRuns(path, sink, parts.parent, record)
    shared = await make_pass(path, sink=sink, work_dir=parts.parent, runs=runs, on_made=record)
    return undivided, shared


def prefixes(folder: Path, name: str) -> set[str]:
    return {it.uri.removesuffix(it.uri[-9:]) for it in playlist(folder, name).segments}


def check_alike(whole: Path, parts: Path, name: str) -> None:
    """The same frames in the same segments, each shown from where the one before it ends."""
    assert times_s(parts, name) == pytest.approx(times_s(whole, name), abs=TICK_S)
    made = playlist(parts, name)
    assert made.starts_s == pytest.approx(playlist(whole, name).starts_s, abs=TICK_S)
    scale = time_scale((parts / name / INIT_NAME).read_bytes())
    facts = [inspect_segment((parts / name / it.uri).read_bytes()) for it in made.segments]
    assert all(it.is_closed for it in facts)
    gaps_s = [(b.from_ticks - a.until_ticks) / scale for a, b in pairwise(facts)]
    assert max(map(abs, gaps_s)) <= TICK_S
