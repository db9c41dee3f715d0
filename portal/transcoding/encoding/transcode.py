"""Make renditions of a source on this machine: one pass, from the source's address to a sink.

The source is read where it lies, by range requests; it is never downloaded as a whole. Segments
are uploaded while ffmpeg runs. A pass first copies what needs no encoding, whose key frames then
decide where all segments begin, and makes the rest with one decode. What it returns is complete
and validated. Not here: which passes there are and when they are retried, and the master playlist,
which the caller writes once a pass is known to count.
"""

import asyncio
from collections.abc import AsyncIterator, Collection, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from portal.concurrency.task_group import task_group
from portal.telemetry.spans import span
from portal.transcoding.encoding import command, ffmpeg
from portal.transcoding.encoding.decoding_check import check_decoding
from portal.transcoding.encoding.ffmpeg_log import RunReport
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
    check_damage,
    check_duration,
    check_source_read,
    damaged_share,
    is_copy_usable,
)
from portal.transcoding.encoding.progress import TRANSCODED_PERCENT, OnProgress, PassProgress, Stage
from portal.transcoding.encoding.segment_upload import SegmentUpload, Sink
from portal.transcoding.encoding.source_proxy import ProxiedSource, proxied
from portal.transcoding.encoding.thumbnails import put_poster, put_storyboard
from portal.transcoding.encoding.work_folder import pass_folder
from portal.transcoding.errors import FailCode, SourceRejected, TranscodeFailed
from portal.transcoding.packaging.hls import MediaPlaylist
from portal.transcoding.packaging.master import FinishedRendition, Kind
from portal.transcoding.planning.ladder import Plan, Rung
from portal.transcoding.planning.notes import Note, notes_for
from portal.transcoding.planning.storyboard import Storyboard, plan_storyboard
from portal.transcoding.planning.tracks import TrackRung
from portal.transcoding.probing.facts import Probe

# Copying takes about this much of the time of a pass that encodes, too.
_COPY_SHARE = 0.1
# Failures of a copy after which encoding may well succeed.
_COPY_FAILURES = (FailCode.FFMPEG_FAILED, FailCode.OUTPUT_INCOMPLETE)


@dataclass(frozen=True, kw_only=True, slots=True)
class PassOutput:
    """What a pass wrote; poster and storyboard are a first pass's."""

    renditions: tuple[FinishedRendition, ...]
    duration_s: float
    has_poster: bool
    has_storyboard: bool
    notes: tuple[Note, ...]


async def make_renditions(
    source_url: str,
    probe: Probe,
    plan: Plan,
    *,
    wanted: Collection[str],
    is_first: bool,
    starts_s: Sequence[float] | None,
    sink: Sink,
    work_dir: Path,
    on_progress: OnProgress,
) -> PassOutput:
    """Make the `wanted` video renditions, in a folder of their own in `work_dir`.

    The first pass also makes audio, subtitles, poster and storyboard. `starts_s` are the segment
    starts of what earlier passes made, in seconds. Returns fewer renditions than wanted only when
    the source's own stream could not be copied.

    Raises SourceRejected, TranscodeFailed, DiskFull, or whatever the sink raised. However it
    ends, no process is left running.
    """
    rungs = tuple(rung for rung in plan.video if rung.name in wanted)
    own_plan = plan if is_first else replace(plan, audio=(), subtitles=())
    width, height = probe.video.width, probe.video.height
    storyboard = plan_storyboard(duration_s=probe.duration_s, width=width, height=height)
    with pass_folder(work_dir) as folder:
        async with proxied(source_url) as source:
            one_pass = _Pass(
                source=source,
                probe=probe,
                plan=own_plan,
                rungs=rungs,
                is_first=is_first,
                storyboard=storyboard if is_first else None,
                upload=SegmentUpload(sink, folder, video_names={rung.name for rung in rungs}),
                progress=PassProgress(on_progress, probe.duration_s),
            )
            return await one_pass.make(starts_s)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Pass:
    """One pass over a source. Only the first copies: it is what playing early is about."""

    source: ProxiedSource
    probe: Probe
    plan: Plan
    rungs: tuple[Rung, ...]
    is_first: bool
    storyboard: Storyboard | None
    upload: SegmentUpload
    progress: PassProgress
    runs: list[RunReport] = field(default_factory=list)

    async def make(self, starts_s: Sequence[float] | None) -> PassOutput:
        try:
            return await self._make(starts_s)
        except SourceRejected as exc:
            # ffmpeg takes a read that broke off for the end of the file, or for damage.
            if any(run.network_faults for run in self.runs):
                raise TranscodeFailed(FailCode.SOURCE_UNREACHABLE, detail=exc.detail) from exc
            raise

    async def _make(self, starts_s: Sequence[float] | None) -> PassOutput:
        await self.progress.stage(Stage.TRANSCODING)
        copied = await self._copy() if self.is_first else None
        if copied:
            starts_s = (await self._playlist(copied)).starts_s
        encoded = self._to_encode(copied)
        report = await self._encode(encoded, starts_s)
        damage = damaged_share(self.probe, report)
        check_damage(damage)
        check_source_read(self.probe, report)
        if copied and report.faults:
            # Players stop at what ffmpeg decodes around; the rung is left to be encoded.
            await self.upload.discard(copied.name)
            if not encoded:
                return await replace(self, rungs=(replace(copied, copied=False),))._make(None)
            copied = None
        await self.progress.stage(Stage.FINISHING, TRANSCODED_PERCENT)
        rungs = (*encoded, copied) if copied else encoded
        with span("finish"):
            output = await self._finish(rungs, starts_s, damage=damage)
        await self.progress.stage(Stage.FINISHING, 100.0)
        return output

    async def _playlist(self, rung: Rung) -> MediaPlaylist:
        playlists = await read_playlists(self.upload, [rung.name])
        return playlists[rung.name]

    def _to_encode(self, copied: Rung | None) -> tuple[Rung, ...]:
        """All but the copied one. What could not be copied waits, if there is something to play."""
        planned_encodes = tuple(rung for rung in self.rungs if not rung.copied)
        is_early = self.is_first and len(self.rungs) < len(self.plan.video)
        if copied or (is_early and planned_encodes):
            return planned_encodes
        return tuple(replace(rung, copied=False) for rung in self.rungs)

    async def _copy(self) -> Rung | None:
        """Remux the source's own stream, if that is planned and turns out well."""
        for rung in self.rungs:
            if rung.copied:
                self.progress.next_run(ends_at=_COPY_SHARE)
                if await self._is_copied(rung):
                    return rung
                await self.upload.discard(rung.name)
        return None

    async def _is_copied(self, rung: Rung) -> bool:
        arguments = command.copy_arguments(self.source.name, self.probe, rung)
        try:
            with span("copy", renditions=rung.name):
                await self._run(arguments, [rung.name])
        except TranscodeFailed as exc:
            if exc.code not in _COPY_FAILURES:
                raise
            return False
        playlist = await self._playlist(rung)
        facts = [self.upload.facts[f"{rung.name}/{each.uri}"] for each in playlist.segments]
        return is_copy_usable(playlist, facts, self.probe)

    async def _encode(self, rungs: Sequence[Rung], starts_s: Sequence[float] | None) -> RunReport:
        """Run the one decode for all that is not copied."""
        task = command.Encode(
            source_url=self.source.name,
            probe=self.probe,
            rungs=rungs,
            audio=self.plan.audio,
            subtitles=self.plan.subtitles,
            storyboard=self.storyboard,
            starts_s=starts_s,
            keeps_times=any(rung.copied for rung in self.plan.video),
        )
        self.progress.next_run(ends_at=1.0)
        names = _names(task.rungs, task.audio, task.subtitles)
        with span("encode", renditions=" ".join(names)):
            return await self._run(command.encode_arguments(task), names)

    async def _run(self, arguments: Sequence[str], names: Sequence[str]) -> RunReport:
        """Run ffmpeg and upload its segments; when one fails the other is stopped."""
        await asyncio.to_thread(_make_folders, self.upload.work_dir, names)
        async with task_group() as tasks:
            encoding = tasks.create_task(
                ffmpeg.run(
                    arguments,
                    on_progress=self.progress.encoded,
                    timeout_s=ffmpeg.run_limit_s(self.probe.duration_s),
                    paused=self.upload.paused,
                    cwd=self.upload.work_dir,
                    environ=self.source.environ,
                )
            )
            tasks.create_task(self.upload.follow(encoding, names))
        self.runs.append(encoding.result())
        return encoding.result()

    async def _finish(
        self, rungs: Sequence[Rung], starts_s: Sequence[float] | None, *, damage: float
    ) -> PassOutput:
        """Validate what was written and upload the files that make it playable."""
        names = _names(rungs, self.plan.audio)
        playlists = await read_playlists(self.upload, names)
        self._check(rungs, playlists, starts_s)
        await check_decoding(self.upload.work_dir, names)
        duration_s = max(playlist.duration_s for playlist in playlists.values())
        renditions = [
            rendition async for rendition in self._renditions(rungs, playlists, duration_s)
        ]
        subtitles = [each for each in renditions if each.kind is Kind.SUBTITLES]
        has_poster = self.is_first and await put_poster(self.upload)
        has_storyboard = self.storyboard is not None and await put_storyboard(
            self.upload, self.storyboard, duration_s=duration_s
        )
        return PassOutput(
            renditions=tuple(renditions),
            duration_s=duration_s,
            has_poster=has_poster,
            has_storyboard=has_storyboard,
            notes=notes_for(
                self.probe,
                damaged_share=damage,
                lacks_subtitles=len(subtitles) < len(self.plan.subtitles),
            ),
        )

    def _check(
        self, rungs: Sequence[Rung], playlists: Playlists, starts_s: Sequence[float] | None
    ) -> None:
        others = playlists[rungs[0].name].starts_s if starts_s is None else starts_s
        for rung in rungs:
            playlist = playlists[rung.name]
            check_duration(playlist.duration_s, self.probe)
            check_aligned(rung.name, playlist, others, frame_s=float(1 / rung.fps))

    async def _renditions(
        self, rungs: Sequence[Rung], playlists: Playlists, duration_s: float
    ) -> AsyncIterator[FinishedRendition]:
        target_s, upload = shared_target_s(playlists), self.upload
        for rung in rungs:
            yield await finish_video(rung, playlists[rung.name], upload, target_s=target_s)
        for audio in self.plan.audio:
            yield await finish_audio(audio, playlists[audio.name], upload, target_s=target_s)
        for subtitles in self.plan.subtitles:
            if finished := await finish_subtitles(subtitles, upload, duration_s=duration_s):
                yield finished


def _names(*kinds: Sequence[Rung | TrackRung]) -> list[str]:
    return [rung.name for rungs in kinds for rung in rungs]


def _make_folders(work_dir: Path, names: Sequence[str]) -> None:
    for name in names:
        (work_dir / name).mkdir(parents=True, exist_ok=True)
