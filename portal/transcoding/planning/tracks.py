"""Plan the renditions of a source's sound and subtitles, with names and languages. Pure.

Each sound track becomes a rendition, the default one first. Text subtitles become WebVTT.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from langcodes import Language
from langcodes.tag_parser import LanguageTagError

from portal.transcoding.planning.downmix import Gains, downmix, join
from portal.transcoding.probing.facts import AudioTrack, Probe, Track

_MAX_LABEL_LENGTH = 100
# Control characters, characters that change the direction of text, and single surrogates.
_UNSHOWN = re.compile(r"[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_STEREO_BITRATE_BPS = 128_000
_MONO_BITRATE_BPS = 80_000
_COPIED_SAMPLE_RATES_HZ = (44_100, 48_000)
# Codec names of uncompressed sound, to which editing programs add a default language.
_UNCOMPRESSED = "pcm_"
# Channels of the same recording have lengths that differ by less than a packet.
_MAX_LENGTH_DIFFERENCE_S = 0.1


@dataclass(frozen=True, kw_only=True, slots=True)
class TrackRung:
    """Rendition of the source's stream `index`; used as it is for subtitles in WebVTT."""

    name: str
    index: int
    label: str
    language: str | None
    is_default: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class AudioRung(TrackRung):
    """Sound rendition in AAC-LC, with one or two channels.

    `gains` are as in `Downmix`. The `joined` streams are further channels after the stream `index`.
    `copied` means that the source's track is copied, unless it turns out to have gaps.
    """

    channels: int
    bitrate_bps: int
    gains: Mapping[str, Gains] = field(default_factory=dict)
    joined: tuple[int, ...] = ()
    copied: bool = False


def plan_audio(probe: Probe, *, may_copy: bool) -> tuple[AudioRung, ...]:
    """Plan the sound renditions, the default first; none for a source without sound."""
    groups = _group([track for track in probe.audio if not track.is_silent] or probe.audio)
    firsts = [group[0] for group in groups]
    labelled = zip(groups, _labelled(firsts, kind="Audio"), strict=True)
    return tuple(
        _audio_rung(
            group,
            number,
            may_copy=may_copy and probe.shows_one_part(group[0].hidden),
            **labels,
        )
        for number, (group, labels) in enumerate(labelled, 1)
    )


def _group(tracks: Sequence[AudioTrack]) -> list[tuple[AudioTrack, ...]]:
    """Group tracks that are channels of the same sound, such as those of a camera.

    Such tracks are mono, equally long and of the same kind. They have no title, and a language only
    if they are uncompressed. Tracks with labels form one group; others form pairs of left and
    right.
    """
    if len(tracks) < 2 or not all(_is_channel(track, tracks[0]) for track in tracks):
        return [(track,) for track in tracks]
    ordered = sorted(tracks, key=lambda track: track.index)
    if join([track.layout for track in ordered]) != join(("mono", "mono")):
        return [tuple(ordered)]
    return [tuple(ordered[place : place + 2]) for place in range(0, len(ordered), 2)]


def _is_channel(track: AudioTrack, other: AudioTrack) -> bool:
    """Return whether two tracks may be channels of the same sound."""
    if track.end_s is None or other.end_s is None:
        return False
    return (
        track.channels == 1
        and track.title is None
        and (track.language is None or track.codec.startswith(_UNCOMPRESSED))
        and (track.codec, track.sample_rate_hz, track.language)
        == (other.codec, other.sample_rate_hz, other.language)
        and abs(track.end_s - other.end_s) <= _MAX_LENGTH_DIFFERENCE_S
    )


def _audio_rung(
    group: Sequence[AudioTrack], number: int, *, may_copy: bool, **labels: Any
) -> AudioRung:
    track = group[0]
    is_joined = len(group) > 1
    channels = 2 if is_joined else min(2, track.channels)
    mix = join([channel.layout for channel in group]) if is_joined else downmix(track)
    # All players decode such tracks.
    is_copyable = (
        not mix.gains
        and (track.codec, track.profile) == ("aac", "LC")
        and track.channels in (1, 2)
        and track.sample_rate_hz in _COPIED_SAMPLE_RATES_HZ
    )
    return AudioRung(
        name="audio" if number == 1 else f"audio-{number}",
        is_default=number == 1,
        channels=channels,
        bitrate_bps=_MONO_BITRATE_BPS if channels == 1 else _STEREO_BITRATE_BPS,
        gains=mix.gains,
        joined=tuple(channel.index for channel in group[1:]),
        copied=may_copy and is_copyable,
        **labels,
    )


def plan_subtitles(probe: Probe) -> tuple[TrackRung, ...]:
    """Plan the subtitle renditions, in the source's order."""
    labelled = _labelled(probe.subtitles, kind="Subtitles")
    return tuple(
        TrackRung(name=f"subtitles-{number}", **labels) for number, labels in enumerate(labelled, 1)
    )


def language_tag(language: str | None) -> str | None:
    """Return a file's language code as a tag of RFC 5646, as HLS requires: `eng` becomes `en`."""
    try:
        tag = Language.get(language).to_tag() if language else "und"
    except LanguageTagError:
        return None
    return None if tag == "und" else tag


def language_name(tag: str) -> str:
    """Return the English name of a language; empty if the tag is unknown."""
    language = Language.get(tag)
    return language.display_name() if language.is_valid() else ""


def _labelled(tracks: Sequence[Track], *, kind: str) -> Iterator[dict[str, Any]]:
    """Yield index, language and label of each track; players show the label in a menu.

    Labels are unique, as RFC 8216 (4.3.4.1.1) requires.
    """
    used: set[str] = set()
    for number, track in enumerate(tracks):
        tag = language_tag(track.language)
        plain = kind if len(tracks) == 1 else f"{kind} {number + 1}"
        name = language_name(tag) if tag else ""
        clean = attribute_text(track.title or name or plain) or plain
        label = clean if clean not in used else f"{clean} ({number + 1})"
        used.add(label)
        yield {"index": track.index, "language": tag, "label": label}


def attribute_text(text: str) -> str:
    """Return a text for an attribute of a playlist, without quotes, line breaks and controls."""
    words = " ".join(text.replace('"', "'").split())
    return _UNSHOWN.sub("", words)[:_MAX_LABEL_LENGTH].strip()
