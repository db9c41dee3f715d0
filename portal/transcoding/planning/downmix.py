"""Mix the channels of a sound track down to two, by the positions of their speakers. Pure.

A speaker keeps its side. Centre and surround speakers are 3 dB softer, speakers in the middle
behind or above 6 dB, and low-frequency effects are left out (ITU-R BS.775, annex 4, and FFmpeg).
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from portal.transcoding.probing.facts import AudioTrack

Gains = tuple[float, float]

_SOFTER = 0.7071
_LEFT: Gains = (1.0, 0.0)
_RIGHT: Gains = (0.0, 1.0)
_BOTH: Gains = (1.0, 1.0)
_SURROUND_LEFT: Gains = (_SOFTER, 0.0)
_SURROUND_RIGHT: Gains = (0.0, _SOFTER)
_CENTRE: Gains = (_SOFTER, _SOFTER)
_DISTANT: Gains = (0.5, 0.5)
# Gains of a speaker by FFmpeg's name for it.
_SPEAKERS: Mapping[str, Gains] = {
    **dict.fromkeys(("FL", "FLC", "DL", "WL", "BIL"), _LEFT),
    **dict.fromkeys(("FR", "FRC", "DR", "WR", "BIR"), _RIGHT),
    **dict.fromkeys(("BL", "SL", "SDL", "SSL", "TFL", "TBL", "TSL", "TTL", "BFL"), _SURROUND_LEFT),
    **dict.fromkeys(("BR", "SR", "SDR", "SSR", "TFR", "TBR", "TSR", "TTR", "BFR"), _SURROUND_RIGHT),
    "FC": _CENTRE,
    **dict.fromkeys(("BC", "TC", "TFC", "TBC", "BFC"), _DISTANT),
}
# Channels that are not part of a stereo mix, or empty.
_UNHEARD = frozenset({"LFE", "LFE2", "UNSD"})
# Layouts of one or two channels, which FFmpeg mixes correctly without gains.
_PLAIN = frozenset({"", "mono", "stereo", "downmix", "1 channels", "2 channels"})
# Up to this number of channels without labels, FFmpeg assumes a usual layout.
_MAX_ASSUMED = 8
_LISTED = re.compile(r"\d+ channels \((.+)\)")
_UNLABELLED = re.compile(r"\d+ channels")
_AMBISONIC = "ambisonic"


@dataclass(frozen=True, kw_only=True, slots=True)
class Downmix:
    """Gains to the left and to the right by FFmpeg's name of a channel, such as FC or c0.

    Without gains, FFmpeg mixes by default. `is_spatial` means that directions are lost,
    `leaves_out` that channels are left out.
    """

    gains: Mapping[str, Gains] = field(default_factory=dict)
    is_spatial: bool = False
    leaves_out: bool = False


def downmix(track: AudioTrack) -> Downmix:
    """Return the gains that mix a track's channels to stereo; none if it is mono or stereo already.

    In FFmpeg's standard layouts, gains have names of channels (FL, FR), so that they still apply if
    the layout changes within the track. In other layouts they have numbers of channels (c0, c1).
    """
    layout = track.layout
    if layout in _PLAIN:
        return Downmix()
    if listed := _LISTED.fullmatch(layout):
        return _mix_listed(listed[1].split("+"))
    if layout.startswith(_AMBISONIC):
        # The first channel is the sound from all directions.
        return Downmix(gains={"c0": _BOTH}, is_spatial=True)
    if _UNLABELLED.fullmatch(layout) and track.channels > _MAX_ASSUMED:
        return _first_two(leaves_out=True)
    return Downmix(gains=_SPEAKERS)


def join(layouts: Sequence[str]) -> Downmix:
    """Return the mix of mono tracks with these layouts: by their labels, else left and right."""
    listed = [_LISTED.fullmatch(layout) for layout in layouts]
    if not any(listed):
        return _first_two(leaves_out=False)
    return _mix_listed([match[1] if match else "FC" for match in listed])


def _mix_listed(names: Sequence[str]) -> Downmix:
    """Mix channels by their names, or the first two if no name is known.

    Sound that would be on one side only, such as a single left channel, is on both.
    """
    if len(names) == 1:
        return Downmix(gains={"c0": _BOTH})
    gains = {
        f"c{number}": _SPEAKERS[name] for number, name in enumerate(names) if name in _SPEAKERS
    }
    if not gains:
        return _first_two(leaves_out=len(names) > 2)
    if not all(map(any, zip(*gains.values(), strict=True))):
        gains = {name: (max(sides), max(sides)) for name, sides in gains.items()}
    return Downmix(gains=gains, leaves_out=not _UNHEARD.union(_SPEAKERS).issuperset(names))


def _first_two(*, leaves_out: bool) -> Downmix:
    return Downmix(gains={"c0": _LEFT, "c1": _RIGHT}, leaves_out=leaves_out)
