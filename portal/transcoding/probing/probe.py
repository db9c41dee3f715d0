"""Find out what a source holds, or refuse it within seconds and say why: the parent's side.

The parsing happens in the confined process that this module starts. How FFmpeg is told to read a
source is here too, for all that do.
"""

import json
import math
import sys
from asyncio import gather, timeout
from dataclasses import dataclass
from pathlib import Path

from portal.processes.child import Limits, ask, read_tail, spawn, stop, was_ended_from_outside
from portal.text import duration_in_words
from portal.transcoding.errors import FailCode, RejectCode, SourceRejected, TranscodeFailed
from portal.transcoding.probing.facts import Probe, interpret

_READ_TIMEOUT_US = 30_000_000
_RECONNECT_MAX_S = 15
_FILE = "file"
# What FFmpeg is told of a source that is read whole, over a network that may break off.
_PERSISTENT = {
    "rw_timeout": str(_READ_TIMEOUT_US),
    "reconnect": "1",
    "reconnect_on_network_error": "1",
    "reconnect_on_http_error": "429,5xx",
    "reconnect_delay_max": str(_RECONNECT_MAX_S),
}
# It leaves no compiled modules behind (-B): a limit on files would leave it half of one.
_CHILD = ("-I", "-B", "-m", "portal.transcoding.probing")
# Measured: 0.13 GiB resident for an 8192x4320 picture, 1.7 GiB for an index of 50 million samples,
# twenty times what half a day at 60 frames per second has.
_MEMORY_BYTES = 4 * 1024**3
# A file that keeps the processor busy is told from a storage that doesn't answer by this share
# of the time limit, spent computing.
_CPU_SHARE = 0.6
# It has nothing to write but its answer, and that goes through a pipe.
_FILE_BYTES = 1
# Decoders and scalers break down somewhere above, whatever the number of pixels.
_MAX_SIDE_PX = 16_384
# Below this share of samples inside the file an upload counts as cut off. What is left of the
# others is worth publishing, with a word about what is missing.
_MIN_READABLE_SHARE = 0.9
_STDERR_TAIL_BYTES = 4000
# Far more than any answer has. A child that a file has taken over may write without end.
_MAX_ANSWER_BYTES = 1024**2


def source_address(source_url: str) -> tuple[str, str]:
    """The address as FFmpeg takes it, and the protocols it may use to read it."""
    if source_url.startswith(("http://", "https://")):
        return source_url, "http,https,tcp,tls"
    if Path(source_url).is_absolute():
        return f"file:{source_url}", _FILE
    raise ValueError("a source is an http(s) address or an absolute path")


def reading_options(protocols: str) -> dict[str, str]:
    """FFmpeg's options for reading a whole source by these protocols, in spite of short faults."""
    return {"protocol_whitelist": protocols, **(_PERSISTENT if protocols != _FILE else {})}


@dataclass(frozen=True, kw_only=True, slots=True)
class SourceLimits:
    """What a source may measure; 0 means no limit.

    `max_pixels` is of one frame, `max_transcode_s` what a worker is expected to take for all of its
    renditions; planning tells that.
    """

    max_pixels: int = 8192 * 4320
    max_duration_s: int = 12 * 3600
    max_size_bytes: int = 100 * 10**9
    max_transcode_s: int = 24 * 3600

    def rejection(self, code: RejectCode, detail: str = "") -> SourceRejected:
        """The refusal of a source; one that exceeds a limit names it."""
        side = f"{_MAX_SIDE_PX} pixels a side"
        pixels = f"{self.max_pixels / 1e6:.3g} megapixels or {side}"
        limits = {
            RejectCode.TOO_LARGE: pixels if self.max_pixels else side,
            RejectCode.TOO_LONG: duration_in_words(self.max_duration_s),
            RejectCode.FILE_TOO_LARGE: f"{self.max_size_bytes / 1e9:.3g} GB",
            RejectCode.TOO_MUCH_WORK: duration_in_words(self.max_transcode_s),
        }
        return SourceRejected(code, detail=detail, limit=limits.get(code, ""))


async def examine(source_url: str, *, limits: SourceLimits, timeout_s: float = 30) -> str:
    """Read a source's index and decode its first frame; the answer is JSON for `judge`.

    Raises TranscodeFailed when it takes too long or was ended from outside, SourceRejected when
    the source crashed what examines it.
    """
    address, protocols = source_address(source_url)
    request = {
        "source": address,
        "protocols": protocols,
        "timeout_s": timeout_s,
        "max_pixels": limits.max_pixels,
        "max_side_px": _MAX_SIDE_PX,
        "max_size_bytes": limits.max_size_bytes,
    }
    confined = Limits(
        nice=0,
        memory_bytes=_MEMORY_BYTES,
        cpu_s=math.ceil(timeout_s * _CPU_SHARE),
        file_bytes=_FILE_BYTES,
    )
    process = await spawn((sys.executable, *_CHILD), limits=confined, stdin=True)
    try:
        async with timeout(timeout_s):
            await ask(process, request)
            stdout, stderr = await gather(
                read_tail(process.stdout, _MAX_ANSWER_BYTES),
                read_tail(process.stderr, _STDERR_TAIL_BYTES),
            )
            await process.wait()
    except TimeoutError:
        raise TranscodeFailed(FailCode.PROBE_FAILED, detail="probe timed out") from None
    finally:
        await stop(process)
    returncode = process.returncode or 0
    if returncode == 0:
        return stdout.decode()
    detail = f"probe ended with {returncode}: {stderr.decode(errors='replace')}"
    if returncode < 0 and not was_ended_from_outside(returncode):
        # The file crashed the parser or ran into a limit, and it will do so again.
        raise SourceRejected(RejectCode.DAMAGED, detail=detail)
    raise TranscodeFailed(FailCode.PROBE_FAILED, detail=detail)


def judge(answer: str, limits: SourceLimits) -> Probe:
    """What the answer of `examine` tells.

    Raises SourceRejected when the source can't be published, TranscodeFailed when it could not be
    reached.
    """
    facts = json.loads(answer)
    error, detail = facts.get("error"), facts.get("detail", "")
    if error == "unreachable":
        raise TranscodeFailed(FailCode.SOURCE_UNREACHABLE, detail=detail)
    if error is not None:
        raise limits.rejection(RejectCode(error), detail)
    if facts["readable_share"] < _MIN_READABLE_SHARE:
        raise limits.rejection(RejectCode.TRUNCATED)
    found = interpret(facts)
    video = found.video
    for width, height in (
        (video.coded_width, video.coded_height),
        (video.width, video.height),  # stretched pixels can make more of it
    ):
        if max(width, height) > _MAX_SIDE_PX or 0 < limits.max_pixels < width * height:
            raise limits.rejection(RejectCode.TOO_LARGE)
    if 0 < limits.max_duration_s < found.duration_s:
        raise limits.rejection(RejectCode.TOO_LONG)
    return found
