"""Assemble the segments of a pass into finished renditions: check them, and store their playlists.

The playlists of video and audio share one target duration; those of captions have their own. Each
video rendition also gets an I-frame playlist. The caller writes the master playlist.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
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
from portal.transcoding.packaging.webvtt import Cue, caption_spans, segment_webvtt
from portal.transcoding.planning.ladder import Plan, Rung
from portal.transcoding.planning.tracks import AudioRung, TrackRung
from portal.transcoding.probing.facts import Probe
from portal.transcoding.probing.segment_bounds import SEGMENT_S

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


@dataclass(frozen=True, kw_only=True, slots=True)
class StoredPlaylists:
    """Size of a rendition's stored playlists, and the bit rates of what they name.

    `iframe_bps` is the peak of the key frames; None without an I-frame playlist.
    """

    size_bytes: int
    peak_bps: int
    average_bps: int
    iframe_bps: int | None


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
    target_s = _target_duration_s(playlists.values(), reference)
    finished = [
        await _finish_video(rung, renditions[rung.name], playlists[rung.name], target_s, sink)
        for rung in rungs
    ]
    finished += [
        await _finish_audio(rung, renditions[rung.name], playlists[rung.name], target_s, sink)
        for rung in audio
    ]
    captions = {name: cues for name, cues in subtitles.items() if isinstance(cues, list)}
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
            left_out=[each for each in subtitles.values() if isinstance(each, errors.Note)],
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
    _check_report(probe, plan, rungs, report)
    copied = [rung for rung in rungs if rung.copied]
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


def _check_report(probe: Probe, plan: Plan, rungs: Sequence[Rung], report: RunReport) -> None:
    """Raise an error unless ffmpeg read and decoded enough of the source for these renditions."""
    output_validation.check_damage(output_validation.damaged_share(probe, report))
    output_validation.check_source_read(probe, report)
    if plan.is_held:
        output_validation.check_frames(probe, report)
    if report.faults and any(rung.copied for rung in rungs):
        # Players stop at faults that ffmpeg decodes around.
        detail = f"{report.faults} faults while decoding"
        raise errors.CopyUndeliverable("faults", detail=detail)


def _target_duration_s(
    playlists: Iterable[hls.MediaPlaylist], reference: hls.MediaPlaylist | None
) -> int:
    """Return the target duration, in seconds, of all video and audio playlists of a pass.

    It is that of `reference`, a playlist of an earlier pass. Without one, the longest segment
    decides, and it is at least `SEGMENT_S`.
    """
    if reference:
        return reference.target_duration_s
    segments = (segment for playlist in playlists for segment in playlist.segments)
    return max(SEGMENT_S, hls.target_duration_s(segments))


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
    stored = await store_playlists(
        rung.name,
        playlist.segments,
        sizes_bytes=_sizes_bytes(rendition),
        key_sizes_bytes=[segment.facts.key_size_bytes for segment in rendition.segments],
        target_s=target_s,
        sink=sink,
    )
    return FinishedRendition(
        kind=Kind.VIDEO,
        codecs=avc_codec(rendition.init),
        width=rung.width,
        height=rung.height,
        fps=rung.fps,
        copied=rung.copied,
        iframe_bandwidth_bps=stored.iframe_bps,
        **_measures(rung.name, rendition, stored),
    )


async def _finish_audio(
    rung: AudioRung, rendition: Rendition, playlist: hls.MediaPlaylist, target_s: int, sink: Sink
) -> FinishedRendition:
    """Store the playlist of an audio rendition."""
    stored = await store_playlists(
        rung.name,
        playlist.segments,
        sizes_bytes=_sizes_bytes(rendition),
        target_s=target_s,
        sink=sink,
    )
    return FinishedRendition(
        kind=Kind.AUDIO,
        codecs=AAC_LC,
        channels=rung.channels,
        **_labels(rung),
        **_measures(rung.name, rendition, stored),
    )


def _sizes_bytes(rendition: Rendition) -> list[int]:
    return [segment.size_bytes for segment in rendition.segments]


def _measures(name: str, rendition: Rendition, stored: StoredPlaylists) -> dict[str, Any]:
    sizes_bytes = _sizes_bytes(rendition)
    return {
        "name": name,
        "bandwidth_bps": stored.peak_bps,
        "average_bandwidth_bps": stored.average_bps,
        "size_bytes": len(rendition.init) + sum(sizes_bytes) + stored.size_bytes,
        "segment_count": len(sizes_bytes),
    }


async def store_playlists(
    name: str,
    segments: Sequence[hls.Segment],
    *,
    sizes_bytes: Sequence[int],
    key_sizes_bytes: Sequence[int] | None = None,
    target_s: int,
    map_uri: str = hls.INIT_NAME,
    sink: Sink,
) -> StoredPlaylists:
    """Store the playlist of the rendition `name`, and measure what it names.

    `sizes_bytes` has the size of each segment, for the bit rates. With `key_sizes_bytes`, the sizes
    of the segments' first frames, an I-frame playlist is stored before it. Both playlists have the
    target duration `target_s` and the init segment `map_uri`.
    """
    size_bytes = 0
    iframe_bps = None
    if key_sizes_bytes is not None:
        iframes = hls.iframe_playlist(
            segments, key_sizes_bytes=key_sizes_bytes, target_duration_s=target_s, map_uri=map_uri
        )
        file = f"{name}/{hls.IFRAME_PLAYLIST_NAME}"
        size_bytes += await put_file(sink, file, iframes.encode())
        iframe_bps, _ = hls.bandwidths_bps(
            segments, sizes_bytes=key_sizes_bytes, target_duration_s=target_s
        )
    playlist = hls.media_playlist(segments, target_duration_s=target_s, map_uri=map_uri)
    size_bytes += await put_file(sink, hls.media_playlist_name(name), playlist.encode())
    peak_bps, average_bps = hls.bandwidths_bps(
        segments, sizes_bytes=sizes_bytes, target_duration_s=target_s
    )
    return StoredPlaylists(
        size_bytes=size_bytes, peak_bps=peak_bps, average_bps=average_bps, iframe_bps=iframe_bps
    )


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
    for number, span in enumerate(caption_spans(intervals)):
        segment = hls.Segment(
            uri=caption_segment(number),
            duration_s=span.end_s - span.start_s,
            is_discontinuous=number > 0 and span.begins_interval,
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
