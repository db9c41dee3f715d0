"""Encode and upload the streams of a source: the steps of a pass that decode it.

Each function reads the source by range requests, and never downloads it as a whole. It uploads
segments while they are made, checks that samples of them decode, and leaves no process and no file
behind, however it ends. `on_progress` takes the seconds of the film that are written.
"""

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from portal.telemetry.tracing import span
from portal.transcoding import errors
from portal.transcoding.encoding import command, ffmpeg, output_validation
from portal.transcoding.encoding.ffmpeg import OnFfmpegProgress, RunReport
from portal.transcoding.encoding.parts import Part, Pass, Rendition, Segment, is_whole
from portal.transcoding.encoding.sink import (
    Check,
    OnStored,
    Sink,
    ignore_stored,
    pass_folder,
    upload_segments,
)
from portal.transcoding.encoding.source_proxy import proxied
from portal.transcoding.packaging.webvtt import Cue, parse_webvtt
from portal.transcoding.planning.ladder import Plan
from portal.transcoding.planning.tracks import AudioRung, TrackRung
from portal.transcoding.probing.facts import Probe
from portal.transcoding.probing.telemetry import is_telemetry

# Difference of two times that are meant to be the same.
_SAME_TIME_S = 0.1
# Cues of each subtitle track, or the note that tells why the track is left out.
Subtitles = Mapping[str, list[Cue] | errors.Note]


async def encode_part(
    of_pass: Pass,
    part: Part,
    *,
    inits: Mapping[str, bytes] | None = None,
    sink: Sink,
    work_dir: Path,
    on_progress: OnFfmpegProgress | None = None,
    on_stored: OnStored = ignore_stored,
) -> tuple[RunReport, dict[str, Rendition]]:
    """Encode a part of a pass, and store its segments.

    `inits` are the init segments in storage, by rendition; those of others are stored, as by the
    part that begins the film. `on_stored` takes each segment once it is stored, but none that
    ffmpeg left early. Returns ffmpeg's report about this part, and by name the renditions with its
    segments. Raises PartsDontJoin if it has other init segments, TranscodeFailed, DiskFull, or
    whatever the sink raised.
    """
    end = part.end(of_pass.starts_s)
    rungs = {rung.name: rung for rung in of_pass.rungs}
    whole_counts = dict.fromkeys(rungs, 0)

    def stored(name: str, segment: Segment) -> None:
        if is_whole(segment, rungs[name], of_pass.starts_s):
            whole_counts[name] += 1
            on_stored(name, segment)

    with pass_folder(work_dir) as folder:
        with span("encode", renditions=" ".join(rungs)):
            report, renditions = await _encode(
                of_pass.source_url,
                partial(command.part_arguments, of_pass=of_pass, part=part),
                of_pass.names,
                duration_s=of_pass.probe.duration_s,
                folder=folder,
                sink=sink,
                on_progress=on_progress,
                stall_s=_stall_limit_s(of_pass, part),
                on_stored=stored,
                end=end,
                inits=inits,
            )
        if end is not None and min(whole_counts.values()) < end - part.first:
            code = errors.FailCode.OUTPUT_INCOMPLETE
            if report.network_faults:
                code = errors.FailCode.SOURCE_UNREACHABLE
            raise errors.TranscodeFailed(code, detail=f"the part ended before segment {end}")
    if report.network_faults and report.faults:
        code = errors.FailCode.SOURCE_UNREACHABLE
        raise errors.TranscodeFailed(code, detail="faults while reading")
    return report, renditions


def _stall_limit_s(of_pass: Pass, part: Part) -> float:
    """Return the limit on the time without output.

    The frames since the key frame before a part are decoded first. A slow machine decodes at the
    speed at which the film plays.
    """
    from_s = float(part.after_s(of_pass) or 0)
    return ffmpeg.STALL_LIMIT_S + min(from_s, of_pass.probe.video.max_key_distance_s or from_s)


async def _encode(
    source_url: str,
    arguments: Callable[[str], Sequence[str]],
    names: Collection[str],
    *,
    duration_s: float,
    folder: Path,
    sink: Sink,
    on_progress: OnFfmpegProgress | None = None,
    stall_s: float = ffmpeg.STALL_LIMIT_S,
    on_stored: OnStored,
    end: int | None = None,
    inits: Mapping[str, bytes] | None = None,
) -> tuple[RunReport, dict[str, Rendition]]:
    """Run ffmpeg in a folder, and upload the segments of the renditions `names` meanwhile.

    `arguments` returns those of ffmpeg for the name under which it reads the source. `duration_s`
    is that of the whole film. Returns and raises as `upload_segments`.
    """
    async with proxied(source_url) as source:

        async def write(paused: asyncio.Event) -> RunReport:
            return await ffmpeg.run(
                arguments(source.name),
                on_progress=on_progress,
                timeout_s=ffmpeg.run_limit_s(duration_s),
                stall_s=stall_s,
                paused=paused,
                cwd=folder,
                environ=source.environ,
            )

        return await upload_segments(
            write,
            names,
            folder=folder,
            sink=sink,
            on_stored=on_stored,
            check=check_of_samples(duration_s, first_s=output_validation.ENCODED_SAMPLE_S),
            end=end,
            inits=inits,
        )


def check_of_samples(duration_s: float, *, first_s: float) -> Check:
    """Return the check that the first seconds of some segments of a film of this length decode."""

    async def check(path: Path, number: int) -> None:
        if output_validation.is_sampled(number, duration_s):
            await output_validation.check_decoding(path, first_s=first_s)

    return check


async def encode_sound(
    source_url: str,
    probe: Probe,
    plan: Plan,
    *,
    audio: Sequence[AudioRung],
    subtitles: Sequence[TrackRung],
    sink: Sink,
    work_dir: Path,
    on_stored: OnStored,
) -> tuple[RunReport, dict[str, Rendition], Subtitles]:
    """Encode sound and read subtitles, of the whole film.

    Returns ffmpeg's report, the sound, and the cues. Raises TranscodeFailed, DiskFull, or whatever
    the sink raised.
    """
    names = [rung.name for rung in audio]
    if not audio and not subtitles:
        return RunReport(), {}, {}
    with pass_folder(work_dir) as folder:
        for rung in subtitles:
            await asyncio.to_thread((folder / rung.name).mkdir)
        with span("encode_sound", renditions=" ".join(names)):
            report, renditions = await _encode(
                source_url,
                partial(
                    command.sound_arguments,
                    probe=probe,
                    plan=plan,
                    audio=audio,
                    subtitles=subtitles,
                ),
                names,
                duration_s=probe.duration_s,
                folder=folder,
                sink=sink,
                on_stored=on_stored,
            )
        tracks = {
            rung.name: await asyncio.to_thread(_read_subtitles, folder, rung, probe)
            for rung in subtitles
        }
    return report, renditions, {name: cues for name, cues in tracks.items() if cues is not None}


def _read_subtitles(folder: Path, rung: TrackRung, probe: Probe) -> list[Cue] | errors.Note | None:
    """Return the cues of a subtitle track, or why it is left out; None if it has the chapters."""
    path = folder / command.subtitle_file(rung)
    # ffmpeg stopped writing it at the limit.
    if path.stat().st_size >= command.MAX_SUBTITLE_BYTES:
        return errors.Note.SUBTITLES_LEFT_OUT
    [hidden] = [track.hidden for track in probe.subtitles if track.index == rung.index]
    cues = [
        cue
        for cue in parse_webvtt(path.read_text("utf-8"))
        if not any(from_s <= cue.start_s < until_s for from_s, until_s in hidden)
    ]
    # Escapes make the text of cues larger than the file.
    if sum(len(cue.text.encode()) for cue in cues) >= command.MAX_SUBTITLE_BYTES:
        return errors.Note.SUBTITLES_LEFT_OUT
    if is_telemetry([cue.plain_text for cue in cues]):
        return errors.Note.TELEMETRY_LEFT_OUT
    return None if _are_chapters(cues, probe.chapters) else cues


def _are_chapters(cues: Sequence[Cue], chapters: Sequence[Mapping[str, Any]]) -> bool:
    """Return whether these are the chapters of the film, which writers store as text, too."""
    starts_s = {chapter["title"]: chapter["start_s"] for chapter in chapters}
    titles = [" ".join(cue.plain_text.split()) for cue in cues]
    # Titles may repeat, and the first chapter is moved to the film's start.
    are_titles = 0 < len(titles) <= len(chapters) and starts_s.keys() >= set(titles)
    return are_titles and abs(cues[-1].start_s - starts_s[titles[-1]]) < _SAME_TIME_S
