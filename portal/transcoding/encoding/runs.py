"""Make the runs of a pass with ffmpeg, and upload their segments at the same time.

The worker of a pass makes its runs one after another. A worker that shares the pass makes one of
them (`make_run`). Reports of runs are judged for the pass as a whole, except for facts that only
the run knows.
"""

from collections.abc import Collection
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path

from portal.telemetry.tracing import span
from portal.transcoding.encoding import continuation, ffmpeg, filters, output_validation
from portal.transcoding.encoding.command import Encode, encode_arguments
from portal.transcoding.encoding.continuation import OnMade, Run, Whole
from portal.transcoding.encoding.ffmpeg import RunReport
from portal.transcoding.encoding.progress import OnProgress, PassProgress
from portal.transcoding.encoding.segment_upload import (
    OnStored,
    SegmentUpload,
    Sink,
    Throttle,
    pass_folder,
    sampled_segments,
    segment_number,
)
from portal.transcoding.encoding.source_proxy import ProxiedSource, proxied
from portal.transcoding.errors import FailCode, TranscodeFailed
from portal.transcoding.packaging.cmaf import time_scale
from portal.transcoding.planning.ladder import Plan, frame_step
from portal.transcoding.probing.facts import Probe


@dataclass(slots=True)
class OneRun:
    """The single run of a pass that is not shared."""

    run: Run = field(default_factory=Run)
    _is_done: bool = False

    async def begin(self, starts_s: continuation.Starts) -> None:
        """Keep the times of segments."""
        self.run.starts_s = starts_s

    async def next(self) -> Run | None:
        """Return the run, the first time."""
        return None if self._is_done else self.run

    async def done(self, run: Run, *, faults: int, network_faults: int) -> None:
        """Record that the run is made."""
        self._is_done = True

    async def whole(self) -> Whole | None:
        """Return None: the caller has all segments."""
        return None


@dataclass(frozen=True, kw_only=True, slots=True)
class RunMaker:
    """Maker of runs over a source; `on_made` is called for each segment in storage."""

    source: ProxiedSource
    probe: Probe
    upload: SegmentUpload
    progress: PassProgress
    on_made: OnMade | None = None

    async def make(self, task: Encode, run: Run) -> RunReport:
        """Make the missing segments of a run of the task's video. Raises as `make_whole`.

        Also raises TranscodeFailed if the run ends before its last segment.
        """
        starts_s = run.starts_s
        video = self.probe.video
        before_s = Fraction(0)
        if run.first and starts_s:
            before_s = filters.frame_before(
                video,
                starts_s[run.first],
                is_snapped=task.is_snapped,
                is_held=task.plan.is_held,
            )
        after = continuation.continue_after(
            run, task.rungs, end_s=task.plan.picture_s, before_s=before_s
        )
        number = after.number if after else run.first
        if run.last is not None and number > run.last:
            return RunReport()
        self.upload.after = after
        sampled = sampled_segments(self.probe.duration_s, after)
        self.upload.sampled = {*self.upload.sampled, *sampled}
        for name, rendition in (after.made if after else {}).items():
            self.upload.add(name, rendition)
        from_s = float(after.from_s) if after else 0.0
        self.progress.next_run(ends_at=1.0, run=run, from_s=from_s)
        reached = dict.fromkeys(task.names, number)

        async def stored(name: str) -> None:
            await self.segment_stored(name)
            rendition = name.partition("/")[0]
            reached[rendition] = max(reached[rendition], segment_number(name) + 1)

        report = await self.make_whole(replace(task, after=after), run=run, on_stored=stored)
        if after and min(reached.values()) == number:
            raise continuation.NotContinuable("the run made no segment")
        if run.last is not None and min(reached.values()) <= run.last:
            is_cut = report.network_faults > 0
            code = FailCode.SOURCE_UNREACHABLE if is_cut else FailCode.OUTPUT_INCOMPLETE
            raise TranscodeFailed(code, detail=f"the run ended before segment {run.last}")
        if after:
            decoded_before = after.frames * frame_step(video.fps)
            report.frames_decoded = (report.frames_decoded or 0) + decoded_before
        return report

    async def make_whole(
        self, task: Encode, *, run: Run | None = None, on_stored: OnStored | None = None
    ) -> RunReport:
        """Run ffmpeg for a task, to the end of the film or of the run, and upload segments.

        Raises as `ffmpeg.run` does, NotContinuable, or whatever the sink raised.
        """

        async def write(throttle: Throttle) -> RunReport:
            # This much may be decoded before the first frame that is encoded, by a machine that
            # decodes at least as fast as the film plays.
            from_s = float(task.after.from_s) if task.after else 0.0
            decoded_first_s = min(from_s, self.probe.video.max_key_distance_s or from_s)
            return await ffmpeg.run(
                encode_arguments(task),
                on_progress=self.progress.encoded if task.rungs else None,
                timeout_s=ffmpeg.run_limit_s(self.probe.duration_s),
                stall_s=ffmpeg.STALL_LIMIT_S + decoded_first_s,
                paused=throttle.paused,
                ended=throttle.ended,
                cwd=self.upload.work_dir,
                environ=self.source.environ,
            )

        with span("encode", renditions=" ".join(task.names)):
            stored = on_stored or self.segment_stored
            return await self.upload.during(write, task.names, on_stored=stored, run=run)

    async def segment_stored(self, name: str) -> None:
        """Store the init segment, and report a segment that is in storage.

        Raises NotContinuable if the first new segment doesn't follow the existing ones.
        """
        rendition, _, uri = name.partition("/")
        facts = self.upload.facts[name]
        number = segment_number(uri)
        init = await self.upload.put_init(rendition)
        after = self.upload.after
        if after and rendition in after.made and number == after.number:
            continuation.check_join(after, rendition, init, facts)
        if self.on_made:
            made = continuation.MadeSegment(
                uri=uri,
                size_bytes=self.upload.sizes_bytes[name],
                duration_s=(facts.until_ticks - facts.from_ticks) / time_scale(init),
                facts=facts,
            )
            self.on_made(rendition, number, made)


async def make_run(
    source_url: str,
    probe: Probe,
    plan: Plan,
    run: Run,
    *,
    names: Collection[str],
    sink: Sink,
    work_dir: Path,
    on_progress: OnProgress,
    on_made: OnMade,
) -> RunReport:
    """Make one run of these renditions, for the pass of another worker.

    Raises NotContinuable, SourceRejected, TranscodeFailed, DiskFull, or whatever the sink raised.
    """
    with pass_folder(work_dir) as folder:
        async with proxied(source_url) as source:
            task = Encode(
                source_url=source.name,
                probe=probe,
                plan=plan,
                rungs=[rung for rung in plan.video if rung.name in names],
                audio=(),
                subtitles=(),
                starts_s=run.starts_s,
            )
            upload = SegmentUpload(sink, folder)
            maker = RunMaker(
                source=source,
                probe=probe,
                upload=upload,
                progress=PassProgress(on_progress, probe.duration_s),
                on_made=on_made,
            )
            report = await maker.make(task, run)
            if report.network_faults and report.faults:
                raise TranscodeFailed(FailCode.SOURCE_UNREACHABLE, detail="faults while reading")
            await output_validation.check_decoding(
                folder, task.names, upload.sampled, first_s=output_validation.ENCODED_SAMPLE_S
            )
    return report
