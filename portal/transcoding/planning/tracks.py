"""Plan what becomes of a source's sound and subtitles. Pure; names and languages of renditions.

Every audio track becomes a rendition, the default one first; text subtitles become WebVTT.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from langcodes import Language
from langcodes.tag_parser import LanguageTagError

from portal.transcoding.planning.downmix import Gains, downmix
from portal.transcoding.probing.facts import Probe, Track

_MAX_LABEL_LENGTH = 100
# Control characters, what turns the direction of text around, and halves of surrogate pairs.
_UNSHOWN = re.compile(r"[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_STEREO_BITRATE_BPS = 128_000
_MONO_BITRATE_BPS = 80_000
_COPIED_SAMPLE_RATES_HZ = (44_100, 48_000)


@dataclass(frozen=True, kw_only=True, slots=True)
class TrackRung:
    """One rendition of the source's stream `index`; of subtitles, in WebVTT, all there is."""

    name: str
    index: int
    label: str
    language: str | None
    is_default: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class AudioRung(TrackRung):
    """One audio rendition in AAC-LC; more channels become two.

    `gains` are as in `Downmix`. `copied` means that it is the source's own track: whether that has
    gaps shows when it is read.
    """

    channels: int
    bitrate_bps: int
    gains: Mapping[str, Gains] = field(default_factory=dict)
    copied: bool = False


def plan_audio(probe: Probe, *, may_copy: bool) -> tuple[AudioRung, ...]:
    """The audio renditions, the default first; none for a source without sound."""
    labelled = zip(probe.audio, _labelled(probe.audio, kind="Audio"), strict=True)
    return tuple(
        AudioRung(
            name="audio" if number == 1 else f"audio-{number}",
            is_default=number == 1,
            channels=min(2, track.channels),
            gains=downmix(track).gains,
            bitrate_bps=_MONO_BITRATE_BPS if track.channels == 1 else _STEREO_BITRATE_BPS,
            # What players everywhere take as it is.
            copied=may_copy
            and (track.codec, track.profile) == ("aac", "LC")
            and track.channels in (1, 2)
            and track.sample_rate_hz in _COPIED_SAMPLE_RATES_HZ,
            **labels,
        )
        for number, (track, labels) in enumerate(labelled, 1)
    )


def plan_subtitles(probe: Probe) -> tuple[TrackRung, ...]:
    """The subtitle renditions, in the source's order."""
    labelled = _labelled(probe.subtitles, kind="Subtitles")
    return tuple(
        TrackRung(name=f"subtitles-{number}", **labels) for number, labels in enumerate(labelled, 1)
    )


def language_tag(language: str | None) -> str | None:
    """A file's language code as HLS wants it (RFC 5646): `eng` becomes `en`."""
    try:
        tag = Language.get(language).to_tag() if language else "und"
    except LanguageTagError:
        return None
    return None if tag == "und" else tag


def language_name(tag: str) -> str:
    """What a language is called in English; empty if there is none by this tag."""
    language = Language.get(tag)
    return language.display_name() if language.is_valid() else ""


def _labelled(tracks: Sequence[Track], *, kind: str) -> Iterator[dict[str, Any]]:
    """Which track, its language, and its label, what a player's menu calls it.

    No two labels are the same, as RFC 8216 (4.3.4.1.1) demands.
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
    """The text for an attribute of a playlist: a quote would end that, a line break the tag.

    Nor may it turn around or hide the menu it is shown in.
    """
    words = " ".join(text.replace('"', "'").split())
    return _UNSHOWN.sub("", words)[:_MAX_LABEL_LENGTH].strip()
