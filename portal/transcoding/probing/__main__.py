"""Examine one source with PyAV and print its facts as JSON.

The program runs in a separate, confined process (`python -I -m portal.transcoding.probing`),
because hostile uploads attack parsers. The request is read from stdin: argv is visible in process
lists, and the address may be signed. The output has the facts, or `{"error": …}`. A bounded number
of packets is read, whatever the file claims.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import math
import re
import struct
import sys
import time
from bisect import bisect_right
from collections.abc import Iterable
from typing import Any

import av
from av.container import InputContainer
from av.sidedata.sidedata import Type

from portal.transcoding.probing import boxes, sample_index, shown_picture, source, telemetry, tracks
from portal.transcoding.probing.edits import OPEN_EDITS, TimeLine, are_followed

# Limit on packets before the first frame. Damaged starts are common, and decoders recover at the
# next key frame.
_MAX_PACKETS = 600
_PADDED = 1.25
_SIZE_COMPLAINT = "Picture size"
_MAX_AUDIO_TRACKS = 8
_MAX_SUBTITLE_TRACKS = 32
_MAX_CHAPTERS = 500
_MAX_CHAPTER_TITLE = 200
_FULL_TURN = 360
# A line of FFmpeg's description of a file: the index of a sound stream, the code of its sample
# entry in hexadecimal, least byte first, and its channel layout.
_SOUND_LINE = re.compile(
    r"^  Stream #0:(\d+).*?: Audio: .*? / 0x([0-9A-F]{8})\)(?:, \d+ Hz, ([^,\n]+))?", re.MULTILINE
)
# Limit of FFmpeg's mixer.
_MAX_CHANNELS = 64
# Layouts of sound that PyAV can decode; see `_described_sound`.
_PLAIN_LAYOUTS = frozenset({"mono", "stereo", "1 channels", "2 channels"})
_HDR_METADATA = (Type.MASTERING_DISPLAY_METADATA, Type.CONTENT_LIGHT_LEVEL)


def _fail(kind: str, exc: Exception | None = None) -> dict[str, Any]:
    return {"error": kind, "detail": f"{type(exc).__name__}: {exc}" if exc else ""}


def _first_frame(
    container: InputContainer, stream: av.VideoStream, request: dict[str, Any]
) -> tuple[av.VideoFrame | None, av.Packet[Any] | None]:
    """Return the first frame that decodes, and the first packet."""
    stream.thread_count = 1  # threads multiply memory, and few frames are decoded
    stream.codec_context.options = _decoder_options(request)
    with contextlib.suppress(av.FFmpegError):
        container.seek(0)
    first = None
    for packet in itertools.islice(source.packets(container, [stream]), _MAX_PACKETS):
        if packet.size and first is None:
            first = packet
        # Later packets may decode after a damaged one.
        with contextlib.suppress(av.FFmpegError):
            for frame in stream.decode(packet):
                return frame, first
    return None, first


def _readable_share(container: InputContainer, stream: av.VideoStream) -> float:
    """Return the share of the indexed samples that are inside the file; 1.0 if unknown."""
    entries = stream.index_entries
    size_bytes = container.size
    if size_bytes <= 0 or len(entries) == 0 or _end(entries[-1]) <= size_bytes:
        return 1.0
    return bisect_right(entries, size_bytes, key=_end) / len(entries)


def _end(entry: Any) -> int:
    return int(entry.pos + entry.size)


def _examine(
    container: InputContainer, outline: boxes.Outline, request: dict[str, Any]
) -> dict[str, Any]:
    if not container.streams:
        return _fail("truncated" if outline.is_index_cut else "not_a_video")
    videos = tracks.picture_tracks(container, request)
    if not videos:
        return _fail("no_video_track")
    stream = videos[0]
    time_line = TimeLine(
        edits=outline.edits if outline.is_open or not outline.is_fragmented else {},
        first_s=source.film_start_s(container),
        is_open=outline.is_open,
    )
    if not tracks.is_decodable(stream, request):
        return {"error": "unsupported_codec", "detail": tracks.codec_name(stream, outline)}
    if fault := _picture_fault(stream, request):
        return _fail(fault)
    readable = _readable_share(container, stream)
    frame, first = _first_frame(container, stream, request)
    if frame is None:
        kind = "damaged" if first else "zero_duration"
        return _fail("truncated" if readable < 1.0 else kind)
    video = _video(stream, frame, outline)
    video["hidden"] = time_line.hidden_spans(stream)
    if outline.is_open:
        video["start_s"] = max(0.0, video["start_s"] - time_line.start_s)
    keys = [first]
    # If there are several sample entries, frames have the sizes of all of them.
    announced = [entry.size for entry in outline.pictures.get(stream.id, ())]
    sizes = [(frame.width, frame.height), *(announced if len(announced) > 1 else ())]
    for key, frames in source.sample_places(container, stream):
        keys.append(key)
        sizes += [(frame.width, frame.height) for frame in frames]
        video["interlaced"] |= any(frame.interlaced_frame for frame in frames)
    video["sizes"] = list(dict.fromkeys(size for size in sizes if min(size) > 0))
    if not outline.is_fragmented:
        samples = len(stream.index_entries)
        offsets = boxes.composition_offsets(request, outline, track=stream.id, samples=samples)
        video |= sample_index.facts(container, stream, keys, offsets, time_line)
    elif end_s := _track_end_s(container, outline, stream, time_line):
        offsets = _fragment_offsets(request, outline, stream)
        video |= sample_index.fragment_facts(
            container, stream, keys, offsets, time_line, end_s=end_s
        )
    lead_s = time_line.start_s - time_line.first_s
    return {
        "duration_s": container.duration / av.time_base if container.duration else None,
        "size_bytes": container.size,
        "readable_share": readable,
        "video": video,
        **_sound(container, outline, time_line, request),
        "subtitles": _subtitles(container, time_line, request),
        "has_other_picture": any(tracks.is_film_beside(other, stream) for other in videos[1:]),
        "lead_s": lead_s if outline.is_open and not outline.is_read_as_edited(lead_s) else None,
        "edits_followed": all(map(are_followed, time_line.edits.values())),
        "has_telemetry": any(map(tracks.has_device_name, container.streams.subtitles)),
        "chapters": _chapters(container),
    }


def _picture_fault(stream: av.VideoStream, request: dict[str, Any]) -> str | None:
    """Return why a picture is refused before anything of it is decoded."""
    context = stream.codec_context
    too_many = 0 < request["max_pixels"] < context.width * context.height
    if too_many or max(context.width, context.height) > request["max_side_px"]:
        return "too_large"
    return "damaged" if sample_index.is_too_dense(stream) else None


def _decoder_options(request: dict[str, Any]) -> dict[str, str]:
    """Return the options that limit the size of frames.

    Decoders count allocated pixels, which include alignment and padding.
    """
    allowed = round(request["max_pixels"] * _PADDED)
    return {"max_pixels": str(allowed)} if allowed else {}


def _probe(request: dict[str, Any]) -> dict[str, Any]:
    outline = None
    options = {
        "protocol_whitelist": request["protocols"],
        "codec_whitelist": request["decoders"],
        **_decoder_options(request),
    }
    try:
        outline = boxes.read_outline(request)
        if 0 < request["max_size_bytes"] < outline.size_bytes:
            return _fail("file_too_large")
        if outline.is_encrypted:
            return _fail("encrypted")
        if outline.external:
            is_picture = boxes.VIDEO_HANDLER in outline.external
            return _fail("zero_duration" if is_picture else "external_media")
        if outline.is_unfinished:
            return _fail("damaged" if outline.has_index else "not_a_video")
        timeout_s = request["timeout_s"]
        if outline.is_open:
            options |= OPEN_EDITS
        with source.open_source(request["source"], options, timeout_s=timeout_s) as container:
            return _examine(container, outline, request)
    except source.UNREACHABLE as exc:
        return _fail("unreachable", exc)
    except (av.FFmpegError, MemoryError, ValueError) as exc:
        return _fail(outline.verdict if outline else "not_a_video", exc)


def main() -> None:
    """Read the request from stdin and print the answer."""
    request = json.load(sys.stdin)
    av.logging.set_level(av.logging.WARNING)
    with av.logging.Capture() as complaints:
        answer = _probe(request)
    if text := source.read_complaints(complaints):
        # The facts are only about the part of the source that was read.
        answer = {"error": "unreachable", "detail": text}
    elif answer.get("error") == "damaged" and any(
        _SIZE_COMPLAINT in text for _, _, text in complaints
    ):
        answer["error"] = "too_large"
    json.dump(answer, sys.stdout)


def _video(stream: av.VideoStream, frame: av.VideoFrame, outline: boxes.Outline) -> dict[str, Any]:
    """Return the facts of the video that don't follow from its index."""
    context = stream.codec_context
    configuration = source.read_configuration(context.extradata)
    entries = outline.pictures.get(stream.id) or [boxes.PictureEntry((0, 0), {})]
    margins = shown_picture.aperture_margins(entries[0], (frame.width, frame.height))
    profile, compatibility = shown_picture.dolby_vision(entries[0])
    sar = stream.sample_aspect_ratio or context.sample_aspect_ratio
    if b"pasp" not in entries[0].boxes and (any(margins) or len(entries) > 1):
        # FFmpeg derives it from the track's size, which is the aperture's or the first entry's.
        sar = context.sample_aspect_ratio
    return {
        "index": stream.index,
        "codec": context.codec.canonical_name,
        "profile": context.profile,
        "level": configuration.level if configuration else None,
        "coded_width": frame.width,
        "coded_height": frame.height,
        "margins": margins,
        "pix_fmt": frame.format.name,
        "has_alpha": any(component.is_alpha for component in frame.format.components),
        # A degenerate display matrix has no angle.
        "rotation": frame.rotation if abs(frame.rotation) <= _FULL_TURN else 0,
        "mirrored": _is_mirrored(frame),
        "sar": _ratio(sar),
        "is_sar_certain": (context.sample_aspect_ratio or sar or 1) == (sar or 1),
        "average_rate": _ratio(stream.average_rate),
        "base_rate": _ratio(stream.base_rate),
        "start_s": _seconds(frame.pts, frame.time_base) or 0.0,
        "duration_s": _seconds(stream.duration, stream.time_base),
        "interlaced": frame.interlaced_frame,
        "color_space": int(frame.colorspace),
        "color_transfer": shown_picture.named_transfer(
            int(frame.color_trc),
            compatibility=compatibility,
            has_hdr_metadata=any(_side_data(frame, kind) for kind in _HDR_METADATA),
        ),
        "color_primaries": int(frame.color_primaries),
        "dolby_only": shown_picture.is_dolby_only(profile, compatibility),
    }


def _is_mirrored(frame: av.VideoFrame) -> bool:
    """Return whether the display matrix (three rows of three, in native order) mirrors frames."""
    matrix = _side_data(frame, Type.DISPLAYMATRIX)
    if len(matrix) != struct.calcsize("9i"):
        return False
    a, b, _, c, d, *_ = struct.unpack("9i", matrix)
    return bool(a * d - b * c < 0)


def _side_data(frame: av.VideoFrame, kind: Type) -> bytes:
    """Return a frame's side data of a kind; empty if there is none."""
    # PyAV raises ValueError at kinds that it doesn't know, such as that of stereo video.
    with contextlib.suppress(ValueError):
        sides: Any = frame.side_data  # typed as a mapping, but behaves as a sequence
        return next((bytes(side) for side in sides if side.type == kind), b"")
    return b""


def _sound(
    container: InputContainer,
    outline: boxes.Outline,
    time_line: TimeLine,
    request: dict[str, Any],
) -> dict[str, Any]:
    """Return the tracks that can be decoded, the default first, and the `unheard` others.

    An unheard track is named by its sample entry, or is "" if it has no samples.
    """
    described = _described_sound(container)
    audio: list[dict[str, Any]] = []
    unheard: list[str] = []
    for stream in tracks.default_first(container.streams.audio):
        entry, layout = described.get(stream.index, ("?", ""))
        channels = _channel_count(layout)
        if not (outline.is_fragmented or _has_samples(container, stream)):
            unheard.append("")
        elif not tracks.is_decodable(stream, request) or not 0 < channels <= _MAX_CHANNELS:
            unheard.append(entry)
        else:
            audio.append(
                {
                    **tracks.describe(stream, time_line),
                    "profile": stream.codec_context.profile,
                    "channels": channels,
                    "layout": layout,
                    "sample_rate_hz": stream.sample_rate,
                    "end_s": _track_end_s(container, outline, stream, time_line),
                }
            )
    del audio[_MAX_AUDIO_TRACKS:]
    names = {(track["language"], track["title"]) for track in audio}
    # Languages and titles show which tracks were meant to be heard.
    if len(audio) > 1 and len(names) == 1 and not outline.is_fragmented:
        until = time.monotonic() + tracks.SILENCE_LIMIT_S
        for track in audio:
            if track["layout"] in _PLAIN_LAYOUTS:
                stream = container.streams[track["index"]]
                track["is_silent"] = tracks.is_silent(container, stream, until=until)
    return {"audio": audio, "unheard": unheard}


def _has_samples(container: InputContainer, stream: Any) -> bool:
    """Return whether a sample in the index is inside the file, and samples have a duration."""
    entries = stream.index_entries
    if len(entries) > 1 and entries[0].timestamp == entries[-1].timestamp:
        return False
    size_bytes = container.size if container.size > 0 else math.inf
    return any(entry.size > 0 and _end(entry) <= size_bytes for entry in entries)


def _described_sound(container: Any) -> dict[int, tuple[str, str]]:
    """Return the sample entries and channel layouts of sound, by the index of the stream.

    PyAV's `layout` and `channels` free the list of an unusual order a second time, which corrupts
    the heap. FFmpeg's description of the file has the same text; PyAV's types lack that method.
    """
    av.logging.set_level(av.logging.INFO)
    try:
        description = container.dumps_format()
    finally:
        av.logging.set_level(av.logging.WARNING)
    return {
        int(index): (bytes.fromhex(code)[::-1].decode("latin-1"), layout)
        for index, code, layout in _SOUND_LINE.findall(description)
    }


def _channel_count(layout: str) -> int:
    """Return how many channels a described layout has; 0 for one that FFmpeg doesn't know."""
    try:
        return av.AudioLayout(layout).nb_channels
    except ValueError:
        return 0


def _chapters(container: InputContainer) -> list[dict[str, Any]]:
    """Return the chapters; the first one is moved to the film's start.

    Untitled chapters are numbered. A single untitled chapter, and telemetry, are left out.
    """
    chapters: list[dict[str, Any]] = []
    for chapter in container.chapters()[:_MAX_CHAPTERS]:
        start_s = float(max(0, chapter["start"]) * (chapter["time_base"] or 0))
        if chapters and start_s <= chapters[-1]["start_s"]:
            continue
        title = " ".join(chapter["metadata"].get("title", "").replace("\0", "").split())
        chapters.append({"start_s": start_s if chapters else 0.0, "title": title})
    titles = [chapter["title"] for chapter in chapters]
    if titles == [""] or telemetry.is_telemetry(titles):
        return []
    return [
        {**chapter, "title": chapter["title"][:_MAX_CHAPTER_TITLE] or f"Chapter {number}"}
        for number, chapter in enumerate(chapters, 1)
    ]


def _subtitles(
    container: InputContainer, time_line: TimeLine, request: dict[str, Any]
) -> list[dict[str, Any]]:
    """Return the subtitle tracks that consist of text, without those that devices write."""
    texts = [
        tracks.describe(stream, time_line)
        for stream in container.streams.subtitles
        if tracks.is_decodable(stream, request)
        and stream.codec_context.codec.text_sub
        and not tracks.has_device_name(stream)
    ]
    return texts[:_MAX_SUBTITLE_TRACKS]


def _ratio(value: Any) -> str | None:
    return f"{value.numerator}/{value.denominator}" if value else None


def _fragment_offsets(
    request: dict[str, Any], outline: boxes.Outline, stream: av.VideoStream
) -> Iterable[int] | None:
    if not stream.codec_context.has_b_frames:
        return itertools.repeat(0)
    samples = len(stream.index_entries)
    return boxes.fragment_offsets(request, outline, track=stream.id, samples=samples)


def _track_end_s(
    container: InputContainer, outline: boxes.Outline, stream: Any, time_line: TimeLine
) -> float | None:
    # Headers of fragmented files often have the duration of a longer film.
    is_known = not outline.is_fragmented or outline.has_segment_index
    end_s = sample_index.track_end_s(
        container, stream, start_s=time_line.start_s, is_duration_known=is_known
    )
    edit_end_s = time_line.ends_s(stream)
    return end_s if end_s is None or edit_end_s is None else min(end_s, edit_end_s)


def _seconds(value: int | None, time_base: Any) -> float | None:
    return float(value * time_base) if value and time_base else None


if __name__ == "__main__":
    main()
