"""Make the renditions of a source with the engine, and read them."""

import shutil
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

import av
import pytest
from decoded_media import Heard, Shown, listen, look, open_media
from media_recipes import MakeMedia

from portal.concurrency import task_group
from portal.transcoding.encoding.assembly import PassOutput, assemble
from portal.transcoding.encoding.copying import copy_streams
from portal.transcoding.encoding.encode import encode_part, encode_sound
from portal.transcoding.encoding.ffmpeg import OnFfmpegProgress, RunReport
from portal.transcoding.encoding.parts import Part, Pass, Rendition
from portal.transcoding.encoding.pictures import RenditionFiles, put_poster
from portal.transcoding.encoding.sink import Sink, ignore_stored
from portal.transcoding.errors import RejectCode, SourceRejected
from portal.transcoding.packaging import hls
from portal.transcoding.packaging.cmaf import read_samples, time_scale
from portal.transcoding.packaging.fragments import decoded_early, shown_until, write_segment
from portal.transcoding.packaging.master import (
    MASTER_NAME,
    FinishedRendition,
    Kind,
    master_playlist,
)
from portal.transcoding.planning.ladder import Plan, even_starts_s, plan_renditions
from portal.transcoding.probing.facts import Probe
from portal.transcoding.probing.probe import SourceLimits, examine, judge

MASTER_TYPE = "application/vnd.apple.mpegurl"


class FolderSink:
    """Sink that stores files in a folder; `names` are in the order of storing."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.names: list[str] = []

    async def put(self, name: str, data: Path | bytes, content_type: str) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(data, bytes):
            path.write_bytes(data)
        else:
            shutil.copyfile(data, path)
        self.names.append(name)


async def ignore(written_s: float) -> None:
    """Ignore progress."""


def everything(plan: Plan) -> list[str]:
    return [rung.name for rung in plan.video]


@dataclass(frozen=True, slots=True)
class Result:
    """Output of a pass over a source, with its probe and plan."""

    source: Probe
    plan: Plan
    output: PassOutput
    has_poster: bool

    def of(self, kind: Kind) -> list[FinishedRendition]:
        return [each for each in self.output.renditions if each.kind is kind]

    @property
    def renditions(self) -> list[FinishedRendition]:
        return self.of(Kind.VIDEO)

    @property
    def audio(self) -> list[FinishedRendition]:
        return self.of(Kind.AUDIO)


@dataclass(frozen=True)
class Published:
    """Source that was published into a folder; each measurement is made once."""

    path: Path
    result: Result
    sink: FolderSink

    @property
    def folder(self) -> Path:
        return self.sink.folder

    @cached_property
    def source_pictures(self) -> list[Shown]:
        return look(self.path, strict=False)

    @cached_property
    def pictures(self) -> dict[str, list[Shown]]:
        """Return all video renditions, decoded completely."""
        return {each.name: shown(self.folder, each.name) for each in self.result.renditions}

    @cached_property
    def sounds(self) -> dict[str, Heard]:
        """Return all audio renditions, decoded completely."""
        return {sound.name: listen(joined(self.folder, sound.name)) for sound in self.result.audio}

    def files(self, name: str) -> RenditionFiles:
        """Return the files of a rendition as a worker reads them."""

        async def read(uri: str) -> bytes:
            return (self.folder / name / uri).read_bytes()

        return RenditionFiles(playlist=playlist(self.folder, name), read=read)


# Types of the fixtures with these names.
Publish = Callable[[Path], Awaitable[Published]]
Write = Callable[[bytes], Path]


@dataclass(frozen=True, slots=True)
class Studio:
    """Makers of small media, and of their renditions."""

    make: MakeMedia
    publish: Publish


async def probe(source: Path | str, *, limits: SourceLimits | None = None, **how: float) -> Probe:
    limits = limits or SourceLimits()
    return judge(await examine(str(source), limits=limits, **how), limits)


async def make_pass(
    path: Path | str,
    *,
    sink: Sink,
    work_dir: Path,
    wanted: Collection[str] | None = None,
    reference: hls.MediaPlaylist | None = None,
    may_copy: bool = True,
    choose: Callable[[Plan], Collection[str]] = everything,
    parts: Sequence[Part] = (Part(),),
    on_progress: OnFfmpegProgress = ignore,
) -> Result:
    """Make one pass, a later one if there is a reference, without a master playlist.

    Its parts are made in the given order.
    """
    source = await probe(path)
    ladder = plan_renditions(source, may_copy=may_copy)
    work_dir.mkdir(parents=True, exist_ok=True)
    names = choose(ladder) if wanted is None else wanted
    plan = ladder.limited_to(names, with_sound=reference is None)
    copied: dict[str, Rendition] = {}
    storing: Any = {"sink": sink, "work_dir": work_dir}
    if any(rung.copied for rung in plan.video):
        copied = await copy_streams(str(path), source, plan, on_progress=on_progress, **storing)
    starts_s = reference.starts_s if reference else even_starts_s(plan, source.video)
    pictures = [copied[rung.name] for rung in plan.video if rung.name in copied]
    if pictures:
        starts_s = pictures[0].playlist().starts_s
    of_pass = Pass(
        source_url=str(path),
        probe=source,
        plan=plan,
        rungs=[rung for rung in plan.video if rung.name not in copied],
        starts_s=starts_s,
    )
    async with task_group() as tasks:
        making_sound = tasks.create_task(
            encode_sound(
                str(path),
                source,
                plan,
                audio=[rung for rung in plan.audio if rung.name not in copied],
                subtitles=plan.subtitles,
                on_stored=ignore_stored,
                **storing,
            )
        )
        making_poster = None
        if not reference:
            making_poster = tasks.create_task(put_poster(str(path), source, **storing))
        report, encoded = await encode_parts(of_pass, parts, on_progress, storing)
    heard, sound, cues = making_sound.result()
    output = await assemble(
        source,
        plan,
        {**copied, **encoded, **sound},
        subtitles=cues,
        report=report + heard,
        reference=reference,
        sink=sink,
    )
    has_poster = making_poster is not None and making_poster.result()
    return Result(source, ladder, output, has_poster)


async def encode_parts(
    of_pass: Pass, parts: Sequence[Part], on_progress: OnFfmpegProgress, storing: Any
) -> tuple[RunReport, dict[str, Rendition]]:
    """Encode the parts of a pass, and join their segments."""
    whole = RunReport()
    joined: dict[str, Rendition] = {}
    inits = None
    for part in parts if of_pass.rungs else ():
        report, renditions = await encode_part(
            of_pass,
            part,
            inits=inits,
            on_progress=on_progress,
            on_stored=ignore_stored,
            **storing,
        )
        inits = {name: rendition.init for name, rendition in renditions.items()}
        for name, rendition in renditions.items():
            earlier = joined[name].segments if name in joined else ()
            by_number = sorted((*earlier, *rendition.segments), key=lambda each: each.number)
            joined[name] = replace(rendition, segments=tuple(by_number))
        whole += report
    return whole, joined


async def transcode(source: Path | str, *, sink: Sink, **options: Any) -> Result:
    """Make all renditions, or the chosen ones, in one pass, and a master playlist."""
    result = await make_pass(source, sink=sink, **options)
    master = master_playlist([("", rendition) for rendition in result.output.renditions])
    await sink.put(MASTER_NAME, master.encode(), MASTER_TYPE)
    return result


async def rejection(source: Path | str, limits: SourceLimits | None = None) -> RejectCode:
    """Return the code with which a probe refuses a source."""
    with pytest.raises(SourceRejected) as caught:
        await probe(source, limits=limits)
    return caught.value.code


def playlist(folder: Path, rendition: str) -> hls.MediaPlaylist:
    return hls.parse_media_playlist((folder / hls.media_playlist_name(rendition)).read_text())


def joined(folder: Path, rendition: str, *segments: int) -> bytes:
    """Return some segments, all by default, after their init segment."""
    uris = [segment.uri for segment in playlist(folder, rendition).segments]
    chosen = [uris[number] for number in segments] if segments else uris
    init, *contents = [(folder / rendition / uri).read_bytes() for uri in (hls.INIT_NAME, *chosen)]
    return init + b"".join(map(_for_ffmpeg, contents) if b"avcC" in init else contents)


def _for_ffmpeg(segment: bytes) -> bytes:
    """Return a segment whose frames FFmpeg shows at their times, as players do."""
    samples, until = read_samples(segment, is_sound=False)
    if all(sample.offset >= 0 for sample in samples):
        return segment
    end = shown_until(samples, until)
    return write_segment(0, decoded_early(samples, earliest=samples[0].decode_at), end)


def frame_times(folder: Path, rendition: str) -> list[tuple[Fraction, Fraction]]:
    """Return when each frame is shown, and how long its sample lasts, in the order of showing."""
    scale = time_scale((folder / rendition / hls.INIT_NAME).read_bytes())
    times = []
    for segment in playlist(folder, rendition).segments:
        content = (folder / rendition / segment.uri).read_bytes()
        samples, until = read_samples(content, is_sound=False)
        assert samples[0].offset == 0, "decoded before it is shown"
        ends = [*(sample.decode_at for sample in samples[1:]), until]
        for sample, end in zip(samples, ends, strict=True):
            shown_at = Fraction(sample.decode_at + sample.offset, scale)
            times.append((shown_at, Fraction(end - sample.decode_at, scale)))
    return sorted(times)


def check_durations(folder: Path, rendition: str) -> None:
    """Check that each sample lasts until the next frame is shown."""
    for (shown_s, lasts_s), (next_s, _) in pairwise(frame_times(folder, rendition)):
        assert lasts_s == next_s - shown_s, f"{rendition} at {float(shown_s)} s"


def frames(folder: Path, rendition: str, *segments: int) -> list[av.VideoFrame]:
    """Decode some segments, all by default."""
    with open_media(joined(folder, rendition, *segments)) as container:
        return list(container.decode(container.streams[0]))


def shown(folder: Path, rendition: str, *segments: int) -> list[Shown]:
    """Return the pictures of some segments, all by default. Faults in the stream are errors."""
    return look(joined(folder, rendition, *segments))
