"""Turn what ffmpeg left in the working folder into finished renditions.

ffmpeg's own playlists are read for their segments and written anew: with the target duration all
renditions share, and an I-frame playlist beside each video's.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from portal.transcoding.encoding.command import SEGMENT_S, is_cut_off, subtitle_file
from portal.transcoding.encoding.output_validation import check_stored
from portal.transcoding.encoding.segment_upload import Shipment
from portal.transcoding.packaging.cmaf import avc_codec, time_scale
from portal.transcoding.packaging.hls import (
    IFRAME_PLAYLIST_NAME,
    INIT_NAME,
    MediaPlaylist,
    Segment,
    bandwidths_bps,
    iframe_playlist,
    media_playlist,
    media_playlist_name,
    parse_media_playlist,
    target_duration_s,
)
from portal.transcoding.packaging.master import Kind, Rendition
from portal.transcoding.packaging.webvtt import Cue, parse_webvtt, segment_webvtt
from portal.transcoding.planning.ladder import Rung
from portal.transcoding.planning.tracks import AudioRung, SubtitleRung

_AAC_LC = "mp4a.40.2"  # the only audio the encoder makes (RFC 6381)
_WEBVTT = "wvtt"

Playlists = Mapping[str, MediaPlaylist]


async def read_playlists(shipment: Shipment, names: Sequence[str]) -> dict[str, MediaPlaylist]:
    """What ffmpeg wrote of each rendition, a video's durations as its segments have them.

    The muxer adds up what it was told of packets, which for the last segment may be wrong.
    """
    playlists = await asyncio.to_thread(_read_playlists, shipment.work_dir, names)
    return {
        name: await _measured(name, playlist, shipment)
        if name in shipment.video_names
        else playlist
        for name, playlist in playlists.items()
    }


def _read_playlists(work_dir: Path, names: Sequence[str]) -> dict[str, MediaPlaylist]:
    return {
        name: parse_media_playlist((work_dir / media_playlist_name(name)).read_text())
        for name in names
    }


async def _measured(name: str, playlist: MediaPlaylist, shipment: Shipment) -> MediaPlaylist:
    init = await asyncio.to_thread((shipment.work_dir / name / INIT_NAME).read_bytes)
    scale = time_scale(init)
    facts = [shipment.facts[f"{name}/{segment.uri}"] for segment in playlist.segments]
    ends_ticks = [*(each.from_ticks for each in facts[1:]), *(f.until_ticks for f in facts[-1:])]
    segments = tuple(
        replace(segment, duration_s=(end - each.from_ticks) / scale)
        for segment, each, end in zip(playlist.segments, facts, ends_ticks, strict=True)
    )
    return replace(playlist, segments=segments)


def shared_target_s(playlists: Playlists) -> int:
    """The target duration of a presentation; the same in a later pass with the same starts."""
    return max(SEGMENT_S, target_duration_s(playlists.values()))


async def finish_video(
    rung: Rung, playlist: MediaPlaylist, shipment: Shipment, *, target_s: int
) -> Rendition:
    """Put the init segment and both playlists of a video rendition."""
    name, segments = rung.name, playlist.segments
    init = await _put_init(name, shipment)
    check_stored(name, playlist, shipment.sizes_bytes)
    key_sizes = [shipment.facts[f"{name}/{segment.uri}"].key_size_bytes for segment in segments]
    peak_bps, average_bps = _rates_bps(name, segments, shipment, target_s)
    iframe_bps, _ = bandwidths_bps(segments, sizes_bytes=key_sizes, target_duration_s=target_s)
    await _put_playlist(name, media_playlist(segments, target_duration_s=target_s), shipment)
    iframes = iframe_playlist(segments, key_sizes_bytes=key_sizes, target_duration_s=target_s)
    await shipment.put(f"{name}/{IFRAME_PLAYLIST_NAME}", iframes.encode())
    return Rendition(
        kind=Kind.VIDEO,
        name=name,
        codecs=avc_codec(init),
        bandwidth_bps=peak_bps,
        average_bandwidth_bps=average_bps,
        size_bytes=shipment.size_bytes(name),
        segment_count=len(segments),
        width=rung.width,
        height=rung.height,
        fps=rung.fps,
        copied=rung.copied,
        iframe_bandwidth_bps=iframe_bps,
    )


async def finish_audio(
    rung: AudioRung, playlist: MediaPlaylist, shipment: Shipment, *, target_s: int
) -> Rendition:
    """Put the init segment and the playlist of an audio rendition."""
    await _put_init(rung.name, shipment)
    check_stored(rung.name, playlist, shipment.sizes_bytes)
    segments = playlist.segments
    peak_bps, average_bps = _rates_bps(rung.name, segments, shipment, target_s)
    await _put_playlist(rung.name, media_playlist(segments, target_duration_s=target_s), shipment)
    return Rendition(
        kind=Kind.AUDIO,
        name=rung.name,
        codecs=_AAC_LC,
        bandwidth_bps=peak_bps,
        average_bandwidth_bps=average_bps,
        size_bytes=shipment.size_bytes(rung.name),
        segment_count=len(segments),
        channels=rung.channels,
        language=rung.language,
        label=rung.label,
        is_default=rung.is_default,
    )


async def finish_subtitles(
    rung: SubtitleRung, shipment: Shipment, *, duration_s: float
) -> Rendition | None:
    """Cut a subtitle track into segments of the presentation's length and put them.

    None for one that ffmpeg did not write to its end.
    """
    cues = await asyncio.to_thread(_read_cues, shipment.work_dir / subtitle_file(rung))
    if cues is None:
        return None
    segments: list[Segment] = []
    cutting = segment_webvtt(cues, duration_s=duration_s)
    # One at a time: a cue may be in all of them.
    while cut := await asyncio.to_thread(next, cutting, None):
        length_s, segment_text = cut
        segment = Segment(uri=f"{len(segments):05}.vtt", duration_s=length_s)
        segments.append(segment)
        await shipment.put(f"{rung.name}/{segment.uri}", segment_text.encode())
    target_s = max(1, round(max(segment.duration_s for segment in segments)))
    peak_bps, average_bps = _rates_bps(rung.name, segments, shipment, target_s)
    playlist = media_playlist(segments, target_duration_s=target_s, map_uri=None)
    await _put_playlist(rung.name, playlist, shipment)
    return Rendition(
        kind=Kind.SUBTITLES,
        name=rung.name,
        codecs=_WEBVTT,
        bandwidth_bps=peak_bps,
        average_bandwidth_bps=average_bps,
        size_bytes=shipment.size_bytes(rung.name),
        segment_count=len(segments),
        language=rung.language,
        label=rung.label,
        is_default=rung.is_default,
    )


def _read_cues(path: Path) -> list[Cue] | None:
    if is_cut_off(path.stat().st_size):
        return None
    return parse_webvtt(path.read_text("utf-8"))


async def _put_init(name: str, shipment: Shipment) -> bytes:
    content = await asyncio.to_thread((shipment.work_dir / name / INIT_NAME).read_bytes)
    await shipment.put(f"{name}/{INIT_NAME}", content)
    return content


async def _put_playlist(name: str, text: str, shipment: Shipment) -> None:
    await shipment.put(media_playlist_name(name), text.encode())


def _rates_bps(
    name: str, segments: Sequence[Segment], shipment: Shipment, target_s: int
) -> tuple[int, int]:
    sizes_bytes = [shipment.sizes_bytes[f"{name}/{segment.uri}"] for segment in segments]
    return bandwidths_bps(segments, sizes_bytes=sizes_bytes, target_duration_s=target_s)
