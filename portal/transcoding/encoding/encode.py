"""Copy, encode and upload the streams of a source: the steps of a pass that read it.

Each function reads the source by range requests, and never downloads it as a whole. It uploads
segments while they are made, checks that samples of them decode, and leaves no process and no file
behind, however it ends. `on_progress` takes the seconds of the film that are written.
"""

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path

from portal.telemetry.tracing import span
from portal.transcoding import errors
from portal.transcoding.copying.remux import remux
from portal.transcoding.encoding import command, ffmpeg, output_validation
from portal.transcoding.encoding.ffmpeg import OnFfmpegProgress, RunReport
from portal.transcoding.encoding.parts import Part, Pass, Rendition, Segment, is_whole
from portal.transcoding.encoding.sink import (
    OnStored,
    Sink,
    ignore_stored,
    pass_folder,
    sampled_files,
    sampled_numbers,
    upload_segments,
)
from portal.transcoding.encoding.source_proxy import proxied
from portal.transcoding.packaging.webvtt import Cue, parse_webvtt
from portal.transcoding.planning.ladder import Plan
from portal.transcoding.planning.tracks import AudioRung, TrackRung
from portal.transcoding.probing.facts import Probe

# Cues of each subtitle track; None for a track that is too large.
Subtitles = Mapping[str, list[Cue] | None]


async def copy_streams(
    source_url: str,
    probe: Probe,
    plan: Plan,
    *,
    sink: Sink,
    work_dir: Path,
    on_progress: OnFfmpegProgress,
) -> dict[str, Rendition]:
    """Copy the picture, and the sound that is planned to be copied.

    Sound that can't be copied is missing in the result. Raises CopyUndeliverable if players could
    not play the copy, TranscodeFailed, DiskFull, or whatever the sink raised.
    """
    [copied] = [rung for rung in plan.video if rung.copied]
    tracks = {copied.name: probe.video.index}
    tracks |= {sound.name: sound.index for sound in plan.audio if sound.copied}
    sampled = sampled_numbers(probe.duration_s)
    with pass_folder(work_dir) as folder, span("copy", renditions=" ".join(tracks)):

        async def write(paused: asyncio.Event) -> Mapping[str, str]:
            return await remux(
                source_url,
                tracks=tracks,
                end_s=plan.picture_s or plan.duration_s,
                work_dir=folder,
                on_progress=on_progress,
                paused=paused,
                timeout_s=ffmpeg.run_limit_s(probe.duration_s),
            )

        dropped, renditions = await upload_segments(
            write, tracks, folder=folder, sink=sink, on_stored=ignore_stored, sampled=sampled
        )
        for name in dropped:
            renditions.pop(name, None)
        output_validation.check_complete(renditions, tracks.keys() - dropped)
        files = sampled_files(folder, list(renditions), sampled)
        try:
            await output_validation.check_decoding(files, first_s=output_validation.COPIED_SAMPLE_S)
        except errors.TranscodeFailed as exc:
            raise errors.CopyUndeliverable("undecodable", detail=exc.detail) from exc
    picture = renditions[copied.name]
    output_validation.check_copy([segment.facts for segment in picture.segments], probe)
    return renditions


async def encode_part(
    of_pass: Pass,
    part: Part,
    *,
    inits: Mapping[str, bytes] | None = None,
    sink: Sink,
    work_dir: Path,
    on_progress: OnFfmpegProgress,
    on_stored: OnStored,
) -> tuple[RunReport, dict[str, Rendition]]:
    """Encode a part of a pass, and store its segments.

    `inits` are the init segments in storage, by rendition; the part that begins the film has none,
    and stores them. `on_stored` takes each segment once it is stored, but none that ffmpeg left
    early. Returns ffmpeg's report about this part, and by name the renditions with its segments.
    Raises PartsDontJoin if it has other init segments, TranscodeFailed, DiskFull, or whatever the
    sink raised.
    """
    names = of_pass.names
    duration_s = of_pass.probe.duration_s
    end = part.end(of_pass.starts_s)
    sampled = sampled_numbers(duration_s, first=part.first, until=end)
    rungs = {rung.name: rung for rung in of_pass.rungs}
    whole_counts = dict.fromkeys(names, 0)

    def stored(name: str, segment: Segment) -> None:
        if is_whole(segment, rungs[name], of_pass.starts_s):
            whole_counts[name] += 1
            on_stored(name, segment)

    with pass_folder(work_dir) as folder:
        async with proxied(of_pass.source_url) as source:

            async def write(paused: asyncio.Event) -> RunReport:
                # This much may be decoded before the first frame that is encoded, by a machine that
                # decodes at least as fast as the film plays.
                from_s = float(part.after_s(of_pass) or 0)
                decoded_first_s = min(from_s, of_pass.probe.video.max_key_distance_s or from_s)
                return await ffmpeg.run(
                    command.part_arguments(source.name, of_pass, part),
                    on_progress=on_progress,
                    timeout_s=ffmpeg.run_limit_s(duration_s),
                    stall_s=ffmpeg.STALL_LIMIT_S + decoded_first_s,
                    paused=paused,
                    cwd=folder,
                    environ=source.environ,
                )

            with span("encode", renditions=" ".join(names)):
                report, renditions = await upload_segments(
                    write,
                    names,
                    folder=folder,
                    sink=sink,
                    on_stored=stored,
                    sampled=sampled,
                    end=end,
                    inits=inits,
                )
        if end is not None and min(whole_counts.values()) < end - part.first:
            code = errors.FailCode.OUTPUT_INCOMPLETE
            if report.network_faults:
                code = errors.FailCode.SOURCE_UNREACHABLE
            raise errors.TranscodeFailed(code, detail=f"the part ended before segment {end}")
        files = sampled_files(folder, names, sampled)
        await output_validation.check_decoding(files, first_s=output_validation.ENCODED_SAMPLE_S)
    return report, renditions


async def encode_sound(
    source_url: str,
    probe: Probe,
    plan: Plan,
    *,
    audio: Sequence[AudioRung],
    subtitles: Sequence[TrackRung],
    sink: Sink,
    work_dir: Path,
    on_progress: OnFfmpegProgress | None = None,
    on_stored: OnStored,
) -> tuple[RunReport, dict[str, Rendition], Subtitles]:
    """Encode sound and read subtitles, of the whole film.

    Returns ffmpeg's report, the sound, and the cues. Raises TranscodeFailed, DiskFull, or whatever
    the sink raised.
    """
    names = [rung.name for rung in audio]
    if not audio and not subtitles:
        return RunReport(), {}, {}
    sampled = sampled_numbers(probe.duration_s)
    with pass_folder(work_dir) as folder:
        for rung in subtitles:
            await asyncio.to_thread((folder / rung.name).mkdir)
        async with proxied(source_url) as source:
            arguments = command.sound_arguments(source.name, probe, plan, audio, subtitles)

            async def write(paused: asyncio.Event) -> RunReport:
                return await ffmpeg.run(
                    arguments,
                    on_progress=on_progress,
                    timeout_s=ffmpeg.run_limit_s(probe.duration_s),
                    paused=paused,
                    cwd=folder,
                    environ=source.environ,
                )

            with span("encode_sound", renditions=" ".join(names)):
                report, renditions = await upload_segments(
                    write, names, folder=folder, sink=sink, on_stored=on_stored, sampled=sampled
                )
        files = sampled_files(folder, names, sampled)
        await output_validation.check_decoding(files, first_s=output_validation.ENCODED_SAMPLE_S)
        cues = {rung.name: await _read_subtitles(folder, rung) for rung in subtitles}
    return report, renditions, cues


async def _read_subtitles(folder: Path, rung: TrackRung) -> list[Cue] | None:
    """Return the cues of a subtitle track; None if ffmpeg did not write all of it."""
    path = folder / command.subtitle_file(rung)
    if (await asyncio.to_thread(path.stat)).st_size >= command.MAX_SUBTITLE_BYTES:
        return None
    return await asyncio.to_thread(lambda: parse_webvtt(path.read_text("utf-8")))
