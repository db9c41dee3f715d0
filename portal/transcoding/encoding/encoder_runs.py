"""Run ffmpeg for the encodes of a pass, while its segments are uploaded and told of."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from portal.concurrency import task_group
from portal.telemetry.tracing import span
from portal.transcoding.encoding import ffmpeg
from portal.transcoding.encoding.command import Encode, encode_arguments
from portal.transcoding.encoding.continuation import MadeSegment, NotContinuable, OnMade, check_join
from portal.transcoding.encoding.ffmpeg import RunReport
from portal.transcoding.encoding.progress import PassProgress
from portal.transcoding.encoding.segment_upload import SegmentUpload, segment_number
from portal.transcoding.encoding.source_proxy import ProxiedSource
from portal.transcoding.probing.facts import Probe


@dataclass(frozen=True, slots=True)
class EncoderRuns:
    """Runs encodes of one source; `reports` are what ffmpeg said of each.

    `on_made` is told of the segments that are in storage, for a later run that goes on after them.
    """

    source: ProxiedSource
    probe: Probe
    upload: SegmentUpload
    progress: PassProgress
    on_made: OnMade | None
    reports: list[RunReport] = field(default_factory=list)

    async def run(self, *tasks: Encode) -> RunReport:
        """Run ffmpeg for each task, and upload segments; when one fails the others are stopped.

        Answers what the first one's says. Raises as `ffmpeg.run` does, NotContinuable, or whatever
        the sink raised.
        """
        names = [name for task in tasks for name in tracks(task)]
        with span("encode", renditions=" ".join(names)):
            reports = await self.upload.during(
                lambda: self._run_all(tasks), names, on_stored=self._segment_stored
            )
        if after := tasks[0].after:
            followed = {
                name.partition("/")[0] for name in self.upload.facts if f"/{after.prefix}" in name
            }
            if followed != after.made.keys():
                raise NotContinuable("no segment followed")
        self.reports.extend(reports)
        return reports[0]

    async def _run_all(self, tasks: Sequence[Encode]) -> Sequence[RunReport]:
        async with task_group() as group:
            running = [group.create_task(self._run_ffmpeg(task)) for task in tasks]
        return [run.result() for run in running]

    async def _run_ffmpeg(self, task: Encode) -> RunReport:
        return await ffmpeg.run(
            encode_arguments(task),
            on_progress=self.progress.encoded if task.rungs else None,
            timeout_s=ffmpeg.run_limit_s(self.probe.duration_s),
            stall_s=ffmpeg.stall_limit_s(self._decoded_first_s(task)),
            paused=self.upload.paused,
            cwd=self.upload.work_dir,
            environ=self.source.environ,
        )

    async def _segment_stored(self, name: str) -> None:
        """Raises NotContinuable when the first segment follows none of those before."""
        rendition, _, uri = name.partition("/")
        facts, after = self.upload.facts.get(name), self.upload.after
        if facts is None:
            return
        number = segment_number(uri)
        if number == (after.number if after else 0):
            init = await self.upload.put_init(rendition)
            if after:
                check_join(after, rendition, init, facts)
        if self.on_made:
            size_bytes = self.upload.sizes_bytes[name]
            made = MadeSegment(uri=uri, size_bytes=size_bytes, facts=facts)
            self.on_made(rendition, number, made)

    def _decoded_first_s(self, task: Encode) -> float:
        """How much is decoded, at most, before the first frame that is wanted."""
        from_s = float(task.after.from_s) if task.after else 0.0
        return min(from_s, self.probe.video.max_key_distance_s or from_s)


def tracks(task: Encode) -> list[str]:
    """The names of all renditions that a task makes."""
    return [rung.name for rungs in (task.rungs, task.audio, task.subtitles) for rung in rungs]
