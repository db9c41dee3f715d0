"""Assemble the segments of a pass into finished renditions: check them, and store their playlists.

All playlists have the same target duration. Each video rendition also gets an I-frame playlist. The
caller writes the master playlist.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from portal.transcoding import errors
from portal.transcoding.encoding import output_validation
from portal.transcoding.encoding.encode import Subtitles
from portal.transcoding.encoding.ffmpeg import RunReport
from portal.transcoding.encoding.parts import Rendition, check_joins
from portal.transcoding.encoding.sink import Sink, put_file
from portal.transcoding.packaging import hls
from portal.transcoding.packaging.cmaf import AAC_LC, avc_codec
from portal.transcoding.packaging.master import FinishedRendition, Kind
from portal.transcoding.packaging.webvtt import SEGMENT_S, Cue, segment_count, segment_webvtt
from portal.transcoding.planning.ladder import Plan, Rung
from portal.transcoding.planning.tracks import AudioRung, TrackRung
from portal.transcoding.probing.cuts import SEGMENT_S as VIDEO_SEGMENT_S
from portal.transcoding.probing.facts import Probe

WEBVTT = "wvtt"


@dataclass(frozen=True, kw_only=True, slots=True)
class PassOutput:
    """Result of a pass: its finished renditions, and the length of the longest one.

    `captions` are the cues of each subtitle rendition. `has_faults` means that some of the source
    did not decode: players stop there in a copy of its stream. The caller adds whether there is a
    poster, and the numbers of other attempts for renditions that are in their `folders`.
    """

    renditions: tuple[FinishedRendition, ...]
    duration_s: float
    has_faults: bool
    notes: tuple[errors.Note, ...]
    captions: Mapping[str, list[Cue]] = field(default_factory=dict)
    has_poster: bool = False
    folders: Mapping[str, int] = field(default_factory=dict)


async def assemble(
    probe: Probe,
    plan: Plan,
    renditions: Mapping[str, Rendition],
    *,
    subtitles: Subtitles,
    report: RunReport,
    reference: hls.MediaPlaylist | None,
    sink: Sink,
) -> PassOutput:
    """Check that renditions are complete and begin their segments together; store their playlists.

    `renditions` have all their segments. `subtitles` are stored here. `report` covers the whole
    film. `reference` is the playlist of a rendition of an earlier pass, where all segments must
    begin, too; None for a first pass.
    Raises PartsDontJoin if there is a gap, SourceRejected if too much of the source is damaged,
    CopyUndeliverable if it is damaged where it was copied, TranscodeFailed if anything is missing,
    or whatever the sink raised.
    """
    rungs = [rung for rung in plan.video if rung.name in renditions]
    audio = _heard_sound(plan.audio, report)
    try:
        playlists = _checked_playlists(probe, plan, rungs, audio, renditions, report, reference)
    except errors.SourceRejected as exc:
        # An interrupted read looks to ffmpeg like the end of the file, or like damage.
        if report.network_faults:
            raise errors.TranscodeFailed(
                errors.FailCode.SOURCE_UNREACHABLE, detail=exc.detail
            ) from exc
        raise
    duration_s = max(playlist.duration_s for playlist in playlists.values())
    if reference:
        target_s = reference.target_duration_s
    else:
        segments = (each for playlist in playlists.values() for each in playlist.segments)
        target_s = max(VIDEO_SEGMENT_S, hls.target_duration_s(segments))
    finished = [
        await _finish_video(rung, renditions[rung.name], playlists[rung.name], target_s, sink)
        for rung in rungs
    ]
    finished += [
        await _finish_audio(rung, renditions[rung.name], playlists[rung.name], target_s, sink)
        for rung in audio
    ]
    captions = {name: cues for name, cues in subtitles.items() if cues is not None}
    finished += [
        await _finish_subtitles(rung, captions[rung.name], duration_s, sink)
        for rung in plan.subtitles
        if rung.name in captions
    ]
    return PassOutput(
        renditions=tuple(finished),
        duration_s=duration_s,
        has_faults=bool(report.faults),
        notes=output_validation.notes_for(
            probe,
            damaged_share=output_validation.damaged_share(probe, report),
            lacks_sound=len(audio) < len(plan.audio),
            lacks_subtitles=len(captions) < len(subtitles),
        ),
        captions=captions,
    )


def _checked_playlists(
    probe: Probe,
    plan: Plan,
    rungs: Sequence[Rung],
    audio: Sequence[AudioRung],
    renditions: Mapping[str, Rendition],
    report: RunReport,
    reference: hls.MediaPlaylist | None,
) -> dict[str, hls.MediaPlaylist]:
    """Return the playlists of renditions that are complete and begin their segments together."""
    output_validation.check_damage(output_validation.damaged_share(probe, report))
    output_validation.check_source_read(probe, report)
    if plan.is_held:
        output_validation.check_frames(probe, report)
    copied = [rung for rung in rungs if rung.copied]
    if copied and report.faults:
        # Players stop at faults that ffmpeg decodes around.
        detail = f"{report.faults} faults while decoding"
        raise errors.CopyUndeliverable("faults", detail=detail)
    names = [*(rung.name for rung in rungs), *(rung.name for rung in audio)]
    output_validation.check_complete(renditions, names)
    check_joins({rung.name: renditions[rung.name] for rung in rungs if not rung.copied})
    playlists = {name: renditions[name].playlist() for name in names}
    starts_s = (reference or playlists[(copied or rungs)[0].name]).starts_s
    for rung in rungs:
        playlist = playlists[rung.name]
        output_validation.check_duration(playlist.duration_s, plan.picture_s)
        output_validation.check_aligned(rung.name, playlist, starts_s, frame_s=float(1 / rung.fps))
    return playlists


def _heard_sound(planned: Sequence[AudioRung], report: RunReport) -> list[AudioRung]:
    """Return the planned audio renditions, without those of which nothing could be decoded.

    Raises TranscodeFailed if the source could not be read well, which may be the cause.
    """
    silent = {rung.name for rung in planned if report.unheard >= {rung.index, *rung.joined}}
    if silent and report.network_faults:
        detail = f"nothing was decoded of {', '.join(silent)}"
        raise errors.TranscodeFailed(errors.FailCode.SOURCE_UNREACHABLE, detail=detail)
    heard = [rung for rung in planned if rung.name not in silent]
    return [replace(rung, is_default=number == 0) for number, rung in enumerate(heard)]


async def _finish_video(
    rung: Rung, rendition: Rendition, playlist: hls.MediaPlaylist, target_s: int, sink: Sink
) -> FinishedRendition:
    """Store both playlists of a video rendition."""
    segments = playlist.segments
    key_sizes = [segment.facts.key_size_bytes for segment in rendition.segments]
    iframe_bps, _ = hls.bandwidths_bps(segments, sizes_bytes=key_sizes, target_duration_s=target_s)
    iframes = hls.iframe_playlist(segments, key_sizes_bytes=key_sizes, target_duration_s=target_s)
    iframes_bytes = await put_file(
        sink, f"{rung.name}/{hls.IFRAME_PLAYLIST_NAME}", iframes.encode()
    )
    playlist_bytes = await _put_playlist(rung.name, segments, target_s, sink)
    return FinishedRendition(
        kind=Kind.VIDEO,
        codecs=avc_codec(rendition.init),
        width=rung.width,
        height=rung.height,
        fps=rung.fps,
        copied=rung.copied,
        iframe_bandwidth_bps=iframe_bps,
        **_measures(rung.name, rendition, playlist, target_s, playlist_bytes + iframes_bytes),
    )


async def _finish_audio(
    rung: AudioRung, rendition: Rendition, playlist: hls.MediaPlaylist, target_s: int, sink: Sink
) -> FinishedRendition:
    """Store the playlist of an audio rendition."""
    playlist_bytes = await _put_playlist(rung.name, playlist.segments, target_s, sink)
    return FinishedRendition(
        kind=Kind.AUDIO,
        codecs=AAC_LC,
        channels=rung.channels,
        **_labels(rung),
        **_measures(rung.name, rendition, playlist, target_s, playlist_bytes),
    )


async def _put_playlist(
    name: str, segments: Sequence[hls.Segment], target_s: int, sink: Sink
) -> int:
    text = hls.media_playlist(segments, target_duration_s=target_s)
    return await put_file(sink, hls.media_playlist_name(name), text.encode())


def _measures(
    name: str,
    rendition: Rendition,
    playlist: hls.MediaPlaylist,
    target_s: int,
    playlists_bytes: int,
) -> dict[str, Any]:
    sizes_bytes = [segment.size_bytes for segment in rendition.segments]
    peak_bps, average_bps = hls.bandwidths_bps(
        playlist.segments, sizes_bytes=sizes_bytes, target_duration_s=target_s
    )
    return {
        "name": name,
        "bandwidth_bps": peak_bps,
        "average_bandwidth_bps": average_bps,
        "size_bytes": len(rendition.init) + sum(sizes_bytes) + playlists_bytes,
        "segment_count": len(sizes_bytes),
    }


def _labels(rung: TrackRung) -> dict[str, Any]:
    return {"language": rung.language, "label": rung.label, "is_default": rung.is_default}


async def _finish_subtitles(
    rung: TrackRung, cues: Sequence[Cue], duration_s: float, sink: Sink
) -> FinishedRendition:
    """Store a subtitle track, in segments that cover the whole film."""
    sizes_bytes: list[int] = []

    async def put(file: str, data: bytes) -> None:
        sizes_bytes.append(await put_file(sink, f"{rung.name}/{file}", data))

    segments = await put_captions(cues, put, intervals=[(0.0, duration_s)])
    peak_bps, average_bps = hls.bandwidths_bps(
        segments,
        sizes_bytes=sizes_bytes[:-1],
        target_duration_s=hls.target_duration_s(segments),
    )
    return FinishedRendition(
        kind=Kind.SUBTITLES,
        name=rung.name,
        codecs=WEBVTT,
        bandwidth_bps=peak_bps,
        average_bandwidth_bps=average_bps,
        size_bytes=sum(sizes_bytes),
        segment_count=len(segments),
        **_labels(rung),
    )


def caption_segment(number: int) -> str:
    """Return the name of a segment of captions."""
    return f"{number:05}.vtt"


async def put_captions(
    cues: Sequence[Cue],
    put: Callable[[str, bytes], Awaitable[None]],
    *,
    intervals: Sequence[tuple[float, float]],
    stored: int = 0,
) -> list[hls.Segment]:
    """Cut captions into segments, and put them and their playlist.

    `intervals` are the parts of the film that are played (start and end in seconds): one of the
    whole length, or those of a cut film, which begin with a discontinuity, as in the playlists of
    video and sound. The first `stored` segments are not put again. The playlist is put last.
    """
    segments: list[hls.Segment] = []
    for start_s, end_s in intervals:
        for place in range(segment_count(end_s - start_s)):
            segment = hls.Segment(
                uri=caption_segment(len(segments)),
                duration_s=min(SEGMENT_S, end_s - start_s - place * SEGMENT_S),
                is_discontinuous=bool(segments) and place == 0,
            )
            segments.append(segment)
    cutting = segment_webvtt(cues, intervals=intervals, first=stored)
    # Only one segment is in memory at a time, because a cue may be in all of them.
    for segment in segments[stored:]:
        text = await asyncio.to_thread(next, cutting)
        await put(segment.uri, text.encode())
    target_s = hls.target_duration_s(segments)
    playlist = hls.media_playlist(segments, target_duration_s=target_s, map_uri=None)
    await put(hls.PLAYLIST_NAME, playlist.encode())
    return segments
