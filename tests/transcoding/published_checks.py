"""`check_published`: all that must hold of every published video, measured from what was written.

Nothing here asks the engine what it meant to do, except for the names of its renditions.
"""

import math
from collections.abc import Sequence
from itertools import accumulate, pairwise
from pathlib import Path

from decoded_media import (
    RGB,
    Heard,
    Shown,
    display_aspect,
    distance,
    flashes_s,
    listen,
    open_media,
    track_end_s,
)
from hls_checks import check_hls
from published import Published, playlist, shown

from portal.transcoding.errors import Note

BT709, STUDIO_RANGE = 1, 1
MAX_DRIFT_S = 0.040
MAX_SHIFT_S = 0.050
MAX_FPS = 60
TIME_BASE_HZ = 1_000_000
# The first frame of a burst above the cap is kept, and those too close to it are left out.
_BURST_S = 0.75 / MAX_FPS
_TICK_S = 0.001


def check_published(
    published: Published,
    *,
    corners: Sequence[RGB] = (),
    tolerance: float = 8,
    in_sync: bool = False,
    thorough: bool = True,
) -> None:
    """Everything there is, plays, stands upright, and is where it was in time.

    `corners` are the colours expected in reading order; `in_sync` is for sources that flash and
    beep, at least twice. Unless thorough, only one rendition is decoded to its end.
    """
    check_hls(published.folder, published.result.output)
    _check_alignment(published)
    _check_sound(published)
    if not thorough:
        _check_briefly(published)
        return
    assert Note.PARTLY_DAMAGED not in published.result.notes
    times_s = source_times_s(published)
    for rendition in published.result.renditions:
        pictures = published.pictures[rendition.name]
        _check_form(published, pictures, is_copied=rendition.copied)
        _check_times(published, pictures, times_s)
        _check_segments(published, rendition.name, pictures)
        if corners:
            _check_corners(pictures, corners, tolerance)
        if in_sync:
            _check_sync(published, pictures)


def _check_briefly(published: Published) -> None:
    lowest, *others = published.result.renditions
    pictures = shown(published.folder, lowest.name)
    _check_form(published, pictures, is_copied=lowest.copied)
    _check_times(published, pictures, source_times_s(published))
    _check_segments(published, lowest.name, pictures)
    for rendition in others:
        beginning = shown(published.folder, rendition.name, 0)
        _check_form(published, beginning, is_copied=rendition.copied)
        assert beginning[0].time_s == 0


def source_start_s(path: Path) -> float:
    """Where the file's time line begins: FFmpeg, and players, show that as zero."""
    with open_media(path) as container:
        return (container.start_time or 0) / TIME_BASE_HZ


def source_times_s(published: Published) -> list[float]:
    """When each picture is to be shown; the first stands from the start."""
    start_s = min(source_start_s(published.path), published.source_pictures[0].time_s)
    later = [picture.time_s - start_s for picture in published.source_pictures[1:]]
    return [0.0, *later]


def _check_form(published: Published, pictures: Sequence[Shown], *, is_copied: bool) -> None:
    aspect = display_aspect(published.path)
    first = pictures[0]
    width, height = first.size
    assert width % 2 == height % 2 == 0
    assert abs(width - height * aspect) <= max(0.01 * width, 2, 2 * aspect), "shape"
    for picture in pictures:
        assert picture.size == first.size
        # Full range is left as it is.
        assert picture.format in (("yuv420p", "yuvj420p") if is_copied else ("yuv420p",))
        assert not picture.is_turned, "left to the player to turn"
        assert not picture.is_interlaced
    if not is_copied:
        assert first.tags == (BT709, BT709, BT709, STUDIO_RANGE)


def _check_times(published: Published, pictures: Sequence[Shown], times_s: Sequence[float]) -> None:
    """No picture at another time than the source's, none lost below 60 a second, no judder."""
    source = published.result.source.video
    written_s = [picture.time_s for picture in pictures]
    assert written_s[0] == 0
    assert all(before < after for before, after in pairwise(written_s))
    _check_end(published, pictures, times_s)
    if any(before >= after for before, after in pairwise(times_s)):
        return  # the source itself steps back in time
    step = max(1, math.ceil(source.fps / MAX_FPS)) if _is_constant(times_s) else 1
    expected_s = times_s[::step]
    if step > 1 or all(b - a > _BURST_S for a, b in pairwise(expected_s)):
        assert len(written_s) == len(expected_s), "pictures lost or doubled"
        assert max(abs(a - b) for a, b in zip(written_s, expected_s, strict=True)) < _TICK_S
    else:
        assert all(any(abs(at - each) < _TICK_S for each in times_s) for at in written_s)


def _is_constant(times_s: Sequence[float]) -> bool:
    gaps_s = [b - a for a, b in pairwise(times_s)]
    return not gaps_s or max(gaps_s) - min(gaps_s) < _TICK_S


def _check_end(published: Published, pictures: Sequence[Shown], times_s: Sequence[float]) -> None:
    # What is decoded before the last picture is shown may have to stand for it.
    ends_s = max(picture.time_s + picture.length_s for picture in pictures)
    expected_s = times_s[-1] + published.source_pictures[-1].length_s
    frame_s = float(1 / published.result.source.video.fps)
    # How long the last of unevenly spaced pictures stands is not written down anywhere.
    frames = 1 if _is_constant(times_s[1:]) else 2
    limit_s = max(frames * frame_s, MAX_SHIFT_S)
    assert abs(ends_s - expected_s) <= limit_s, "another duration"


def _check_segments(published: Published, name: str, pictures: Sequence[Shown]) -> None:
    """Each segment begins with a key frame at the time its playlist says, and decodes alone."""
    written = playlist(published.folder, name)
    key_times_s = [picture.time_s for picture in pictures if picture.is_key]
    for start_s in written.starts_s:
        assert any(abs(start_s - at) < 0.002 for at in key_times_s), f"no key frame at {start_s}"
    ends_s = max(picture.time_s + picture.length_s for picture in pictures)
    frame_s = float(1 / published.result.source.video.fps)
    assert abs(written.duration_s - ends_s) <= max(frame_s, MAX_SHIFT_S)
    middle = len(written.segments) // 2
    alone = shown(published.folder, name, middle)
    assert alone[0].is_key
    assert abs(alone[0].time_s - written.starts_s[middle]) < 0.002


def _check_alignment(published: Published) -> None:
    names = [rendition.name for rendition in published.result.renditions]
    reference = playlist(published.folder, names[0]).starts_s
    for name in names[1:]:
        starts_s = playlist(published.folder, name).starts_s
        frame_s = float(1 / published.result.source.video.fps)
        assert len(starts_s) == len(reference)
        assert max(abs(a - b) for a, b in zip(starts_s, reference, strict=True)) <= frame_s


def _check_corners(pictures: Sequence[Shown], corners: Sequence[RGB], tolerance: float) -> None:
    for picture in (pictures[0], pictures[-1]):
        off = [distance(*pair) for pair in zip(picture.corners, corners, strict=True)]
        assert max(off) <= tolerance, f"corners are {picture.corners}"


def _check_sync(published: Published, pictures: Sequence[Shown]) -> None:
    """A beep is as far from its flash as in the source, at the start and at the end."""
    start_s = source_start_s(published.path)
    sound = published.sounds["audio"]
    flashed = flashes_s(pictures)
    flashed_before = [at - start_s for at in flashes_s(published.source_pictures)]
    beeped = sound.onsets_s()
    beeped_before = [at - start_s for at in listen(published.path, mixed=True).onsets_s()]
    assert len(flashed) == len(flashed_before) >= 2
    assert len(beeped) == len(beeped_before) == len(flashed)
    for flash, beep, flash_before, beep_before in zip(
        flashed, beeped, flashed_before, beeped_before, strict=True
    ):
        assert abs(flash - flash_before) <= MAX_SHIFT_S
        assert abs((flash - beep) - (flash_before - beep_before)) < MAX_DRIFT_S


def _check_sound(published: Published) -> None:
    """Every track of the source is heard from the start to its end."""
    source = published.result.source
    assert len(published.sounds) == len(source.audio)
    start_s = source_start_s(published.path)
    for rendition, track in zip(published.result.audio, source.audio, strict=True):
        sound = published.sounds[rendition.name]
        assert len(sound.channels) == rendition.channels == min(2, track.channels)
        assert abs(sound.start_s) < MAX_SHIFT_S
        number = [each.index for each in sorted(source.audio, key=lambda a: a.index)].index(
            track.index
        )
        decoded_s = listen(published.path, number, mixed=True).end_s
        # The index may cut the last frame short; players follow either.
        ends_s = (decoded_s - start_s, track_end_s(published.path, number) - start_s)
        assert min(abs(sound.end_s - at) for at in ends_s) < 2 * MAX_SHIFT_S, "another length"
        _check_playlist_sum(published.folder, rendition.name, sound)
        assert _first_decode_time(published.folder, rendition.name) < 2**62, "before zero"


def _first_decode_time(folder: Path, name: str) -> int:
    """Of the first segment, without a sign (`tfdt`, ISO/IEC 14496-12)."""
    first = (folder / name / playlist(folder, name).segments[0].uri).read_bytes()
    at = first.index(b"tfdt") + 4
    return int.from_bytes(first[at + 4 : at + (12 if first[at] else 8)])


def _check_playlist_sum(folder: Path, name: str, sound: Heard) -> None:
    lengths_s = [segment.duration_s for segment in playlist(folder, name).segments]
    assert abs(list(accumulate(lengths_s))[-1] - sound.end_s) < 2 * MAX_SHIFT_S
