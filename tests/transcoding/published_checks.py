"""`check_published`: all that must hold of every published video, measured from its files.

RFC 8216, Apple's authoring rules, and what every decoder shows. Nothing asks the engine what it
meant to do, except for the renditions' names.
"""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

import av
import pytest
from decoded_media import RGB, Shown, display_aspect, flashes_s, listen, look, open_media
from mp4_writer import IDENTITY
from published import Published, joined, playlist

from portal.transcoding.encoding.assembly import PassOutput
from portal.transcoding.errors import Note
from portal.transcoding.packaging.hls import bandwidths_bps, parse_media_playlist
from portal.transcoding.packaging.master import MASTER_NAME, FinishedRendition, Kind
from portal.transcoding.probing.segment_bounds import SEGMENT_S

BT709 = 1
STUDIO_RANGE = 1
MAX_DRIFT_S = 0.040
MAX_SHIFT_S = 0.050
MAX_FPS = 60
# The first frame of a burst above the cap is kept, and those too close to it are left out.
_BURST_S = 0.75 / MAX_FPS
_TICK_S = 0.001
# Playlists tell durations to the microsecond; rates are of the exact ones.
_ROUNDING = 1e-4
_ATTRIBUTE = re.compile(r'([A-Z0-9-]+)=("[^"]*"|[^,]*)')
_NAMED = re.compile(r'URI="([^"]*)"')
_RANGE = re.compile(r"^#EXT-X-BYTERANGE:(\d+)@0$", re.MULTILINE)


def attributes(line: str) -> dict[str, str]:
    """The attribute list of a tag (RFC 8216, section 4.2)."""
    return {key: value.strip('"') for key, value in _ATTRIBUTE.findall(line.partition(":")[2])}


def variants(master: str) -> dict[str, dict[str, str]]:
    """Each variant's attributes by its address."""
    lines = pairwise(master.splitlines())
    return {uri: attributes(tag) for tag, uri in lines if tag.startswith("#EXT-X-STREAM-INF:")}


def check_published(
    published: Published,
    *,
    corners: Sequence[RGB] = (),
    tolerance: float = 8,
    in_sync: bool = False,
) -> None:
    """Everything there is, plays, stands upright, and is where it was in time.

    `corners` are the colours expected in reading order; `in_sync` is for sources that flash and
    beep, at least twice.
    """
    assert Note.PARTLY_DAMAGED not in published.result.output.notes
    check_hls(published.folder, published.result.output)
    _check_sound(published)
    for rendition in published.result.renditions:
        pictures = published.pictures[rendition.name]
        check_pictures(published, rendition, pictures)
        for picture in (pictures[0], pictures[-1]) if corners else ():
            for corner, expected in zip(picture.corners, corners, strict=True):
                assert corner == pytest.approx(expected, abs=tolerance)
        if in_sync:
            _check_sync(published, pictures)


def check_hls(folder: Path, output: PassOutput) -> None:
    """Check the master, every playlist it names, and every claim it makes."""
    check_playlists(folder / MASTER_NAME, output.renditions)
    master = (folder / MASTER_NAME).read_text()
    named = [*_NAMED.findall(master), *variants(master)]
    playlists = [str(path.relative_to(folder)) for path in folder.rglob("*/*.m3u8")]
    assert sorted(named) == sorted(playlists)
    for rendition in output.renditions:
        files = list((folder / rendition.name).iterdir())
        assert rendition.size_bytes == sum(file.stat().st_size for file in files)
        assert rendition.segment_count == sum(file.suffix in {".m4s", ".vtt"} for file in files)


def check_playlists(path: Path, renditions: Sequence[FinishedRendition]) -> None:
    """Check a master playlist, those of its renditions, and its claims about them."""
    master = path.read_text()
    assert master.startswith("#EXTM3U\n#EXT-X-VERSION:6\n")
    claims = variants(master)
    folders = {
        (path.parent / uri).parent.name: path.parent / Path(uri).parent
        for uri in (*_NAMED.findall(master), *claims)
    }
    assert folders.keys() == {rendition.name for rendition in renditions}
    claimed_by_name = {Path(uri).parent.name: claimed for uri, claimed in claims.items()}
    measured = {name: _measure(folder) for name, folder in folders.items()}
    timed = [row for row in renditions if row.kind is not Kind.SUBTITLES]
    assert len({measured[row.name].target_s for row in timed}) == 1, "different target durations"
    assert len({measured[row.name].discontinuities for row in timed}) == 1, "different intervals"
    sound = [measured[row.name] for row in timed if row.kind is Kind.AUDIO]
    sound_peak = max([0, *(measures.peak_bps for measures in sound)])
    sound_average = max([0, *(measures.average_bps for measures in sound)])
    for rendition in renditions:
        if rendition.kind is not Kind.VIDEO:
            continue
        claimed = claimed_by_name[rendition.name]
        folder = folders[rendition.name]
        measures = measured[rendition.name]
        assert int(claimed["BANDWIDTH"]) >= (measures.peak_bps + sound_peak) * (1 - _ROUNDING) - 1
        average = measures.average_bps + sound_average
        assert abs(int(claimed["AVERAGE-BANDWIDTH"]) - average) <= 2 + average * _ROUNDING
        assert abs(float(claimed["FRAME-RATE"]) - (rendition.fps or 0)) <= 0.0005
        assert ("AUDIO" in claimed) == bool(sound)
        _check_stream(measures.init, claimed)
        peak = _measure(folder, "iframes.m3u8").peak_bps
        assert (rendition.iframe_bandwidth_bps or 0) >= peak * (1 - _ROUNDING) - 1


@dataclass(frozen=True, kw_only=True)
class _Measures:
    """Facts of a playlist: its `init` segment, and `discontinuities`, which are joins."""

    peak_bps: float
    average_bps: float
    target_s: int
    discontinuities: int
    init: bytes


def _measure(folder: Path, file: str = "playlist.m3u8") -> _Measures:
    """Return the facts of a playlist that keeps to the rules."""
    text = (folder / file).read_text()
    assert text.startswith("#EXTM3U\n#EXT-X-VERSION:6\n#EXT-X-TARGETDURATION:")
    assert text.endswith("#EXT-X-ENDLIST\n")
    assert "#EXT-X-PLAYLIST-TYPE:VOD\n" in text
    assert "#EXT-X-MEDIA-SEQUENCE:0\n" in text
    target_s = int(text.splitlines()[2].partition(":")[2])
    playlist = parse_media_playlist(text)
    segments = playlist.segments
    contents = [(folder / segment.uri).read_bytes() for segment in segments]
    are_captions = contents[0].startswith(b"WEBVTT")
    assert text.count("#EXT-X-MAP") == (not are_captions)
    init = (folder / playlist.map_uri).read_bytes() if playlist.map_uri else b""
    assert all(0 < segment.duration_s < target_s + 0.5 for segment in segments)
    assert all(contents)
    if file == "iframes.m3u8":
        assert "#EXT-X-I-FRAMES-ONLY\n" in text
        whole = tuple(replace(segment, byte_range=None) for segment in segments)
        media = (folder / "playlist.m3u8").read_text()
        assert whole == parse_media_playlist(media).segments
        lengths = map(int, _RANGE.findall(text))
        pieces = zip(contents, lengths, strict=True)
        contents = [content[:length] for content, length in pieces]
        assert all(_is_one_key_frame(init + content) for content in contents)
    else:
        assert ("#EXT-X-INDEPENDENT-SEGMENTS\n" in text) != are_captions
    sizes = [len(content) for content in contents]
    peak_bps, average_bps = bandwidths_bps(segments, sizes_bytes=sizes, target_duration_s=target_s)
    return _Measures(
        peak_bps=peak_bps,
        average_bps=average_bps,
        target_s=target_s,
        discontinuities=sum(segment.is_discontinuous for segment in segments),
        init=init,
    )


def _is_one_key_frame(content: bytes) -> bool:
    frames: list[av.VideoFrame] = []
    with open_media(content) as container:
        for packet in container.demux(container.streams.video[0]):
            try:
                frames += packet.decode()
            except av.FFmpegError:  # the samples that the range leaves out
                continue
    return len(frames) == 1 and bool(frames[0].key_frame)


def _check_stream(init: bytes, claimed: dict[str, str]) -> None:
    """Codec and size are those that the init segment has, which turns nothing."""
    profile = init[init.index(b"avcC") + 5 :][:3].hex()
    assert claimed["CODECS"] == ",".join([f"avc1.{profile}", *["mp4a.40.2"] * ("AUDIO" in claimed)])
    entry = init.index(b"avc1") + 4 + 24
    width, height = (int.from_bytes(init[at : at + 2]) for at in (entry, entry + 2))
    assert claimed["RESOLUTION"] == f"{width}x{height}"
    matrix = init.index(b"tkhd") + 4 + 40
    assert init[matrix : matrix + 36] == IDENTITY, "left to the player to turn"


def source_start_s(path: Path) -> float:
    """Return where the file's time line begins, which FFmpeg and players show as zero."""
    with open_media(path) as container:
        return (container.start_time or 0) / av.time_base


def source_times_s(published: Published) -> list[float]:
    """When each picture is to be shown; the first stands from the start."""
    start_s = min(source_start_s(published.path), published.source_pictures[0].time_s)
    later = [picture.time_s - start_s for picture in published.source_pictures[1:]]
    return [0.0, *later]


def check_pictures(
    published: Published, rendition: FinishedRendition, pictures: Sequence[Shown]
) -> None:
    """Check that pictures have the source's shape and times, and a form that all players decode."""
    _check_times(published, pictures, source_times_s(published))
    _check_segments(published, rendition.name, pictures)
    aspect = display_aspect(published.path)
    is_copied = rendition.copied
    first = pictures[0]
    width, height = first.size
    assert width % 2 == height % 2 == 0
    assert abs(width - height * aspect) <= max(0.01 * width, 2, 2 * aspect), "shape"
    # A copy may have full range.
    assert first.format in (("yuv420p", "yuvj420p") if is_copied else ("yuv420p",))
    assert is_copied or first.tags == (BT709, BT709, BT709, STUDIO_RANGE)
    assert {(picture.size, picture.format, picture.is_interlaced) for picture in pictures} == {
        (first.size, first.format, False)
    }


def _check_times(published: Published, pictures: Sequence[Shown], times_s: Sequence[float]) -> None:
    """No picture at another time than the source's, none lost below 60 a second, no judder."""
    fps = published.result.source.video.fps
    written_s = [picture.time_s for picture in pictures]
    assert written_s[0] == 0
    assert all(before < after for before, after in pairwise(written_s))
    # The duration of the last of unevenly spaced pictures is not stored anywhere.
    limit_s = max((1 if _is_constant(times_s[1:]) else 2) / fps, MAX_SHIFT_S)
    expected_end_s = times_s[-1] + published.source_pictures[-1].length_s
    # An encoded picture lasts as long as the sound, and a copied one as long as it is.
    ends_s = (expected_end_s, published.result.source.duration_s)
    assert min(abs(_end_s(pictures) - at) for at in ends_s) <= limit_s, "another duration"
    if any(before >= after for before, after in pairwise(times_s)):
        return  # the source itself steps back in time
    if published.result.plan.is_held:
        written_s = [at for at in written_s if not _is_repeated(at, times_s)]
    step = max(1, math.ceil(fps / MAX_FPS)) if _is_constant(times_s) else 1
    expected_s = times_s[::step]
    if step > 1 or all(b - a > _BURST_S for a, b in pairwise(expected_s)):
        assert len(written_s) == len(expected_s), "pictures lost or doubled"
        assert max(abs(a - b) for a, b in zip(written_s, expected_s, strict=True)) < _TICK_S
    else:
        assert all(any(abs(at - each) < _TICK_S for each in times_s) for at in written_s)


def _is_repeated(at_s: float, times_s: Sequence[float]) -> bool:
    """Return whether a frame is shown where a segment begins, but no frame of the source."""
    is_start = abs(at_s - SEGMENT_S * round(at_s / SEGMENT_S)) < _TICK_S
    return is_start and all(abs(at_s - each) >= _TICK_S for each in times_s)


def _is_constant(times_s: Sequence[float]) -> bool:
    gaps_s = [b - a for a, b in pairwise(times_s)]
    return not gaps_s or max(gaps_s) - min(gaps_s) < _TICK_S


def _end_s(pictures: Sequence[Shown]) -> float:
    return max(picture.time_s + picture.length_s for picture in pictures)


def _check_segments(published: Published, name: str, pictures: Sequence[Shown]) -> None:
    """All renditions are cut together, at key frames, and each segment decodes alone."""
    frame_s = float(1 / published.result.source.video.fps)
    written = playlist(published.folder, name)
    starts = written.starts_s
    reference = playlist(published.folder, published.result.renditions[0].name).starts_s
    assert len(starts) == len(reference)
    assert max(abs(a - b) for a, b in zip(starts, reference, strict=True)) <= frame_s
    key_times_s = [picture.time_s for picture in pictures if picture.is_key]
    for start_s in starts:
        assert any(abs(start_s - at) < 0.002 for at in key_times_s), f"no key frame at {start_s}"
    assert abs(written.duration_s - _end_s(pictures)) <= max(frame_s, MAX_SHIFT_S)
    middle = len(starts) // 2
    alone = look(joined(published.folder, name, middle))
    assert alone[0].is_key
    assert abs(alone[0].time_s - starts[middle]) < 0.002


def _check_sync(published: Published, pictures: Sequence[Shown]) -> None:
    """A beep is as far from its flash as in the source, at the start and at the end."""
    start_s = source_start_s(published.path)
    flashed = flashes_s(pictures)
    beeped = published.sounds["audio"].onsets_s()
    flashed_before = [at - start_s for at in flashes_s(published.source_pictures)]
    beeped_before = [at - start_s for at in listen(published.path, mixed=True).onsets_s()]
    assert len(flashed) >= 2
    for flash, beep, flash_before, beep_before in zip(
        flashed, beeped, flashed_before, beeped_before, strict=True
    ):
        assert abs(flash - flash_before) <= MAX_SHIFT_S
        assert abs((flash - beep) - (flash_before - beep_before)) < MAX_DRIFT_S


def _check_sound(published: Published) -> None:
    """Every track of the source is heard from the start to its end."""
    folder = published.folder
    source = published.result.source
    assert len(published.sounds) == len(source.audio)
    start_s = source_start_s(published.path)
    in_file = sorted(track.index for track in source.audio)
    for rendition, track in zip(published.result.audio, source.audio, strict=True):
        sound = published.sounds[rendition.name]
        number = in_file.index(track.index)
        assert len(sound.channels) == rendition.channels == min(2, track.channels)
        assert abs(sound.start_s) < MAX_SHIFT_S
        with open_media(published.path) as container:
            stream = container.streams.audio[number]
            indexed_s = ((stream.start_time or 0) + (stream.duration or 0)) * stream.time_base
        # The index may cut the last frame short; players follow either.
        ends_s = (listen(published.path, number, mixed=True).end_s, float(indexed_s))
        ends_s = tuple(at - start_s for at in ends_s)
        # Silence follows up to the film's end, except in a copy, which may end a little earlier.
        padded_s = tuple(max(at, source.duration_s) for at in ends_s)
        is_copied = published.result.renditions[-1].copied
        ends_s = (*ends_s, *padded_s) if is_copied else padded_s
        assert min(abs(sound.end_s - at) for at in ends_s) < 2 * MAX_SHIFT_S
        assert abs(playlist(folder, rendition.name).duration_s - sound.end_s) < 2 * MAX_SHIFT_S
        first = joined(folder, rendition.name, 0)
        at = first.index(b"tfdt") + 4
        decoded_at = int.from_bytes(first[at + 4 : at + (12 if first[at] else 8)])
        assert decoded_at < 2**62, "before zero (ISO/IEC 14496-12 has no sign there)"
