"""Copy one source's tracks into segments, and print progress and result as JSON.

The program runs in a separate, confined process (`python -I -m portal.transcoding.copying`). The
request is read from stdin: argv is visible in process lists, and the address may be signed. Each
line of output is an object: `at_s` as progress; `dropped`, `pieces` and `left_out_frames`, or
`error`, at the end.
"""

import json
import sys
from pathlib import Path
from typing import Any

import av
from av.container import InputContainer

from portal.transcoding.copying.rendition import NotWritten, Rendition
from portal.transcoding.copying.tracks import AudioCopy, VideoCopy
from portal.transcoding.errors import CopyUndeliverable
from portal.transcoding.probing.source import (
    UNREACHABLE,
    film_start_s,
    open_source,
    packets,
    read_complaints,
)


class _Copy:
    """Copy of a source's tracks."""

    def __init__(self, container: InputContainer, request: dict[str, Any]) -> None:
        self._container = container
        self._folder = Path(request["folder"])
        self._position_s = 0.0
        (name, index), *audio = request["tracks"].items()
        self._stream = container.streams[index]
        self._hidden_from_s: dict[str, float] = request["hidden_from_s"]
        lead_s: float | None = request["lead_s"]
        self._start_s = film_start_s(container) + (lead_s or 0.0)
        span_s = (self._start_s, self._start_s + request["end_s"])
        self._video = VideoCopy(
            self._stream,
            self._rendition(name),
            span_s=span_s,
            has_lead=lead_s is not None,
            hidden_from_s=self._hidden_from_s.get(name),
        )
        self._audio = {name: self._audio_copy(name, index) for name, index in audio}

    def run(self) -> dict[str, Any]:
        """Copy all tracks, and return the answer about them.

        Raises CopyUndeliverable, NotWritten, or the exceptions of reading.
        """
        by_index = {track.index: track for track in self._audio.values()}
        expected = _packet_count(self._stream)
        streams = [self._stream, *(self._container.streams[index] for index in by_index)]
        for packet in packets(self._container, streams):
            if packet.dts is None:  # PyAV ends each stream with an empty packet
                continue
            if packet.stream_index in by_index:
                by_index[packet.stream_index].take(packet)
                continue
            for end in self._video.take(packet):
                for track in self._audio.values():
                    track.end_segment_at(end, self._video.ticks_per_s)
            if self._video.packet_count == expected:
                self._finish_video()
        if not expected:
            self._finish_video()
        elif self._video.packet_count != expected:
            detail = f"{self._video.packet_count} of {expected} frames were read"
            raise CopyUndeliverable("truncated", detail=detail)
        for track in self._audio.values():
            track.finish()
        return {
            "dropped": {
                name: track.dropped for name, track in self._audio.items() if track.dropped
            },
            "pieces": self._video.pieces,
            "left_out_frames": self._video.packet_count - self._video.copied_count,
        }

    def _finish_video(self) -> None:
        end = self._video.finish()
        for track in self._audio.values():
            track.end_video(end, self._video.ticks_per_s)

    def _audio_copy(self, name: str, index: int) -> AudioCopy:
        stream = self._container.streams[index]
        return AudioCopy(
            stream,
            self._rendition(name),
            start_s=self._start_s,
            packet_count=_packet_count(stream),
            hidden_from_s=self._hidden_from_s.get(name),
        )

    def _rendition(self, name: str) -> Rendition:
        return Rendition(self._folder / name, self._report_progress)

    def _report_progress(self, at_s: float) -> None:
        if at_s > self._position_s:
            self._position_s = at_s
            _print({"at_s": at_s})


def _packet_count(stream: Any) -> int:
    """Return the number of packets in the index; zero for a fragmented file."""
    return len(stream.index_entries) if stream.frames else 0


def _print(answer: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


def _fail(kind: str, exc: Exception, **more: Any) -> dict[str, Any]:
    return {"error": kind, "detail": f"{type(exc).__name__}: {exc}"} | more


def _remux(request: dict[str, Any]) -> dict[str, Any]:
    try:
        with open_source(request["source"], request["options"]) as container:
            return _Copy(container, request).run()
    except CopyUndeliverable as exc:
        return {"error": "undeliverable", "reason": exc.reason, "detail": exc.detail}
    except NotWritten as exc:
        return _fail("not_written", exc, errno=exc.errno)
    except MemoryError as exc:
        return _fail("out_of_memory", exc)
    except UNREACHABLE as exc:
        return _fail("unreachable", exc)
    except (av.FFmpegError, ValueError, IndexError) as exc:
        return _fail("undeliverable", exc, reason="unreadable")


def main() -> None:
    """Read the request from stdin, copy, and print the result."""
    request = json.load(sys.stdin)
    av.logging.set_level(av.logging.WARNING)
    with av.logging.Capture() as complaints:
        answer = _remux(request)
    # A source that was not read completely gives the same results.
    is_short = answer.get("error") == "undeliverable" or answer.get("dropped")
    if is_short and (text := read_complaints(complaints)):
        answer = {"error": "unreachable", "detail": text}
    _print(answer)


if __name__ == "__main__":
    main()
