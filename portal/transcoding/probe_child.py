"""Examine one source with PyAV and print what it holds as JSON. Run by path, never imported.

It runs in a confined process of its own because a parser of untrusted files is where a hostile
upload strikes. The request arrives on stdin: argv is visible in process lists, and the address
may be signed. Prints either the facts or `{"error": …}`; `probe.py` gives both their meaning.
"""

import contextlib
import json
import sys
from typing import Any

import av
from av.container import InputContainer
from av.error import FFmpegError, HTTPClientError, HTTPError
from av.stream import Disposition
from av.video.frame import VideoFrame
from av.video.stream import VideoStream

# Damaged starts are common and decoders recover at the next keyframe; this is how far we look.
_MAX_PACKETS = 600
# PyAV's classes for system errors (no route, timed out, no such file) are OSErrors too.
_UNREACHABLE = (HTTPError, HTTPClientError, OSError)


def _fail(kind: str, exc: Exception | None = None) -> dict[str, Any]:
    return {"error": kind, "detail": f"{type(exc).__name__}: {exc}" if exc else ""}


def _ratio(value: Any) -> str | None:
    return f"{value.numerator}/{value.denominator}" if value else None


def _pictures(container: InputContainer) -> list[VideoStream]:
    """The moving pictures: cover art is a video stream too, but not the video."""
    return [
        stream
        for stream in container.streams.video
        if not stream.disposition & (Disposition.attached_pic | Disposition.timed_thumbnails)
    ]


def _choose(streams: list[Any]) -> Any:
    """The default track if the file names one, else the first."""
    marked = [stream for stream in streams if stream.disposition & Disposition.default]
    return (marked or streams)[0]


def _first_frame(container: InputContainer, stream: VideoStream) -> tuple[VideoFrame | None, str]:
    """The first frame that decodes, or why there is none."""
    packets = 0
    for packet in container.demux(stream):
        if packet.has_sidedata("encryption_info"):
            return None, "encrypted"
        packets += 1 if packet.size else 0
        # A broken packet is no reason to give up before the limit.
        with contextlib.suppress(FFmpegError):
            for frame in stream.decode(packet):
                return frame, ""
        if packets >= _MAX_PACKETS:
            break
    return None, "damaged" if packets else "zero_duration"


def _readable_share(container: InputContainer, stream: VideoStream) -> float:
    """Which share of the indexed samples lies inside the file (1.0 when unknown)."""
    index, size_bytes = stream.index_entries, container.size
    if size_bytes <= 0 or len(index) == 0 or index[-1].pos + index[-1].size <= size_bytes:
        return 1.0
    low, high = 0, len(index)
    while low < high:
        middle = (low + high) // 2
        if index[middle].pos + index[middle].size <= size_bytes:
            low = middle + 1
        else:
            high = middle
    return low / len(index)


def _audio(container: InputContainer) -> dict[str, Any] | None:
    playable = [stream for stream in container.streams.audio if stream.codec_context is not None]
    if not playable:
        return None
    stream = _choose(playable)
    return {
        "index": stream.index,
        "codec": stream.codec_context.name,
        "channels": stream.channels,
        "sample_rate_hz": stream.sample_rate,
    }


def _seconds(value: int | None, time_base: Any) -> float | None:
    return float(value * time_base) if value and time_base else None


def _video(stream: VideoStream, frame: VideoFrame) -> dict[str, Any]:
    context = stream.codec_context
    return {
        "index": stream.index,
        "codec": context.name,
        "coded_width": frame.width,
        "coded_height": frame.height,
        "pix_fmt": frame.format.name,
        # The display matrix is side data; PyAV gives its angle on decoded frames only.
        "rotation": frame.rotation,
        "sar": _ratio(stream.sample_aspect_ratio or context.sample_aspect_ratio),
        "average_rate": _ratio(stream.average_rate),
        "base_rate": _ratio(stream.base_rate),
        "duration_s": _seconds(stream.duration, stream.time_base),
        "frame_count": stream.frames,
        "interlaced": frame.interlaced_frame,
        "color_space": int(frame.colorspace),
        "color_transfer": int(frame.color_trc),
        "color_primaries": int(frame.color_primaries),
    }


def _without_pictures(container: InputContainer) -> dict[str, Any]:
    if not container.streams:
        return _fail("not_a_video")
    for packet in container.demux(*container.streams.audio):
        return _fail("encrypted" if packet.has_sidedata("encryption_info") else "no_video_track")
    return _fail("no_video_track")


def _examine(container: InputContainer) -> dict[str, Any]:
    pictures = _pictures(container)
    if not pictures:
        return _without_pictures(container)
    stream = _choose(pictures)
    if stream.codec_context is None:
        return _fail("unsupported_codec")
    readable = _readable_share(container, stream)
    stream.thread_count = 1  # threads multiply memory, and one frame needs no hurry
    frame, reason = _first_frame(container, stream)
    if frame is None:
        return _fail("truncated" if readable < 1.0 else reason)
    return {
        "duration_s": container.duration / av.time_base if container.duration else None,
        "readable_share": readable,
        "video": _video(stream, frame),
        "audio": _audio(container),
    }


def _probe(request: dict[str, Any]) -> dict[str, Any]:
    # One forced demuxer: by default FFmpeg also recognises playlists, which name other files.
    options = {"protocol_whitelist": request["protocols"]}
    stage = "not_a_video"
    try:
        with av.open(
            request["source"],
            format="mov",
            options=options,
            timeout=request["timeout_s"],
            metadata_errors="replace",
        ) as container:
            stage = "damaged"
            return _examine(container)
    except _UNREACHABLE as exc:
        return _fail("unreachable", exc)
    except (FFmpegError, MemoryError, ValueError) as exc:
        return _fail(stage, exc)


if __name__ == "__main__":
    av.logging.set_level(None)
    json.dump(_probe(json.load(sys.stdin)), sys.stdout)
