"""Make the renditions of a pass: after what is made already, and giving way to other videos."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass

from portal.concurrency import task_group
from portal.processing import made_segments
from portal.processing.attempts import OpenAttempt
from portal.processing.giving_way import Turn
from portal.processing.heartbeat import Heartbeat
from portal.processing.made_segments import Begun
from portal.processing.outputs import StorageSink
from portal.processing.pace import WorkMeter
from portal.processing.tools import Tools
from portal.transcoding.encoding.continuation import NotContinuable
from portal.transcoding.encoding.progress import Stage
from portal.transcoding.encoding.transcode import PassOutput, Resume, make_renditions
from portal.transcoding.packaging.hls import MediaPlaylist
from portal.transcoding.packaging.master import master_playlist
from portal.transcoding.planning.ladder import Plan
from portal.transcoding.probing.facts import Probe

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """What a pass made; renditions of `folders` lie with the attempts of these numbers."""

    output: PassOutput
    folders: Mapping[str, int]

    @property
    def master(self) -> str:
        """A master playlist in the folder of the attempt."""
        return master_playlist(
            [
                (f"../{self.folders[it.name]}/" if it.name in self.folders else "", it)
                for it in self.output.renditions
            ]
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class EncodingPass:
    """The `wanted` renditions of a plan, to be made of a source under the lease of an attempt."""

    attempt: OpenAttempt
    tools: Tools
    heartbeat: Heartbeat
    source_url: str
    source: Probe
    plan: Plan
    wanted: tuple[str, ...]
    reference: MediaPlaylist | None

    async def make(self) -> Made:
        """Make them, after what an earlier attempt made of them if that is of use.

        Raises as `make_renditions` does, GaveWay, or LeaseLost.
        """
        begun = await made_segments.find(self.attempt.video_id, self._encoded, self.tools.storage)
        try:
            return await self._make_after(begun)
        except NotContinuable as exc:
            told = {"action": "begins_anew", "attempt": self.attempt.number}
            logger.warning("Pass begins anew: %s", exc, extra=told)
            return await self._make_after(None)

    @property
    def _encoded(self) -> list[str]:
        copied = {rung.name for rung in self.plan.video if rung.copied}
        return [name for name in self.wanted if name not in copied]

    async def _make_after(self, begun: Begun | None) -> Made:
        await self.heartbeat.begin_pass(begun)
        share = begun.made_s / self.source.duration_s if begun else 0.0
        meter = WorkMeter(self.heartbeat.report, self.tools.limits, begun=share)
        folders = dict.fromkeys(begun.renditions, begun.folder) if begun else {}
        video = self.attempt.video
        job_id = video.complete_job_id if self.attempt.wanted else video.first_job_id
        sink = StorageSink(
            self.tools.storage, self.attempt, folder=self.attempt.number, folders=folders
        )
        turn = Turn(job_id=job_id or 0, must_play=not self.attempt.wanted)
        async with task_group() as tasks:
            watching = tasks.create_task(turn.watch()) if self._encoded else None
            output = await self._run(begun, meter, turn, sink)
            if watching:
                watching.cancel()
        if self._encoded:
            expected_s = self.plan.encode_s(self.wanted) * (1 - share)
            self.tools.pace.note(expected_s=expected_s, taken_s=meter.worked_s)
        return Made(output=output, folders=folders)

    async def _run(
        self, begun: Begun | None, meter: WorkMeter, turn: Turn, sink: StorageSink
    ) -> PassOutput:
        async def report(stage: Stage, percent: float, eta_s: float | None) -> None:
            turn.saw(stage, eta_s)
            await meter.follow(stage, percent, eta_s)

        prefix = f"{self.attempt.number}-"
        return await make_renditions(
            self.source_url,
            self.source,
            self.plan,
            wanted=self.wanted,
            is_first=not self.attempt.wanted,
            reference=self.reference,
            sink=sink,
            work_dir=self.tools.work_dir,
            on_progress=report,
            resume=Resume(renditions=begun.renditions, prefix=prefix) if begun else None,
            on_made=self.heartbeat.stored,
        )
