"""Copy and upload the streams of a source that all players decode, as one of the renditions.

Frames at the ends of a trimmed film that may depend on hidden ones are encoded like those at cuts.
As in `encode`, the source is never downloaded as a whole, segments are uploaded while they are
written, and no process and no file is left behind.
"""

import asyncio
from collections.abc import Sequence
from pathlib import Path

from portal.telemetry.tracing import span
from portal.transcoding import errors
from portal.transcoding.copying.remux import Remuxed, remux
from portal.transcoding.encoding import ffmpeg, output_validation
from portal.transcoding.encoding.cutting import encode_pieces
from portal.transcoding.encoding.encode import check_of_samples
from portal.transcoding.encoding.ffmpeg import OnFfmpegProgress
from portal.transcoding.encoding.parts import PartsDontJoin, Pass, Rendition, check_joins
from portal.transcoding.encoding.sink import Sink, ignore_stored, pass_folder, upload_segments
from portal.transcoding.packaging.cmaf import time_scale
from portal.transcoding.planning.kept import Interval
from portal.transcoding.planning.ladder import Plan
from portal.transcoding.probing.facts import Probe


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
    check_sample = check_of_samples(probe.duration_s, first_s=output_validation.COPIED_SAMPLE_S)

    async def check(path: Path, number: int) -> None:
        try:
            await check_sample(path, number)
        except errors.TranscodeFailed as exc:
            raise errors.CopyUndeliverable("undecodable", detail=exc.detail) from exc

    hidden = {copied.name: probe.video.hidden}
    hidden |= {
        sound.name: track.hidden
        for sound in plan.audio
        for track in probe.audio
        if track.index == sound.index
    }
    with pass_folder(work_dir) as folder, span("copy", renditions=" ".join(tracks)):

        async def write(paused: asyncio.Event) -> Remuxed:
            return await remux(
                source_url,
                tracks=tracks,
                end_s=plan.picture_s or plan.duration_s,
                lead_s=probe.lead_s,
                hidden_from_s={name: spans[0][0] for name, spans in hidden.items() if spans},
                work_dir=folder,
                on_progress=on_progress,
                paused=paused,
                timeout_s=ffmpeg.run_limit_s(probe.duration_s),
            )

        remuxed, renditions = await upload_segments(
            write, tracks, folder=folder, sink=sink, on_stored=ignore_stored, check=check
        )
    for name in remuxed.dropped:
        renditions.pop(name, None)
    picture = renditions[copied.name]
    output_validation.check_copy(
        [segment.facts for segment in picture.segments],
        probe,
        left_out_frames=remuxed.left_out_frames,
    )
    if remuxed.pieces:
        of_pass = Pass(
            source_url=source_url,
            probe=probe,
            plan=plan,
            rungs=[copied],
            starts_s=_starts_s(picture),
            foreign_inits={copied.name: picture.init},
        )
        spans = [Interval(*piece) for piece in remuxed.pieces]
        renditions[copied.name] = await _add_pieces(
            picture, of_pass, spans, sink=sink, work_dir=work_dir
        )
    output_validation.check_complete(renditions, tracks.keys() - remuxed.dropped)
    return renditions


def _starts_s(rendition: Rendition) -> list[float]:
    """Return when the segments of a rendition begin, in seconds of the film."""
    scale = time_scale(rendition.init)
    return [segment.facts.from_ticks / scale for segment in rendition.segments]


async def _add_pieces(
    picture: Rendition, of_pass: Pass, spans: Sequence[Interval], *, sink: Sink, work_dir: Path
) -> Rendition:
    """Encode the missing segments of a copied picture, and return the whole rendition.

    Raises CopyUndeliverable if they can't be made or don't join, or as `encode_pieces`.
    """
    [name] = of_pass.names
    try:
        by_name = await encode_pieces(of_pass, spans, inits={}, sink=sink, work_dir=work_dir)
    except errors.TranscodeFailed as exc:
        if exc.code != errors.FailCode.OUTPUT_INCOMPLETE:
            raise
        # No init segment is for both the copy and the pieces, or a piece doesn't decode.
        raise errors.CopyUndeliverable("pieces", detail=exc.detail) from exc
    pieces = by_name[name]
    segments = sorted(
        (*picture.segments, *pieces.segments.values()), key=lambda segment: segment.number
    )
    whole = Rendition(init=pieces.init or picture.init, segments=tuple(segments))
    try:
        check_joins({name: whole})
    except PartsDontJoin as exc:
        raise errors.CopyUndeliverable("pieces", detail=str(exc)) from exc
    return whole
