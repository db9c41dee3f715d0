"""Turn stored segments into finished renditions.

All playlists have the same target duration. Each video rendition also gets an I-frame playlist.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from math import ceil
from typing import Any

from portal.transcoding.encoding import command
from portal.transcoding.encoding.output_validation import check_stored
from portal.transcoding.encoding.segment_upload import SegmentUpload, segment_number
from portal.transcoding.packaging import hls
from portal.transcoding.packaging.cmaf import AAC_LC, avc_codec, time_scale
from portal.transcoding.packaging.master import FinishedRendition, Kind
from portal.transcoding.packaging.webvtt import (
    SEGMENT_S,
    Cue,
    parse_webvtt,
    segment_webvtt,
)
from portal.transcoding.planning.ladder import Rung
from portal.transcoding.planning.tracks import AudioRung, TrackRung

WEBVTT = "wvtt"

Playlists = Mapping[str, hls.MediaPlaylist]


async def list_segments(upload: SegmentUpload, names: Sequence[str]) -> Playlists:
    """Return a playlist of the stored segments of each rendition.

    Raises TranscodeFailed if segments are missing.
    """
    return {name: await asyncio.to_thread(_list_segments, name, upload) for name in names}


def _list_segments(name: str, upload: SegmentUpload) -> hls.MediaPlaylist:
    paths = sorted(upload.facts.keys() & set(upload.names_of(name)), key=segment_number)
    check_stored(name, [segment_number(path) for path in paths], upload.sizes_bytes)
    scale = time_scale((upload.work_dir / name / hls.INIT_NAME).read_bytes())
    facts = [upload.facts[path] for path in paths]
    ends_ticks = [*(following.from_ticks for following in facts[1:]), facts[-1].until_ticks]
    segments = tuple(
        hls.Segment(uri=path.partition("/")[2], duration_s=(end - segment.from_ticks) / scale)
        for path, segment, end in zip(paths, facts, ends_ticks, strict=True)
    )
    return hls.MediaPlaylist(
        segments=segments,
        map_uri=hls.INIT_NAME,
        target_duration_s=hls.target_duration_s(segments),
        complete=True,
    )


async def finish_video(
    rung: Rung, playlist: hls.MediaPlaylist, upload: SegmentUpload, *, target_s: int
) -> FinishedRendition:
    """Upload the init segment and both playlists of a video rendition."""
    name = rung.name
    segments = playlist.segments
    init = await _finish_segmented(name, playlist, upload, target_s=target_s)
    key_sizes = [upload.facts[f"{name}/{segment.uri}"].key_size_bytes for segment in segments]
    iframe_bps, _ = hls.bandwidths_bps(segments, sizes_bytes=key_sizes, target_duration_s=target_s)
    iframes = hls.iframe_playlist(segments, key_sizes_bytes=key_sizes, target_duration_s=target_s)
    await upload.put(f"{name}/{hls.IFRAME_PLAYLIST_NAME}", iframes.encode())
    return FinishedRendition(
        kind=Kind.VIDEO,
        codecs=avc_codec(init),
        width=rung.width,
        height=rung.height,
        fps=rung.fps,
        copied=rung.copied,
        iframe_bandwidth_bps=iframe_bps,
        **_measures(name, segments, upload, target_s),
    )


async def finish_audio(
    rung: AudioRung, playlist: hls.MediaPlaylist, upload: SegmentUpload, *, target_s: int
) -> FinishedRendition:
    """Upload the init segment and the playlist of an audio rendition."""
    await _finish_segmented(rung.name, playlist, upload, target_s=target_s)
    return FinishedRendition(
        kind=Kind.AUDIO,
        codecs=AAC_LC,
        channels=rung.channels,
        **_labels(rung),
        **_measures(rung.name, playlist.segments, upload, target_s),
    )


async def read_subtitles(rung: TrackRung, upload: SegmentUpload) -> list[Cue] | None:
    """Return the cues of a subtitle track; None if ffmpeg did not write all of it."""
    path = upload.work_dir / command.subtitle_file(rung)
    if (await asyncio.to_thread(path.stat)).st_size >= command.MAX_SUBTITLE_BYTES:
        return None
    return await asyncio.to_thread(lambda: parse_webvtt(path.read_text("utf-8")))


async def finish_subtitles(
    rung: TrackRung, cues: Sequence[Cue], upload: SegmentUpload, *, duration_s: float
) -> FinishedRendition:
    """Upload a subtitle track, in segments that cover the whole film."""

    async def put(file: str, data: bytes) -> None:
        await upload.put(f"{rung.name}/{file}", data)

    segments = await put_captions(cues, put, duration_s=duration_s)
    return FinishedRendition(
        kind=Kind.SUBTITLES,
        codecs=WEBVTT,
        **_labels(rung),
        **_measures(rung.name, segments, upload, hls.target_duration_s(segments)),
    )


def caption_segment(number: int) -> str:
    """Return the name of a segment of captions."""
    return f"{number:05}.vtt"


async def put_captions(
    cues: Sequence[Cue],
    put: Callable[[str, bytes], Awaitable[None]],
    *,
    duration_s: float,
    stored: int = 0,
) -> list[hls.Segment]:
    """Cut captions of a film of this length into segments, and put them and their playlist.

    The first `stored` segments are not put again.
    """
    segments = [
        hls.Segment(
            uri=caption_segment(number),
            duration_s=min(SEGMENT_S, duration_s - number * SEGMENT_S),
        )
        for number in range(ceil(duration_s / SEGMENT_S))
    ]
    cutting = segment_webvtt(cues, duration_s=duration_s, first=stored)
    # Only one segment is in memory at a time, because a cue may be in all of them.
    for segment in segments[stored:]:
        _, text = await asyncio.to_thread(next, cutting)
        await put(segment.uri, text.encode())
    target_s = hls.target_duration_s(segments)
    playlist = hls.media_playlist(segments, target_duration_s=target_s, map_uri=None)
    await put(hls.PLAYLIST_NAME, playlist.encode())
    return segments


async def _finish_segmented(
    name: str, playlist: hls.MediaPlaylist, upload: SegmentUpload, *, target_s: int
) -> bytes:
    """Upload the init segment and the playlist of complete segments; return the init segment."""
    init = await upload.put_init(name)
    text = hls.media_playlist(playlist.segments, target_duration_s=target_s)
    await upload.put(hls.media_playlist_name(name), text.encode())
    return init


def _labels(rung: TrackRung) -> dict[str, Any]:
    return {"language": rung.language, "label": rung.label, "is_default": rung.is_default}


def _measures(
    name: str, segments: Sequence[hls.Segment], upload: SegmentUpload, target_s: int
) -> dict[str, Any]:
    sizes_bytes = [upload.sizes_bytes[f"{name}/{segment.uri}"] for segment in segments]
    peak_bps, average_bps = hls.bandwidths_bps(
        segments, sizes_bytes=sizes_bytes, target_duration_s=target_s
    )
    return {
        "name": name,
        "bandwidth_bps": peak_bps,
        "average_bandwidth_bps": average_bps,
        "size_bytes": sum(upload.sizes_bytes[file] for file in upload.names_of(name)),
        "segment_count": len(segments),
    }
