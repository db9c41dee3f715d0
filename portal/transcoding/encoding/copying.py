"""Copy and upload the streams of a source that all players decode, as one of the renditions.

As in `encode`, the source is never downloaded as a whole, segments are uploaded while they are
written, and no process and no file is left behind.
"""

import asyncio
from collections.abc import Mapping
from pathlib import Path

from portal.telemetry.tracing import span
from portal.transcoding import errors
from portal.transcoding.copying.remux import remux
from portal.transcoding.encoding import ffmpeg, output_validation
from portal.transcoding.encoding.encode import check_of_samples
from portal.transcoding.encoding.ffmpeg import OnFfmpegProgress
from portal.transcoding.encoding.parts import Rendition
from portal.transcoding.encoding.sink import Sink, ignore_stored, pass_folder, upload_segments
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
            write, tracks, folder=folder, sink=sink, on_stored=ignore_stored, check=check
        )
    for name in dropped:
        renditions.pop(name, None)
    output_validation.check_complete(renditions, tracks.keys() - dropped)
    picture = renditions[copied.name]
    output_validation.check_copy([segment.facts for segment in picture.segments], probe)
    return renditions
