"""Make renditions of a source on this machine: one pass, from the source's address to a sink.

The source is read by range requests and never downloaded as a whole. Segments are uploaded while
they are made. A pass first copies tracks that need no encoding. Key frames of the copied picture
then decide where all segments begin. The other renditions are made with one decode. The result is
complete and validated. The caller decides about passes and retries, and writes the master playlist.
"""

from collections.abc import Awaitable, Collection, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from portal.concurrency import task_group
from portal.telemetry.tracing import span
from portal.transcoding import errors
from portal.transcoding.copying.remux import remux
from portal.transcoding.encoding import (
    continuation,
    ffmpeg,
    finishing,
    output_validation,
    segment_upload,
)
from portal.transcoding.encoding.command import Encode
from portal.transcoding.encoding.ffmpeg import RunReport
from portal.transcoding.encoding.pictures import put_poster
from portal.transcoding.encoding.progress import TRANSCODED_PERCENT, OnProgress, PassProgress, Stage
from portal.transcoding.encoding.runs import OneRun, RunMaker
from portal.transcoding.encoding.source_proxy import proxied
from portal.transcoding.packaging.hls import MediaPlaylist, target_duration_s
from portal.transcoding.packaging.master import FinishedRendition
from portal.transcoding.packaging.webvtt import Cue
from portal.transcoding.planning.ladder import Plan, Rung, even_starts_s, frame_step
from portal.transcoding.planning.tracks import AudioRung
from portal.transcoding.probing.cuts import SEGMENT_S
from portal.transcoding.probing.facts import Probe

# Share of copying in the time of a pass that also encodes.
_COPY_SHARE = 0.1


@dataclass(frozen=True, kw_only=True, slots=True)
class PassOutput:
    """Result of a pass; only a first pass makes a poster.

    `captions` are the cues of each subtitle rendition. `has_faults` means that some of the source
    did not decode: players stop there in a copy of its stream.
    """

    renditions: tuple[FinishedRendition, ...]
    duration_s: float
    has_poster: bool
    has_faults: bool
    notes: tuple[errors.Note, ...]
    captions: Mapping[str, list[Cue]] = field(default_factory=dict)


async def make_renditions(
    source_url: str,
    probe: Probe,
    plan: Plan,
    *,
    wanted: Collection[str],
    is_first: bool,
    reference: MediaPlaylist | None,
    sink: segment_upload.Sink,
    work_dir: Path,
    on_progress: OnProgress,
    runs: continuation.Runs | None = None,
    on_made: continuation.OnMade | None = None,
) -> PassOutput:
    """Make the `wanted` video renditions, in a temporary folder in `work_dir`.

    The first pass also makes audio, subtitles and the poster. `reference` is the playlist of a
    video rendition of an earlier pass: all segments begin at the same times as its segments. A pass
    with a reference copies nothing.
    Renditions are encoded in these `runs`, by default in one. `on_made` is called for each encoded
    segment in storage. Runs of a later call, with otherwise equal arguments, may resume after these
    segments; sound is then made again.

    Raises CopyUndeliverable, NotContinuable, SourceRejected, TranscodeFailed, DiskFull, or whatever
    the sink raised. However it ends, no process is left running.
    """
    rungs = tuple(rung for rung in plan.video if rung.name in wanted)
    with segment_upload.pass_folder(work_dir) as folder:
        async with proxied(source_url) as source:
            sampled = segment_upload.sampled_segments(probe.duration_s)
            maker = RunMaker(
                source=source,
                probe=probe,
                upload=segment_upload.SegmentUpload(sink, folder, sampled=sampled),
                progress=PassProgress(on_progress, probe.duration_s),
                on_made=on_made,
            )
            one_pass = _Pass(
                source_url=source_url,
                maker=maker,
                plan=plan if is_first else replace(plan, audio=(), subtitles=()),
                rungs=rungs,
                is_first=is_first,
                runs=runs or OneRun(),
            )
            return await one_pass.make(reference)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Pass:
    """Pass over a source."""

    source_url: str
    maker: RunMaker
    plan: Plan
    rungs: tuple[Rung, ...]
    is_first: bool
    runs: continuation.Runs

    @property
    def probe(self) -> Probe:
        return self.maker.probe

    @property
    def upload(self) -> segment_upload.SegmentUpload:
        return self.maker.upload

    @property
    def progress(self) -> PassProgress:
        return self.maker.progress

    async def make(self, reference: MediaPlaylist | None) -> PassOutput:
        await self.progress.stage(Stage.TRANSCODING)
        async with task_group() as tasks:
            poster = tasks.create_task(self._put_poster())
            copied = await self._copy()
            reference = next(iter(copied.values()), reference)
            starts_s = even_starts_s(self.plan, self.probe.video)
            task = Encode(
                source_url=self.maker.source.name,
                probe=self.probe,
                plan=self.plan,
                rungs=[rung for rung in self.rungs if rung.name not in copied],
                audio=[rung for rung in self.plan.audio if rung.name not in copied],
                subtitles=self.plan.subtitles,
                starts_s=reference.starts_s if reference else starts_s,
            )
            report = await self._encode(task)
            try:
                self._judge(copied, report)
                await self.progress.stage(Stage.FINISHING, TRANSCODED_PERCENT)
                with span("finish"):
                    output = await self._finish(copied, reference, report, poster)
            except errors.SourceRejected as exc:
                # An interrupted read looks to ffmpeg like the end of the file, or like damage.
                if report.network_faults:
                    raise errors.TranscodeFailed(
                        errors.FailCode.SOURCE_UNREACHABLE, detail=exc.detail
                    ) from exc
                raise
        await self.progress.stage(Stage.FINISHING, 100.0)
        return output

    async def _put_poster(self) -> bool:
        return self.is_first and await put_poster(self.maker.source, self.probe, self.upload)

    async def _copy(self) -> finishing.Playlists:
        """Copy the source's video, and the sound that is planned to be; return the playlists."""
        rung = next((rung for rung in self.rungs if rung.copied), None)
        if rung is None:
            return {}
        tracks = {rung.name: self.probe.video.index}
        tracks |= {sound.name: sound.index for sound in self.plan.audio if sound.copied}
        self.progress.next_run(ends_at=1.0 if len(self.rungs) == 1 else _COPY_SHARE)
        with span("copy", renditions=" ".join(tracks)):
            copied = await self.upload.during(partial(self._remux, tracks), tracks)
        for name in tracks:
            if name not in copied:
                await self.upload.discard(name)
        playlists = await finishing.list_segments(self.upload, copied)
        segments = playlists[rung.name].segments
        output_validation.check_copy(
            [self.upload.facts[f"{rung.name}/{segment.uri}"] for segment in segments], self.probe
        )
        if len(self.rungs) > 1:
            # Viewers of the unfinished film need copied sound beside the encoded picture.
            for name in playlists.keys() - {rung.name}:
                for segment in playlists[name].segments:
                    await self.maker.segment_stored(f"{name}/{segment.uri}")
        return playlists

    async def _remux(
        self, tracks: Mapping[str, int], throttle: segment_upload.Throttle
    ) -> list[str]:
        """Copy tracks, check that samples of them decode, and return the names of the copies."""
        dropped = await remux(
            self.source_url,
            tracks=tracks,
            end_s=self.plan.picture_s or self.plan.duration_s,
            work_dir=self.upload.work_dir,
            on_progress=self.progress.encoded,
            paused=throttle.paused,
            timeout_s=ffmpeg.run_limit_s(self.probe.duration_s),
        )
        copied = [name for name in tracks if name not in dropped]
        try:
            await output_validation.check_decoding(
                self.upload.work_dir,
                copied,
                self.upload.sampled,
                first_s=output_validation.COPIED_SAMPLE_S,
            )
        except errors.TranscodeFailed as exc:
            raise errors.CopyUndeliverable("undecodable", detail=exc.detail) from exc
        return copied

    async def _encode(self, task: Encode) -> RunReport:
        """Encode the video in runs, and sound and subtitles at the same time.

        If the video is one run, all are made with one decode.
        """
        if not task.names:
            return RunReport()
        if not task.rungs:
            self.progress.next_run(ends_at=1.0)
            return await self.maker.make_whole(task)
        await self.runs.begin(task.starts_s)
        run = await self.runs.next()
        without_video = replace(task, rungs=())
        if (run is None or not run.is_plain) and without_video.names:
            async with task_group() as tasks:
                making_sound = tasks.create_task(self.maker.make_whole(without_video))
                report = await self._make_runs(replace(task, audio=(), subtitles=()), run)
            report.network_faults += making_sound.result().network_faults
            report.unheard |= making_sound.result().unheard
            return report
        return await self._make_runs(task, run)

    async def _make_runs(self, task: Encode, run: continuation.Run | None) -> RunReport:
        report = RunReport()
        unheard: set[int] = set()
        while run is not None:
            report = await self.maker.make(task, run)
            unheard |= report.unheard
            await self.runs.done(run, faults=report.faults, network_faults=report.network_faults)
            run = await self.runs.next()
        whole = await self.runs.whole()
        if whole is None:
            return report
        for name, rendition in whole.renditions.items():
            await self.upload.replace(name, rendition)
        frames = max(rendition.frames for rendition in whole.renditions.values())
        return RunReport(
            # Frames that were left out to reduce the rate were decoded, too.
            frames_decoded=frames * frame_step(self.probe.video.fps),
            corrupt_frames=whole.faults,
            network_faults=whole.network_faults,
            unheard=unheard,
        )

    def _judge(self, copied: Collection[str], report: RunReport) -> None:
        """Raise SourceRejected, TranscodeFailed or CopyUndeliverable if ffmpeg's report is bad."""
        output_validation.check_damage(output_validation.damaged_share(self.probe, report))
        output_validation.check_source_read(self.probe, report)
        if self.plan.is_held:
            output_validation.check_frames(self.probe, report)
        if copied and report.faults:
            # Players stop at faults that ffmpeg decodes around.
            detail = f"{report.faults} faults while decoding"
            raise errors.CopyUndeliverable("faults", detail=detail)

    async def _finish(
        self,
        copied: Collection[str],
        reference: MediaPlaylist | None,
        report: RunReport,
        poster: Awaitable[bool],
    ) -> PassOutput:
        """Validate the segments, and upload playlists and init segments."""
        upload = self.upload
        audio = self._heard_sound(report)
        names = [rung.name for rungs in (self.rungs, audio) for rung in rungs]
        playlists = await finishing.list_segments(upload, names)
        starts_s = (reference or playlists[self.rungs[0].name]).starts_s
        for rung in self.rungs:
            playlist = playlists[rung.name]
            output_validation.check_duration(playlist.duration_s, self.plan.picture_s)
            output_validation.check_aligned(
                rung.name, playlist, starts_s, frame_s=float(1 / rung.fps)
            )
        encoded = [name for name in names if name not in copied]
        await output_validation.check_decoding(
            upload.work_dir, encoded, upload.sampled, first_s=output_validation.ENCODED_SAMPLE_S
        )
        duration_s = max(playlist.duration_s for playlist in playlists.values())
        if reference and not self.is_first:
            target_s = reference.target_duration_s
        else:
            segments = (each for playlist in playlists.values() for each in playlist.segments)
            target_s = max(SEGMENT_S, target_duration_s(segments))
        videos = [
            await finishing.finish_video(rung, playlists[rung.name], upload, target_s=target_s)
            for rung in self.rungs
        ]
        sounds = [
            await finishing.finish_audio(rung, playlists[rung.name], upload, target_s=target_s)
            for rung in audio
        ]
        tracks = [
            (rung, await finishing.read_subtitles(rung, upload)) for rung in self.plan.subtitles
        ]
        subtitles = [
            await finishing.finish_subtitles(rung, cues, upload, duration_s=duration_s)
            for rung, cues in tracks
            if cues is not None
        ]
        return PassOutput(
            renditions=(*videos, *sounds, *subtitles),
            duration_s=duration_s,
            has_poster=await poster,
            has_faults=bool(report.faults),
            notes=output_validation.notes_for(
                self.probe,
                damaged_share=output_validation.damaged_share(self.probe, report),
                lacks_sound=len(audio) < len(self.plan.audio),
                lacks_subtitles=len(subtitles) < len(tracks),
            ),
            captions={rung.name: cues for rung, cues in tracks if cues is not None},
        )

    def _heard_sound(self, report: RunReport) -> list[AudioRung]:
        """Return the planned sound, without tracks of which nothing could be decoded.

        Raises TranscodeFailed if storage may be the cause.
        """
        silent = {
            rung.name for rung in self.plan.audio if report.unheard >= {rung.index, *rung.joined}
        }
        if silent and report.network_faults:
            detail = f"nothing was decoded of {', '.join(silent)}"
            raise errors.TranscodeFailed(errors.FailCode.SOURCE_UNREACHABLE, detail=detail)
        audio = [rung for rung in self.plan.audio if rung.name not in silent]
        return [replace(rung, is_default=number == 0) for number, rung in enumerate(audio)]
