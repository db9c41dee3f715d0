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
from portal.transcoding.copying.remux import Remuxed, Selection, remux
from portal.transcoding.encoding import ffmpeg, output_validation
from portal.transcoding.encoding.cutting import encode_pieces
from portal.transcoding.encoding.encode import check_of_samples
from portal.transcoding.encoding.ffmpeg import OnFfmpegProgress
from portal.transcoding.encoding.parts import PartsDontJoin, Pass, Rendition, check_joins
from portal.transcoding.encoding.sink import (
    OnStored,
    Sink,
    ignore_stored,
    pass_folder,
    upload_segments,
)
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
    on_stored: OnStored = ignore_stored,
) -> dict[str, Rendition]:
    """Copy the picture, and the sound that is planned to be copied.

    `on_stored` takes segments as they are stored. The copy can still fail afterwards, so the caller
    has to take them back then.
    Sound that can't be copied is missing in the result. Raises CopyUndeliverable if players could
    not play the copy, TranscodeFailed, DiskFull, or whatever the sink raised.
    """
    [copied] = [rung for rung in plan.video if rung.copied]
    selection = _selection(probe, plan, picture=copied.name)
    remuxed, renditions = await _copy_and_upload(
        source_url,
        probe,
        selection,
        sink=sink,
        work_dir=work_dir,
        on_progress=on_progress,
        on_stored=on_stored,
    )
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
    output_validation.check_complete(renditions, selection.tracks.keys() - remuxed.dropped)
    return renditions


def _selection(probe: Probe, plan: Plan, *, picture: str) -> Selection:
    """Return what is copied: the picture as the rendition of this name, and sound."""
    tracks = {picture: probe.video.index}
    tracks |= {sound.name: sound.index for sound in plan.audio if sound.copied}
    hidden = {track.index: track.hidden for track in probe.audio}
    hidden[probe.video.index] = probe.video.hidden
    return Selection(
        tracks=tracks,
        end_s=plan.picture_s or plan.duration_s,
        lead_s=probe.lead_s,
        hidden_from_s={
            name: hidden[index][0][0] for name, index in tracks.items() if hidden[index]
        },
    )


async def _copy_and_upload(
    source_url: str,
    probe: Probe,
    selection: Selection,
    *,
    sink: Sink,
    work_dir: Path,
    on_progress: OnFfmpegProgress,
    on_stored: OnStored,
) -> tuple[Remuxed, dict[str, Rendition]]:
    """Copy and upload the tracks; return the result of the copy, and the renditions by name.

    Sound that was dropped is left out. Raises as `copy_streams`.
    """
    check_sample = check_of_samples(probe.duration_s, first_s=output_validation.COPIED_SAMPLE_S)

    async def check(path: Path, number: int) -> None:
        try:
            await check_sample(path, number)
        except errors.TranscodeFailed as exc:
            raise errors.CopyUndeliverable("undecodable", detail=exc.detail) from exc

    names = selection.tracks.keys()
    with pass_folder(work_dir) as folder, span("copy", renditions=" ".join(names)):

        async def write(paused: asyncio.Event) -> Remuxed:
            return await remux(
                source_url,
                selection,
                work_dir=folder,
                on_progress=on_progress,
                paused=paused,
                timeout_s=ffmpeg.run_limit_s(probe.duration_s),
            )

        remuxed, renditions = await upload_segments(
            write, names, folder=folder, sink=sink, on_stored=on_stored, check=check
        )
    for name in remuxed.dropped:
        renditions.pop(name, None)
    return remuxed, renditions


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
