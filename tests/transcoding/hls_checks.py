"""What RFC 8216 and Apple's authoring rules demand, checked on the files that were written.

Reads the playlists with a parser of its own, so that a mistake can't be output twice alike.
"""

import io
import re
from collections.abc import Sequence
from pathlib import Path

import av

from portal.transcoding.encoding.transcode import PassOutput
from portal.transcoding.packaging.master import MASTER_NAME, FinishedRendition, Kind

_ATTRIBUTE = re.compile(r'([A-Z0-9-]+)=("[^"]*"|[^,]*)')
_NAMED = re.compile(r'URI="([^"]*)"')
# Playlists tell durations to the microsecond; rates are of the exact ones.
_ROUNDING = 1e-4
_MUST_HAVE = ("#EXT-X-PLAYLIST-TYPE:VOD", "#EXT-X-MEDIA-SEQUENCE:0")


def attributes(line: str) -> dict[str, str]:
    """The attribute list of a tag (RFC 8216, section 4.2)."""
    return {key: value.strip('"') for key, value in _ATTRIBUTE.findall(line.partition(":")[2])}


def entries(text: str) -> list[tuple[float, str]]:
    """Duration and address of each segment of a media playlist."""
    lines = text.splitlines()
    durations = [float(li[8:].partition(",")[0]) for li in lines if li.startswith("#EXTINF:")]
    uris = [line for line in lines if line and not line.startswith("#")]
    return list(zip(durations, uris, strict=True))


def value(text: str, tag: str) -> int:
    """The number in a tag that stands once."""
    found = re.findall(rf"^#{tag}:(\d+)$", text, re.MULTILINE)
    assert len(found) == 1, f"{tag} must stand once"
    return int(found[0])


def check_hls(folder: Path, output: PassOutput) -> None:
    """Check the master, every playlist it names, and every rate it claims."""
    master = (folder / MASTER_NAME).read_text()
    assert master.startswith("#EXTM3U\n")
    assert value(master, "EXT-X-VERSION") == 6
    targets = {each.kind: set[int]() for each in output.renditions}
    for rendition in output.renditions:
        targets[rendition.kind].add(_check_media(folder, rendition))
        if rendition.kind is Kind.VIDEO:
            _check_iframes(folder, rendition)
            _check_claims(folder, rendition)
    timed = targets[Kind.VIDEO] | targets.get(Kind.AUDIO, set())
    assert len(timed) == 1, "renditions have different target durations"
    _check_master(folder, master, output)


def variants(master: str) -> dict[str, dict[str, str]]:
    """Each variant's attributes by its address."""
    lines = master.splitlines()
    return {
        lines[number + 1]: attributes(line)
        for number, line in enumerate(lines)
        if line.startswith("#EXT-X-STREAM-INF:")
    }


def _check_media(folder: Path, rendition: FinishedRendition) -> int:
    """Return the target duration."""
    text = (folder / rendition.name / "playlist.m3u8").read_text()
    is_mapped = rendition.kind is not Kind.SUBTITLES
    assert text.startswith("#EXTM3U\n")
    assert text.endswith("#EXT-X-ENDLIST\n")
    assert all(f"{tag}\n" in text for tag in _MUST_HAVE)
    assert ('#EXT-X-MAP:URI="init.mp4"\n' in text) == is_mapped
    assert value(text, "EXT-X-VERSION") >= 6
    target_s = value(text, "EXT-X-TARGETDURATION")
    assert all(int(duration_s + 0.5) <= target_s for duration_s, _ in entries(text))
    assert all(duration_s > 0 for duration_s, _ in entries(text))
    sizes = [(folder / rendition.name / uri).stat().st_size for _, uri in entries(text)]
    assert all(sizes)
    assert rendition.segment_count == len(sizes)
    on_disk = sum(path.stat().st_size for path in (folder / rendition.name).iterdir())
    assert rendition.size_bytes == on_disk, "files nobody names, or a wrong size"
    _check_rates(rendition, [d for d, _ in entries(text)], sizes, target_s)
    return target_s


def peak_bps(durations_s: Sequence[float], sizes_bytes: Sequence[int], target_s: int) -> float:
    """The peak segment bit rate (RFC 8216, section 4.1)."""
    rates = [sum(sizes_bytes) * 8 / sum(durations_s)]
    for start in range(len(durations_s)):
        for end in range(start + 1, len(durations_s) + 1):
            length_s = sum(durations_s[start:end])
            if 0.5 * target_s <= length_s <= 1.5 * target_s:
                rates.append(sum(sizes_bytes[start:end]) * 8 / length_s)
    return max(rates)


def _check_rates(
    rendition: FinishedRendition, durations_s: Sequence[float], sizes: Sequence[int], target_s: int
) -> None:
    average_bps = sum(sizes) * 8 / sum(durations_s)
    slack_bps = 1 + average_bps * _ROUNDING
    assert abs(rendition.average_bandwidth_bps - average_bps) <= slack_bps
    assert rendition.bandwidth_bps >= peak_bps(durations_s, sizes, target_s) * (1 - _ROUNDING) - 1
    assert rendition.bandwidth_bps >= rendition.average_bandwidth_bps
    for duration_s, size in zip(durations_s, sizes, strict=True):
        if duration_s >= 0.5 * target_s:
            assert rendition.bandwidth_bps >= size * 8 / duration_s * (1 - _ROUNDING) - 1


def _check_iframes(folder: Path, rendition: FinishedRendition) -> None:
    """Each byte range after the init segment decodes to exactly one key frame."""
    text = (folder / rendition.name / "iframes.m3u8").read_text()
    whole = (folder / rendition.name / "playlist.m3u8").read_text()
    assert "#EXT-X-I-FRAMES-ONLY\n" in text
    assert value(text, "EXT-X-VERSION") >= 4
    assert [entry[1] for entry in entries(text)] == [entry[1] for entry in entries(whole)]
    total_s = sum(duration_s for duration_s, _ in entries(whole))
    assert abs(sum(duration_s for duration_s, _ in entries(text)) - total_s) < 0.01
    ranges = re.findall(r"^#EXT-X-BYTERANGE:(\d+)@(\d+)$", text, re.MULTILINE)
    init = (folder / rendition.name / "init.mp4").read_bytes()
    sizes = []
    for (length, offset), (duration_s, uri) in zip(ranges, entries(text), strict=True):
        segment = (folder / rendition.name / uri).read_bytes()
        assert int(offset) + int(length) <= len(segment)
        assert _is_one_key_frame(init + segment[int(offset) : int(offset) + int(length)])
        sizes.append((int(length), duration_s))
    target_s = value(text, "EXT-X-TARGETDURATION")
    peak = peak_bps([d for _, d in sizes], [size for size, _ in sizes], target_s)
    assert (rendition.iframe_bandwidth_bps or 0) >= peak * (1 - _ROUNDING) - 1


def _is_one_key_frame(content: bytes) -> bool:
    with av.open(io.BytesIO(content), format="mov") as container:
        frames = []
        for packet in container.demux(container.streams.video[0]):
            try:
                frames += packet.decode()
            except av.FFmpegError:  # the samples that the range leaves out
                continue
    return len(frames) == 1 and bool(frames[0].key_frame)


def _check_claims(folder: Path, rendition: FinishedRendition) -> None:
    """Codec and size are those of the stream itself."""
    with av.open(str(folder / rendition.name / "init.mp4"), format="mov") as container:
        context = container.streams.video[0].codec_context
        avcc = context.extradata
        assert (context.width, context.height) == (rendition.width, rendition.height)
    assert avcc is not None
    assert rendition.codecs == f"avc1.{avcc[1]:02x}{avcc[2]:02x}{avcc[3]:02x}"


def _check_master(folder: Path, master: str, output: PassOutput) -> None:
    """Every playlist there is, is named once, with the claims that were checked above."""
    named = [*_NAMED.findall(master), *variants(master)]
    assert len(named) == len(set(named))
    assert set(named) == {str(p.relative_to(folder)) for p in folder.rglob("*/*.m3u8")}
    sound = [each for each in output.renditions if each.kind is Kind.AUDIO]
    for rendition in (each for each in output.renditions if each.kind is Kind.VIDEO):
        claims = variants(master)[f"{rendition.name}/playlist.m3u8"]
        peak = rendition.bandwidth_bps + max((each.bandwidth_bps for each in sound), default=0)
        average = rendition.average_bandwidth_bps
        average += max((each.average_bandwidth_bps for each in sound), default=0)
        assert int(claims["BANDWIDTH"]) >= peak
        assert int(claims["AVERAGE-BANDWIDTH"]) == average
        assert claims["CODECS"] == ",".join([rendition.codecs, *(["mp4a.40.2"] if sound else [])])
        assert claims["RESOLUTION"] == f"{rendition.width}x{rendition.height}"
        assert rendition.fps is not None
        assert abs(float(claims["FRAME-RATE"]) - rendition.fps) <= 0.0005
        assert ("AUDIO" in claims) == bool(sound)
