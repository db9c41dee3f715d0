"""Read what ffmpeg writes to stderr: its complaints, its final figures, and why it ended. Pure.

Holds no more than the last few complaints, however many there are.
"""

import re
import signal
from dataclasses import dataclass

from portal.transcoding.errors import FailCode

# The figures at the end are `verbose`. Every line is wanted ("repeat"), and its level, to tell the
# complaints from the rest.
LOG_LEVEL = ("-loglevel", "repeat+level+verbose")

_TAIL_BYTES = 8192
_NO_COMPLAINT = re.compile(rb"\[(info|verbose|debug|trace)\]")
_DECODED = re.compile(
    rb"\[in#0.*\[verbose\]   Input stream #0:\d+ \(video\):.*?"
    rb" (\d+) frames decoded; (\d+) decode errors;"
)
_CORRUPT = re.compile(rb"\[vist#0:.*corrupt decoded frame")
_OUT_OF_MEMORY = re.compile(
    r"Cannot allocate memory|malloc of size \d+ failed|pthread_create.*temporarily unavailable"
)
# Linux repeats this signal every second, and ffmpeg counts. Nobody else sends it signals: it has
# a session of its own, and what this program ends is not judged by its log.
_CPU_LIMIT = re.compile(
    rf"received signal {signal.SIGXCPU.value}|Received > \d system signals, hard exiting"
)
_SIGNAL_LINE = b"received signal"
_NETWORK_ERROR = re.compile(
    r"HTTP error|Server returned|ends prematurely|Connection (refused|reset|timed out)"
    r"|Error reading HTTP response"
)
# The protocols' own complaints; a try or two later all may be well.
_PROTOCOL = re.compile(rb"\[(https?|tcp|tls) @ ")
_SOURCE_ENDED_EARLY = "partial file"


@dataclass(kw_only=True, slots=True)
class RunReport:
    """What ffmpeg says about decoding the video in the end; no frames are None without a decoder.

    `decode_errors` counts packets that gave nothing, `corrupt_frames` frames with patched places,
    `network_faults` complaints about reading the source, most of them overcome.
    """

    frames_decoded: int | None = None
    decode_errors: int = 0
    corrupt_frames: int = 0
    network_faults: int = 0

    @property
    def packets(self) -> int:
        """How many packets were decoded, or were to be."""
        return (self.frames_decoded or 0) + self.decode_errors

    @property
    def faults(self) -> int:
        """How often decoding went wrong."""
        return self.decode_errors + self.corrupt_frames


class FfmpegLog:
    """Takes in stderr as it comes."""

    def __init__(self) -> None:
        self._tail = bytearray()
        self._rest = b""
        self.report = RunReport()

    def feed(self, chunk: bytes) -> None:
        """Take in some bytes, ending anywhere."""
        *lines, rest = (self._rest + chunk).split(b"\n")
        self._rest = rest[-_TAIL_BYTES:]
        for line in lines:
            self._take(line)

    def _take(self, line: bytes) -> None:
        if _NO_COMPLAINT.search(line) is None or _SIGNAL_LINE in line:
            self.report.corrupt_frames += _CORRUPT.search(line) is not None
            self.report.network_faults += _PROTOCOL.match(line) is not None
            self._tail += line + b"\n"
            del self._tail[:-_TAIL_BYTES]
        elif (found := _DECODED.match(line)) is not None:
            self.report.frames_decoded = (self.report.frames_decoded or 0) + int(found[1])
            self.report.decode_errors += int(found[2])

    def text(self) -> str:
        """The last complaints."""
        return (self._tail + self._rest).decode(errors="replace").strip()

    def failure(self, returncode: int | None) -> FailCode | None:
        """Why a run that ended by itself failed, None when it did not."""
        text = self.text()
        network_error = self.report.network_faults or _NETWORK_ERROR.search(text)
        if returncode == 0:
            # ffmpeg takes a connection that broke for good as the end of the file, and is content.
            is_cut = network_error and _SOURCE_ENDED_EARLY in text
            return FailCode.SOURCE_UNREACHABLE if is_cut else None
        if (by_limit := _death_by_limit(returncode, text)) is not None:
            return by_limit
        return FailCode.SOURCE_UNREACHABLE if network_error else FailCode.FFMPEG_FAILED


def _death_by_limit(returncode: int | None, text: str) -> FailCode | None:
    if returncode == -signal.SIGXFSZ:
        return FailCode.OUTPUT_TOO_LARGE
    if returncode == -signal.SIGXCPU or _CPU_LIMIT.search(text):
        return FailCode.TIMED_OUT
    return FailCode.OUT_OF_MEMORY if _OUT_OF_MEMORY.search(text) else None
