"""Examine a source, or refuse it with a reason within seconds: the parent's side.

A confined process, which this module starts, parses the file. The module also has the options by
which all parts of the portal read a source with FFmpeg.
"""

import json
import math
import sys
from asyncio import gather, timeout
from dataclasses import dataclass
from pathlib import Path

from portal.locale.messages import Message, Number
from portal.processes.child import (
    OUT_OF_MEMORY,
    Limits,
    ask,
    lacks_memory,
    read_tail,
    spawn,
    stop,
    was_ended_from_outside,
)
from portal.text import duration_in_words
from portal.transcoding.errors import (
    LARGEST_FILE,
    LARGEST_PICTURE,
    LARGEST_SIDE,
    FailCode,
    RejectCode,
    SourceRejected,
    TranscodeFailed,
)
from portal.transcoding.probing.facts import Probe, interpret

_READ_TIMEOUT_US = 30_000_000
_RECONNECT_MAX_S = 15
_FILE = "file"
# Options for a source that is read completely, over a network with interruptions.
_PERSISTENT = {
    "rw_timeout": str(_READ_TIMEOUT_US),
    "reconnect": "1",
    "reconnect_on_network_error": "1",
    "reconnect_on_http_error": "429,5xx",
    "reconnect_delay_max": str(_RECONNECT_MAX_S),
}
# FFmpeg's decoders for what cameras, phones, browsers, screen recorders and editing programs write.
# Rare decoders have had most of the faults that hostile files exploit.
DECODERS = (
    "aic,av1,dnxhd,dvvideo,h263,h264,hevc,jpeg2000,libdav1d,mjpeg,mpeg1video,mpeg2video,mpeg4,png,"
    "prores,qtrle,vp8,vp9,vvc,"
    "aac,ac3,alac,als,amrnb,eac3,flac,mp3,mp3float,opus,vorbis,wmav2,"
    "pcm_alaw,pcm_f32be,pcm_f32le,pcm_f64be,pcm_f64le,pcm_mulaw,pcm_s8,pcm_s16be,pcm_s16le,"
    "pcm_s24be,pcm_s24le,pcm_s32be,pcm_s32le,pcm_u8,"
    "cc_dec,mov_text"
)
# The child writes no compiled modules (-B), which its limit on files would truncate.
_CHILD = ("-I", "-B", "-m", "portal.transcoding.probing")
# Measured: 0.13 GiB resident for an 8192x4320 picture, 1.7 GiB for an index of 50 million samples,
# twenty times what half a day at 60 frames per second has.
_MEMORY_BYTES = 4 * 1024**3
# Share of the time limit that may be processor time. Beyond it the file is the cause, not a storage
# that doesn't answer.
_CPU_SHARE = 0.6
# The child writes only its answer, into a pipe.
_FILE_BYTES = 1
# Decoders and scalers fail at longer sides, whatever the number of pixels.
_MAX_SIDE_PX = 16_384
# An upload with a smaller share of its samples inside the file counts as truncated. Others are
# published, with a note.
_MIN_READABLE_SHARE = 0.9
_STDERR_TAIL_BYTES = 4000
# Far longer than any answer. A child that a hostile file controls may write endlessly.
_MAX_ANSWER_BYTES = 1024**2


def source_address(source_url: str) -> tuple[str, str]:
    """Return a source's address in FFmpeg's notation, and the protocols to read it by."""
    if source_url.startswith(("http://", "https://")):
        return source_url, "http,https,tcp,tls"
    if Path(source_url).is_absolute():
        return f"file:{source_url}", _FILE
    raise ValueError("The source must be an http(s) address or an absolute path.")


def reading_options(protocols: str) -> dict[str, str]:
    """Return FFmpeg's options to read a source by these protocols and `DECODERS`, with retries."""
    return {
        "protocol_whitelist": protocols,
        "codec_whitelist": DECODERS,
        **(_PERSISTENT if protocols != _FILE else {}),
    }


@dataclass(frozen=True, kw_only=True, slots=True)
class SourceLimits:
    """Limits on sources; 0 means no limit.

    `max_pixels` limits one frame, `max_transcode_s` the expected time of a worker for all
    renditions, which is known from the plan.
    """

    max_pixels: int = 8192 * 4320
    max_duration_s: int = 12 * 3600
    max_size_bytes: int = 100 * 10**9
    max_transcode_s: int = 24 * 3600

    def rejection(self, code: RejectCode, detail: str = "") -> SourceRejected:
        """Return the refusal of a source, with the limit that it exceeds, or its codec."""
        side = Message(LARGEST_SIDE, side=_MAX_SIDE_PX)
        megapixels = Number(f"{self.max_pixels / 1e6:.3g}")
        pixels = Message(LARGEST_PICTURE, pixels=megapixels, side=_MAX_SIDE_PX)
        gigabytes = Number(f"{self.max_size_bytes / 1e9:.3g}")
        limits = {
            RejectCode.UNSUPPORTED_CODEC: detail,
            RejectCode.TOO_LARGE: pixels if self.max_pixels else side,
            RejectCode.TOO_LONG: duration_in_words(self.max_duration_s),
            RejectCode.FILE_TOO_LARGE: Message(LARGEST_FILE, size=gigabytes),
            RejectCode.TOO_MUCH_WORK: duration_in_words(self.max_transcode_s),
        }
        return SourceRejected(code, detail=detail, limit=limits.get(code, ""))


async def examine(source_url: str, *, limits: SourceLimits, timeout_s: float = 30) -> str:
    """Read a source's index and decode some frames; return JSON for `judge`.

    Raises TranscodeFailed if the child takes too long or is killed, SourceRejected if the source
    crashes it.
    """
    address, protocols = source_address(source_url)
    request = {
        "source": address,
        "protocols": protocols,
        "decoders": DECODERS,
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
        # A file that takes too much computing ends by the limit on processor time.
        raise TranscodeFailed(FailCode.SOURCE_UNREACHABLE, detail="probe timed out") from None
    finally:
        await stop(process)
    returncode = process.returncode or 0
    if returncode == 0:
        answer = stdout.decode()
        if OUT_OF_MEMORY.search(answer) and lacks_memory():
            raise TranscodeFailed(FailCode.OUT_OF_MEMORY, detail=answer)
        return answer
    detail = f"probe ended with {returncode}: {stderr.decode(errors='replace')}"
    if returncode < 0 and not was_ended_from_outside(returncode):
        # The file crashed the parser or ran into a limit, and it will do so again.
        raise SourceRejected(RejectCode.DAMAGED, detail=detail)
    is_out_of_memory = OUT_OF_MEMORY.search(detail) is not None
    code = FailCode.OUT_OF_MEMORY if is_out_of_memory else FailCode.PROBE_FAILED
    raise TranscodeFailed(code, detail=detail)


def judge(answer: str, limits: SourceLimits) -> Probe:
    """Return the facts in an answer of `examine`.

    Raises SourceRejected if the source can't be published, TranscodeFailed if it could not be read.
    """
    facts = json.loads(answer)
    error = facts.get("error")
    detail = facts.get("detail", "")
    if error == "unreachable":
        raise TranscodeFailed(FailCode.SOURCE_UNREACHABLE, detail=detail)
    if error is not None:
        raise limits.rejection(RejectCode(error), detail)
    if facts["readable_share"] < _MIN_READABLE_SHARE:
        raise limits.rejection(RejectCode.TRUNCATED)
    probe = interpret(facts)
    video = probe.video
    # Frames are never stretched to square pixels at their own size, only to that of a rendition.
    width, height = video.coded_width, video.coded_height
    if max(width, height) > _MAX_SIDE_PX or 0 < limits.max_pixels < width * height:
        raise limits.rejection(RejectCode.TOO_LARGE)
    if 0 < limits.max_duration_s < probe.duration_s:
        raise limits.rejection(RejectCode.TOO_LONG)
    return probe
