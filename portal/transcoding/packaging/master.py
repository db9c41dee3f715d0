"""Write the multivariant (master) playlist from the measures of finished renditions. Pure."""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction

from portal.transcoding.packaging.hls import IFRAME_PLAYLIST_NAME, VERSION, media_playlist_name

MASTER_NAME = "master.m3u8"
# Players start with the first variant, before they know the bandwidth; Apple's authoring guide asks
# for about 2 Mbit/s.
_FIRST_VARIANT_BPS = 2_500_000


class Kind(StrEnum):
    """Medium of a rendition."""

    VIDEO = "video"
    AUDIO = "audio"
    SUBTITLES = "subtitles"


@dataclass(frozen=True, kw_only=True, slots=True)
class FinishedRendition:
    """Properties and measures of a rendition. A video's bandwidths exclude its audio.

    `width`, `height`, `fps` and `iframe_bandwidth_bps` are set for video, `channels` for audio.
    Without an `iframe_bandwidth_bps` there is no I-frame playlist. `copied` means that the segments
    hold the source's own stream.
    """

    kind: Kind
    name: str
    codecs: str
    bandwidth_bps: int
    average_bandwidth_bps: int
    size_bytes: int
    segment_count: int
    width: int | None = None
    height: int | None = None
    fps: Fraction | None = None
    copied: bool = False
    iframe_bandwidth_bps: int | None = None
    channels: int | None = None
    language: str | None = None
    label: str | None = None
    is_default: bool = False


_STORED_CAPTIONS = re.compile(
    r'^#EXT-X-MEDIA:TYPE=SUBTITLES,.*URI="(?:[^"]*/)?captions/(?P<folder>[^/"]+)/.*\n', re.MULTILINE
)
_SUBTITLES_GROUP = f',SUBTITLES="{Kind.SUBTITLES}"'

# The folder of a rendition, relative to the master playlist (such as "" or "../2/"), and itself.
Entry = tuple[str, FinishedRendition]


def master_playlist(entries: Sequence[Entry]) -> str:
    """Write the multivariant playlist, first the variant that players should start with."""
    videos, audios, subtitles = ([e for e in entries if e[1].kind is kind] for kind in Kind)
    videos.sort(key=lambda entry: entry[1].bandwidth_bps)
    lines = [
        *("#EXTM3U", f"#EXT-X-VERSION:{VERSION}", "#EXT-X-INDEPENDENT-SEGMENTS"),
        *(_media(folder, audio, *_channels(audio)) for folder, audio in audios),
        *(_media(folder, track, "FORCED=NO") for folder, track in subtitles),
    ]
    # A player loads one audio track; the largest counts.
    sound_bps = max((audio.bandwidth_bps for _, audio in audios), default=0)
    affordable = [e for e in videos if e[1].bandwidth_bps + sound_bps <= _FIRST_VARIANT_BPS]
    first = affordable[-1] if affordable else videos[0]
    for folder, video in [first, *(entry for entry in videos if entry is not first)]:
        tag = _stream_inf(video, [audio for _, audio in audios], has_subtitles=bool(subtitles))
        lines += [tag, folder + media_playlist_name(video.name)]
    lines += [
        _iframe_stream_inf(folder, video) for folder, video in videos if video.iframe_bandwidth_bps
    ]
    return "\n".join(lines) + "\n"


def without_missing_captions(playlist: str, served_folders: Collection[str]) -> str:
    """Return a master playlist without captions in other folders than these.

    Captions of files, which are in the folders of renditions, stay.
    """
    text = _STORED_CAPTIONS.sub(
        lambda tag: tag[0] if tag["folder"] in served_folders else "", playlist
    )
    return text if "TYPE=SUBTITLES" in text else text.replace(_SUBTITLES_GROUP, "")


def _stream_inf(
    video: FinishedRendition, audios: Sequence[FinishedRendition], *, has_subtitles: bool
) -> str:
    peak_bps = max((audio.bandwidth_bps for audio in audios), default=0)
    average_bps = max((audio.average_bandwidth_bps for audio in audios), default=0)
    codecs = ",".join([video.codecs, *sorted({audio.codecs for audio in audios})])
    attributes = [
        f"BANDWIDTH={video.bandwidth_bps + peak_bps}",
        f"AVERAGE-BANDWIDTH={video.average_bandwidth_bps + average_bps}",
        f'CODECS="{codecs}"',
        f"RESOLUTION={video.width}x{video.height}",
        f"FRAME-RATE={float(video.fps or 0):.3f}",
        *([f'AUDIO="{Kind.AUDIO}"'] if audios else []),
        *([f'SUBTITLES="{Kind.SUBTITLES}"'] if has_subtitles else []),
    ]
    return f"#EXT-X-STREAM-INF:{','.join(attributes)}"


def _channels(audio: FinishedRendition) -> Sequence[str]:
    return () if audio.channels is None else (f'CHANNELS="{audio.channels}"',)


def _media(folder: str, rendition: FinishedRendition, *extra: str) -> str:
    """Return the tag of an alternative track, whose group is named for its kind."""
    attributes = [
        f"TYPE={rendition.kind.upper()}",
        f'GROUP-ID="{rendition.kind}"',
        f'NAME="{rendition.label}"',
        *([f'LANGUAGE="{rendition.language}"'] if rendition.language else []),
        f"DEFAULT={'YES' if rendition.is_default else 'NO'}",
        "AUTOSELECT=YES",
        *extra,
        f'URI="{folder}{media_playlist_name(rendition.name)}"',
    ]
    return f"#EXT-X-MEDIA:{','.join(attributes)}"


def _iframe_stream_inf(folder: str, video: FinishedRendition) -> str:
    attributes = [
        f"BANDWIDTH={video.iframe_bandwidth_bps}",
        f'CODECS="{video.codecs}"',
        f"RESOLUTION={video.width}x{video.height}",
        f'URI="{folder}{video.name}/{IFRAME_PLAYLIST_NAME}"',
    ]
    return f"#EXT-X-I-FRAME-STREAM-INF:{','.join(attributes)}"
