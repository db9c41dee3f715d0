"""Make renditions of a source on this machine: one pass, from the source's address to a sink.

The source is read where it lies, by range requests; it is never downloaded as a whole. Segments
are uploaded while they are made. A pass first copies what needs no encoding, whose key frames then
decide where all segments begin, and makes the rest with one decode. What it returns is complete
and validated. Not here: which passes there are and when they are retried, and the master playlist,
which the caller writes once a pass is known to count.
"""

from collections.abc import AsyncIterator, Awaitable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from portal.concurrency import task_group
from portal.telemetry.tracing import span
from portal.transcoding.copying.remux import remux
from portal.transcoding.encoding import command, ffmpeg
from portal.transcoding.encoding.continuation import (
    MadeRendition,
    OnMade,
    continue_after,
)
from portal.transcoding.encoding.encoder_runs import EncoderRuns, tracks
from portal.transcoding.encoding.ffmpeg import RunReport
from portal.transcoding.encoding.finishing import (
    Playlists,
    finish_audio,
    finish_subtitles,
    finish_video,
    read_playlists,
    shared_target_s,
)
from portal.transcoding.encoding.output_validation import (
    check_aligned,
    check_copy,
    check_damage,
    check_decoding,
    check_duration,
    check_source_read,
    damaged_share,
    notes_for,
)
from portal.transcoding.encoding.posters import put_poster
from portal.transcoding.encoding.progress import TRANSCODED_PERCENT, OnProgress, PassProgress, Stage
from portal.transcoding.encoding.segment_upload import (
    SegmentUpload,
    Sink,
    pass_folder,
    sampled_segments,
)
from portal.transcoding.encoding.source_proxy import ProxiedSource, proxied
from portal.transcoding.errors import (
    CopyUndeliverable,
    FailCode,
    Note,
    SourceRejected,
    TranscodeFailed,
)
from portal.transcoding.packaging.hls import MediaPlaylist
from portal.transcoding.packaging.master import FinishedRendition, Kind
from portal.transcoding.planning.ladder import Plan, Rung, frame_step
from portal.transcoding.probing.facts import Probe

# Copying takes about this much of the time of a pass that encodes, too.
_COPY_SHARE = 0.1


@dataclass(frozen=True, kw_only=True, slots=True)
class Resume:
    """What an earlier pass made of the wanted renditions, and how the new segments' names begin."""

    renditions: Mapping[str, MadeRendition]
    prefix: str


@dataclass(frozen=True, kw_only=True, slots=True)
class PassOutput:
    """What a pass wrote; a poster is a first pass's.

    `has_faults` tells that some of the source did not decode, so that its own stream, should it
    have been copied, makes players stop.
    """

    renditions: tuple[FinishedRendition, ...]
    duration_s: float
    has_poster: bool
    has_faults: bool
    notes: tuple[Note, ...]


async def make_renditions(
    source_url: str,
    probe: Probe,
    plan: Plan,
    *,
    wanted: Collection[str],
    is_first: bool,
    reference: MediaPlaylist | None,
    sink: Sink,
    work_dir: Path,
    on_progress: OnProgress,
    resume: Resume | None = None,
    on_made: OnMade | None = None,
) -> PassOutput:
    """Make the `wanted` video renditions, in a folder of their own in `work_dir`.

    The first pass also makes audio, subtitles and the poster. `reference` is the playlist of a
    video rendition that an earlier pass made: all segments begin where its do. What has one copies
    nothing.
    `on_made` is told of each segment of an encoded rendition that is in storage; a later call may
    go on after those (`resume`), with the same arguments else. Sound is then made again.

    Raises CopyUndeliverable, NotContinuable, SourceRejected, TranscodeFailed, DiskFull, or whatever
    the sink raised. However it ends, no process is left running.
    """
    rungs = tuple(rung for rung in plan.video if rung.name in wanted)
    with pass_folder(work_dir) as folder:
        async with proxied(source_url) as source:
            video_names = {rung.name for rung in rungs}
            sampled = sampled_segments(probe.duration_s)
            upload = SegmentUpload(sink, folder, video_names=video_names, sampled=sampled)
            progress = PassProgress(on_progress, probe.duration_s)
            one_pass = _Pass(
                source_url=source_url,
                source=source,
                probe=probe,
                plan=plan if is_first else replace(plan, audio=(), subtitles=()),
                rungs=rungs,
                is_first=is_first,
                upload=upload,
                progress=progress,
                resume=resume,
                runs=EncoderRuns(source, probe, upload, progress, on_made),
            )
            return await one_pass.make(reference)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Pass:
    """One pass over a source."""

    source_url: str
    source: ProxiedSource
    probe: Probe
    plan: Plan
    rungs: tuple[Rung, ...]
    is_first: bool
    upload: SegmentUpload
    progress: PassProgress
    resume: Resume | None
    runs: EncoderRuns

    async def make(self, reference: MediaPlaylist | None) -> PassOutput:
        try:
            return await self._make(reference)
        except SourceRejected as exc:
            # ffmpeg takes a read that broke off for the end of the file, or for damage.
            if any(report.network_faults for report in self.runs.reports):
                raise TranscodeFailed(FailCode.SOURCE_UNREACHABLE, detail=exc.detail) from exc
            raise

    async def _make(self, reference: MediaPlaylist | None) -> PassOutput:
        await self.progress.stage(Stage.TRANSCODING)
        async with task_group() as tasks:
            poster = tasks.create_task(self._put_poster())
            copied = await self._copy()
            reference = next(iter(copied.values()), reference)
            report = await self._encode(copied, reference)
            self._judge(copied, report)
            await self.progress.stage(Stage.FINISHING, TRANSCODED_PERCENT)
            with span("finish"):
                output = await self._finish(copied, reference, report, poster)
        await self.progress.stage(Stage.FINISHING, 100.0)
        return output

    def _judge(self, copied: Collection[str], report: RunReport) -> None:
        """Raise SourceRejected, TranscodeFailed or CopyUndeliverable for what ffmpeg reported."""
        check_damage(damaged_share(self.probe, report))
        check_source_read(self.probe, report)
        if copied and report.faults:
            # Players stop at what ffmpeg decodes around.
            raise CopyUndeliverable("faults", detail=f"{report.faults} faults while decoding")

    async def _put_poster(self) -> bool:
        return self.is_first and await put_poster(self.source, self.probe, self.upload)

    async def _copy(self) -> Playlists:
        """Copy the source's own video, and sound that is planned to be; answers what was."""
        rung = next((rung for rung in self.rungs if rung.copied), None)
        if rung is None:
            return {}
        tracks = {rung.name: self.probe.video.index}
        tracks |= {it.name: it.index for it in self.plan.audio if it.copied}
        self.progress.next_run(ends_at=1.0 if len(self.rungs) == 1 else _COPY_SHARE)
        with span("copy", renditions=" ".join(tracks)):
            copied = await self.upload.during(lambda: self._remux(tracks), tracks)
        for name in tracks:
            if name not in copied:
                await self.upload.discard(name)
        playlists = await read_playlists(self.upload, copied)
        segments = playlists[rung.name].segments
        check_copy([self.upload.facts[f"{rung.name}/{it.uri}"] for it in segments], self.probe)
        return playlists

    async def _remux(self, tracks: Mapping[str, int]) -> list[str]:
        """Copy, and check that while the last segments are uploaded; answers what was copied."""
        report = await remux(
            self.source_url,
            tracks=tracks,
            work_dir=self.upload.work_dir,
            on_progress=self.progress.encoded,
            paused=self.upload.paused,
            timeout_s=ffmpeg.run_limit_s(self.probe.duration_s),
        )
        copied = [name for name in tracks if name not in report.dropped]
        try:
            await self._check_decoding(copied)
        except TranscodeFailed as exc:
            raise CopyUndeliverable("undecodable", detail=exc.detail) from exc
        return copied

    async def _check_decoding(self, names: Sequence[str]) -> None:
        await check_decoding(self.upload.work_dir, names, self.upload.sampled)

    async def _encode(self, copied: Collection[str], reference: MediaPlaylist | None) -> RunReport:
        """Run the one decode for all that is not copied."""
        task = command.Encode(
            source_url=self.source.name,
            probe=self.probe,
            rungs=[rung for rung in self.rungs if rung.name not in copied],
            audio=[rung for rung in self.plan.audio if rung.name not in copied],
            subtitles=self.plan.subtitles,
            starts_s=reference.starts_s if reference else None,
            keeps_times=self.plan.keeps_times,
        )
        if self.resume and task.rungs:
            return await self._go_on(task, self.resume)
        if not tracks(task):
            return RunReport()
        self.progress.next_run(ends_at=1.0)
        return await self.runs.run(task)

    async def _go_on(self, task: command.Encode, resume: Resume) -> RunReport:
        """Make what is missing of the video, and beside it all sound and subtitles."""
        after = continue_after(
            resume.renditions,
            task.rungs,
            starts_s=task.starts_s,
            end_s=self.probe.video.duration_s,
            prefix=resume.prefix,
        )
        self.upload.go_on(after, sampled_segments(self.probe.duration_s, after))
        self.progress.next_run(ends_at=1.0, from_s=float(after.from_s))
        video = replace(task, audio=(), subtitles=(), after=after)
        others = replace(task, rungs=())
        report = await self.runs.run(video, *([others] if tracks(others) else []))
        # Each frame that is kept was decoded, and those that were left out for it.
        before = after.frames * frame_step(self.probe.video.fps)
        return replace(report, frames_decoded=(report.frames_decoded or 0) + before)

    async def _finish(
        self,
        copied: Collection[str],
        reference: MediaPlaylist | None,
        report: RunReport,
        poster: Awaitable[bool],
    ) -> PassOutput:
        """Validate what was written and upload the files that make it playable."""
        names = [rung.name for rungs in (self.rungs, self.plan.audio) for rung in rungs]
        playlists = await read_playlists(self.upload, names)
        self._check(playlists, reference)
        await self._check_decoding([name for name in names if name not in copied])
        duration_s = max(playlist.duration_s for playlist in playlists.values())
        target_s = reference.target_duration_s if reference and not self.is_first else None
        renditions = [
            rendition
            async for rendition in self._renditions(
                playlists, duration_s, target_s=target_s or shared_target_s(playlists)
            )
        ]
        subtitles = [each for each in renditions if each.kind is Kind.SUBTITLES]
        return PassOutput(
            renditions=tuple(renditions),
            duration_s=duration_s,
            has_poster=await poster,
            has_faults=bool(report.faults),
            notes=notes_for(
                self.probe,
                damaged_share=damaged_share(self.probe, report),
                lacks_subtitles=len(subtitles) < len(self.plan.subtitles),
            ),
        )

    def _check(self, playlists: Playlists, reference: MediaPlaylist | None) -> None:
        others = reference or playlists[self.rungs[0].name]
        for rung in self.rungs:
            playlist = playlists[rung.name]
            check_duration(playlist.duration_s, self.probe)
            check_aligned(rung.name, playlist, others.starts_s, frame_s=float(1 / rung.fps))

    async def _renditions(
        self, playlists: Playlists, duration_s: float, *, target_s: int
    ) -> AsyncIterator[FinishedRendition]:
        upload = self.upload
        for rung in self.rungs:
            yield await finish_video(rung, playlists[rung.name], upload, target_s=target_s)
        for audio in self.plan.audio:
            yield await finish_audio(audio, playlists[audio.name], upload, target_s=target_s)
        for subtitles in self.plan.subtitles:
            if finished := await finish_subtitles(subtitles, upload, duration_s=duration_s):
                yield finished
