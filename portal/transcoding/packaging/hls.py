"""Read and write HLS media playlists (RFC 8216) and sign what they name. Pure: text in, text out.

Limits: on-demand playlists as this package writes them. The multivariant playlist is `master`.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

# Lowest version with EXT-X-MAP in a playlist that isn't I-frames only (RFC 8216, section 7).
VERSION = 6
PLAYLIST_NAME = "playlist.m3u8"
IFRAME_PLAYLIST_NAME = "iframes.m3u8"
INIT_NAME = "init.mp4"
_IFRAMES_ONLY = "#EXT-X-I-FRAMES-ONLY"
_DISCONTINUITY = "#EXT-X-DISCONTINUITY"
_WHOLE = ("#EXT-X-PLAYLIST-TYPE:VOD",)
# Segments of sound and video begin at slightly different times, because frames differ in length. A
# cut this close to a segment's bound is at the bound, so that both begin with the same segment.
CUT_TOLERANCE_S = 0.1
# Without a start, players begin near the end of a growing playlist (RFC 8216, section 4.3.5.2).
_GROWING = ("#EXT-X-PLAYLIST-TYPE:EVENT", "#EXT-X-START:TIME-OFFSET=0")
_END = "#EXT-X-ENDLIST"
_TAG_URI = re.compile(r'(?<=[:,])URI="([^"]*)"')


class PlaylistError(ValueError):
    """The text is not a playlist that the portal can read."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Segment:
    """Entry of a media playlist.

    `is_discontinuous` means that media times don't continue those of the segment before.
    `byte_range` is `length@offset` if the entry is a part of the file.
    """

    uri: str
    duration_s: float
    is_discontinuous: bool = False
    byte_range: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class MediaPlaylist:
    """Segments of a rendition, and their init segment.

    `complete` if the playlist has EXT-X-ENDLIST, `has_iframes_only` if its entries are I-frames.
    """

    segments: tuple[Segment, ...]
    map_uri: str | None
    target_duration_s: int
    complete: bool
    has_iframes_only: bool = False

    @property
    def duration_s(self) -> float:
        """Return the sum of the segments' durations."""
        return sum(segment.duration_s for segment in self.segments)

    @property
    def starts_s(self) -> tuple[float, ...]:
        """Return the time at which each segment begins."""
        ends_s = accumulate(segment.duration_s for segment in self.segments)
        return (0.0, *ends_s)[: len(self.segments)]


def media_playlist_name(rendition_name: str) -> str:
    """Return the path of a rendition's media playlist, relative to the renditions' folders."""
    return f"{rendition_name}/{PLAYLIST_NAME}"


def parse_media_playlist(text: str) -> MediaPlaylist:
    """Read a media playlist. Raises `PlaylistError` if a required tag is missing.

    Raises another `ValueError` for a malformed duration.
    """
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if not lines or lines[0] != "#EXTM3U":
        raise PlaylistError("no #EXTM3U on the first line")
    tags = dict(line.partition(":")[::2] for line in lines if line.startswith("#EXT"))
    if "#EXT-X-TARGETDURATION" not in tags:
        raise PlaylistError("no #EXT-X-TARGETDURATION")
    map_uri = _TAG_URI.search(":" + tags.get("#EXT-X-MAP", ""))
    return MediaPlaylist(
        segments=tuple(_segments(lines)),
        map_uri=map_uri[1] if map_uri else None,
        target_duration_s=int(tags["#EXT-X-TARGETDURATION"]),
        complete="#EXT-X-ENDLIST" in tags,
        has_iframes_only=_IFRAMES_ONLY in tags,
    )


def _segments(lines: Iterable[str]) -> Iterator[Segment]:
    duration_s: float | None = None
    byte_range = None
    is_discontinuous = False
    for line in lines:
        name, _, value = line.partition(":")
        if name == "#EXTINF":
            duration_s = float(value.partition(",")[0])
        elif name == "#EXT-X-BYTERANGE":
            byte_range = value
        elif name == _DISCONTINUITY:
            is_discontinuous = True
        elif not line.startswith("#"):
            if duration_s is None:
                raise PlaylistError("a segment without #EXTINF")
            yield Segment(
                uri=line,
                duration_s=duration_s,
                is_discontinuous=is_discontinuous,
                byte_range=byte_range,
            )
            duration_s = None
            byte_range = None
            is_discontinuous = False


def target_duration_s(segments: Iterable[Segment]) -> int:
    """Return the target duration of segments (RFC 8216, section 4.3.3.1).

    Sound and video of a presentation share one (section 6.2.4).
    """
    return max(1, int(max(segment.duration_s for segment in segments) + 0.5))


def media_playlist(
    segments: Sequence[Segment],
    *,
    target_duration_s: int,
    map_uri: str | None = INIT_NAME,
    is_whole: bool = True,
) -> str:
    """Write a media playlist; `map_uri` is None for segments without an init segment.

    A playlist that isn't whole yet is an EVENT playlist, which players start at its beginning.
    """
    tags = ("#EXT-X-INDEPENDENT-SEGMENTS",) if map_uri else ()
    lines = _entries(segments, map_uri)
    return _playlist(*tags, *lines, target_duration_s=target_duration_s, is_whole=is_whole)


def iframe_playlist(
    segments: Sequence[Segment],
    *,
    key_sizes_bytes: Sequence[int],
    target_duration_s: int,
    map_uri: str = INIT_NAME,
) -> str:
    """Write the I-frame playlist for trick play (RFC 8216, section 4.3.3.6).

    Every segment begins with a key frame; `key_sizes_bytes` has the sizes of these frames with the
    headers before them.
    """
    frames = [
        replace(segment, byte_range=f"{size_bytes}@0")
        for segment, size_bytes in zip(segments, key_sizes_bytes, strict=True)
    ]
    lines = _entries(frames, map_uri)
    return _playlist(_IFRAMES_ONLY, *lines, target_duration_s=target_duration_s)


def _playlist(*body: str, target_duration_s: int, is_whole: bool = True) -> str:
    head = (
        "#EXTM3U",
        f"#EXT-X-VERSION:{VERSION}",
        f"#EXT-X-TARGETDURATION:{target_duration_s}",
        "#EXT-X-MEDIA-SEQUENCE:0",
        *(_WHOLE if is_whole else _GROWING),
    )
    return "\n".join((*head, *body, *([_END] if is_whole else []))) + "\n"


def _entries(segments: Iterable[Segment], map_uri: str | None) -> Iterator[str]:
    """Yield the lines of segments, after that of their init segment."""
    if map_uri:
        yield f'#EXT-X-MAP:URI="{map_uri}"'
    for segment in segments:
        if segment.is_discontinuous:
            yield _DISCONTINUITY
        yield f"#EXTINF:{segment.duration_s:.6f},"
        if segment.byte_range:
            yield f"#EXT-X-BYTERANGE:{segment.byte_range}"
        yield segment.uri


def clip_media_playlist(text: str, *, start_s: float, end_s: float) -> str:
    """Return a complete media playlist with the segments of a part of the film alone.

    Players begin exactly at `start_s`, by EXT-X-START, and end with the last segment. Timestamps
    in segments of video and sound are not changed, so the part's don't begin at zero. Segments of
    captions are long, and players find them by their durations alone: the first and the last one
    are listed with the duration of their part, although their files also have earlier or later
    cues.
    """
    playlist = parse_media_playlist(text)
    if not playlist.segments:
        return text
    starts_s = playlist.starts_s
    first = max(bisect_right(starts_s, start_s + CUT_TOLERANCE_S) - 1, 0)
    last = max(bisect_left(starts_s, end_s - CUT_TOLERANCE_S) - 1, first)
    offset_s = max(start_s - starts_s[first], 0.0)
    segments = list(playlist.segments)
    tags = [_IFRAMES_ONLY] if playlist.has_iframes_only else []
    if playlist.map_uri is None:
        for number in {first, last}:
            segment_end_s = starts_s[number] + segments[number].duration_s
            part_s = min(segment_end_s, end_s) - max(starts_s[number], start_s)
            segments[number] = replace(segments[number], duration_s=max(part_s, 0.0))
    else:
        tags += [] if playlist.has_iframes_only else ["#EXT-X-INDEPENDENT-SEGMENTS"]
        tags += [f"#EXT-X-START:TIME-OFFSET={offset_s:.3f},PRECISE=YES"] if offset_s else []
    part = [replace(segments[first], is_discontinuous=False), *segments[first + 1 : last + 1]]
    lines = _entries(part, playlist.map_uri)
    return _playlist(*tags, *lines, target_duration_s=playlist.target_duration_s)


def bandwidths_bps(
    segments: Sequence[Segment], *, sizes_bytes: Sequence[int], target_duration_s: int
) -> tuple[int, int]:
    """Return the peak and the average bit rate of segments (RFC 8216, sections 4.1 and 4.3.4.2).

    The peak is over runs of segments that last 0.5 to 1.5 target durations, so that a last segment
    of a few frames doesn't count alone.
    """
    total_s = sum(segment.duration_s for segment in segments)
    average = _rate_bps(sum(sizes_bytes), total_s)
    peak = average
    for start in range(len(segments)):
        run_s = 0.0
        run_bytes = 0
        for segment, size_bytes in zip(segments[start:], sizes_bytes[start:], strict=True):
            run_s += segment.duration_s
            run_bytes += size_bytes
            if run_s > 1.5 * target_duration_s:
                break
            if run_s >= 0.5 * target_duration_s:
                peak = max(peak, _rate_bps(run_bytes, run_s))
    return peak, average


def _rate_bps(size_bytes: int, duration_s: float) -> int:
    return round(size_bytes * 8 / duration_s) if duration_s else 0


def playlist_uris(text: str) -> list[str]:
    """Return every URI of a playlist, on URI lines and in tags."""
    lines = [line.strip() for line in text.splitlines()]
    uri_lines = [line for line in lines if line and not line.startswith("#")]
    tags = [line for line in lines if line.startswith("#EXT")]
    return uri_lines + [match[1] for tag in tags for match in _TAG_URI.finditer(tag)]


def sign_playlist(text: str, sign: Callable[[str], str]) -> str:
    """Replace every URI, on URI lines and in tags, by `sign(uri)`."""
    return "".join(_signed_line(line, sign) for line in text.splitlines(keepends=True))


def _signed_line(line: str, sign: Callable[[str], str]) -> str:
    if line.startswith("#EXT"):
        return _TAG_URI.sub(lambda match: f'URI="{_checked_uri(sign(match[1]))}"', line)
    uri = line.strip()
    if not uri or uri.startswith("#"):
        return line
    return line.replace(uri, _checked_uri(sign(uri)))


def _checked_uri(uri: str) -> str:
    """Return a signed address. Raises `PlaylistError` if it could add tags to the playlist."""
    if '"' in uri or len(uri.splitlines()) != 1:
        raise PlaylistError("a signed address must be one line without quotes")
    return uri
