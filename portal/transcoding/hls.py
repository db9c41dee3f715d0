"""Read and write HLS playlists (RFC 8216). Pure: text and bytes in, text out.

Limits: media playlists as our own encoder writes them (no byte ranges, no encryption).
"""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

_VERSION = 7  # EXT-X-MAP in a media playlist needs 6; fMP4 players expect 7
_AUDIO_CODEC = "mp4a.40.2"  # AAC-LC, the only audio the encoder makes
_AUDIO_GROUP = "audio"
# Players take the first variant before they know the link: Apple's authoring guide wants about
# 2 Mbit/s there.
_FIRST_VARIANT_BPS = 2_500_000
_TAG_URI = re.compile(r'(?<=[:,])URI="([^"]*)"')


class PlaylistError(ValueError):
    """The text is not a playlist we can read."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Segment:
    """One entry of a media playlist."""

    uri: str
    duration_s: float


@dataclass(frozen=True, kw_only=True, slots=True)
class MediaPlaylist:
    """The segments of one rendition. `complete` tells whether EXT-X-ENDLIST was there."""

    segments: tuple[Segment, ...]
    map_uri: str | None
    target_duration_s: int
    complete: bool

    @property
    def duration_s(self) -> float:
        return sum(segment.duration_s for segment in self.segments)


@dataclass(frozen=True, kw_only=True, slots=True)
class Variant:
    """One EXT-X-STREAM-INF. The bandwidths count video only; the writer adds the audio's."""

    uri: str
    width: int
    height: int
    fps: Fraction
    codecs: str
    bandwidth_bps: int
    average_bandwidth_bps: int


@dataclass(frozen=True, kw_only=True, slots=True)
class AudioRendition:
    """The audio rendition all variants share."""

    uri: str
    channels: int
    bandwidth_bps: int
    average_bandwidth_bps: int
    name: str = "Audio"
    codecs: str = _AUDIO_CODEC


def parse_media_playlist(text: str) -> MediaPlaylist:
    """Read a media playlist. Raises PlaylistError when it isn't one."""
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
    )


def _segments(lines: Iterable[str]) -> Iterable[Segment]:
    duration_s: float | None = None
    for line in lines:
        if line.startswith("#EXTINF:"):
            duration_s = float(line.removeprefix("#EXTINF:").partition(",")[0])
        elif not line.startswith("#"):
            if duration_s is None:
                raise PlaylistError("a segment without #EXTINF")
            yield Segment(uri=line, duration_s=duration_s)
            duration_s = None


def master_playlist(variants: Sequence[Variant], *, audio: AudioRendition | None) -> str:
    """Write the multivariant playlist; the variant players should start with comes first."""
    lines = ["#EXTM3U", f"#EXT-X-VERSION:{_VERSION}", "#EXT-X-INDEPENDENT-SEGMENTS"]
    if audio:
        lines.append(
            f'#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="{_AUDIO_GROUP}",NAME="{audio.name}",'
            f'DEFAULT=YES,AUTOSELECT=YES,CHANNELS="{audio.channels}",URI="{audio.uri}"'
        )
    for variant in _starting_order(variants):
        lines += [_stream_inf(variant, audio), variant.uri]
    return "\n".join(lines) + "\n"


def _starting_order(variants: Sequence[Variant]) -> list[Variant]:
    rising = sorted(variants, key=lambda variant: variant.bandwidth_bps)
    affordable = [variant for variant in rising if variant.bandwidth_bps <= _FIRST_VARIANT_BPS]
    first = affordable[-1] if affordable else rising[0]
    return [first, *(variant for variant in rising if variant is not first)]


def _stream_inf(variant: Variant, audio: AudioRendition | None) -> str:
    bandwidth_bps, average_bps = variant.bandwidth_bps, variant.average_bandwidth_bps
    codecs = variant.codecs
    if audio:
        bandwidth_bps += audio.bandwidth_bps
        average_bps += audio.average_bandwidth_bps
        codecs += f",{audio.codecs}"
    tag = (
        f"#EXT-X-STREAM-INF:BANDWIDTH={bandwidth_bps},AVERAGE-BANDWIDTH={average_bps},"
        f'CODECS="{codecs}",RESOLUTION={variant.width}x{variant.height},'
        f"FRAME-RATE={float(variant.fps):.3f}"
    )
    return f'{tag},AUDIO="{_AUDIO_GROUP}"' if audio else tag


def bandwidths_bps(
    segments: Sequence[Segment], *, sizes_bytes: Sequence[int], target_duration_s: int
) -> tuple[int, int]:
    """Peak and average rate of what was written (RFC 8216, section 4.3.4.2 and 4.1).

    The peak is over runs of segments that last 0.5 to 1.5 target durations, so that a last
    segment of a few frames doesn't count as one.
    """
    total_s = sum(segment.duration_s for segment in segments)
    average = _rate_bps(sum(sizes_bytes), total_s)
    peak = average
    for start in range(len(segments)):
        run_s, run_bytes = 0.0, 0
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


def avc_codec(init_segment: bytes) -> str:
    """The CODECS string of an H.264 init segment, from its avcC box (ISO/IEC 14496-15, 5.3.3)."""
    at = init_segment.find(b"avcC")
    profile = init_segment[at + 5 : at + 8]  # after the type and configurationVersion
    if at < 0 or len(profile) != 3:
        raise PlaylistError("no avcC box in the init segment")
    return f"avc1.{profile.hex()}"


def sign_playlist(text: str, sign: Callable[[str], str]) -> str:
    """Replace every URI, on lines of its own and in tags, by `sign(uri)`."""
    return "".join(_signed_line(line, sign) for line in text.splitlines(keepends=True))


def _signed_line(line: str, sign: Callable[[str], str]) -> str:
    if line.startswith("#EXT"):
        return _TAG_URI.sub(lambda match: f'URI="{_checked(sign(match[1]))}"', line)
    uri = line.strip()
    if not uri or uri.startswith("#"):
        return line
    return line.replace(uri, _checked(sign(uri)))


def _checked(uri: str) -> str:
    """A quote or a line break in an address would let it write playlist tags of its own."""
    if '"' in uri or len(uri.splitlines()) != 1:
        raise PlaylistError("a signed address must be one line without quotes")
    return uri
