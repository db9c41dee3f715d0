"""Clips: a part of a video between the parameters `start` and `end` of an address.

Pages and embedded players play the part of a clip exactly. Playlists are cut at segment bounds. A
clip gives no access that its video doesn't give, and hides nothing of it.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from math import inf
from urllib.parse import urlencode

from quart import request

from portal.database.models import Video, VideoStatus
from portal.errors import InvalidClip
from portal.locale.messages import Message, numeral
from portal.transcoding.planning.kept import SHORTEST_S

PARAMETERS = ("start", "end")
# Times as `?t=` takes them: 90, 90.5s, 1m30s, 1:30 or 1:02:03.
_UNIT_TIME = re.compile(
    r"(?=\d)(?:(\d{1,3})h)?(?:(\d{1,5})m)?(?:(\d{1,7}(?:\.\d{1,9})?)s?)?", re.ASCII
)
_CLOCK_TIME = re.compile(r"(?:(\d{1,3}):)?(\d{1,3}):([0-5]\d(?:\.\d{1,9})?)", re.ASCII)


@dataclass(frozen=True, slots=True)
class Clip:
    """Part of a video, in seconds from its beginning, exact to a millisecond."""

    start_s: float
    end_s: float

    @property
    def arguments(self) -> dict[str, str]:
        """Return the parameters of an address of this clip."""
        times = {"start": self.start_s, "end": self.end_s}
        return {name: f"{at_s:.3f}".rstrip("0").rstrip(".") for name, at_s in times.items()}

    def address(self, url: str) -> str:
        """Return an address with the parameters of this clip."""
        return f"{url}?{urlencode(self.arguments)}"


def parse_clip(arguments: Mapping[str, str], duration_s: float | None) -> Clip | None:
    """Return the clip of an address; None if the address is of the whole video.

    An end after the video is its end. Players can't play less than `SHORTEST_S` before it. Without
    `duration_s` neither is checked, and a clip without an end has an infinite one. Raises
    `InvalidClip`, which names the parameter.
    """
    last_s = duration_s or inf
    start_s = _time_in(arguments, "start", 0.0)
    end_s = min(_time_in(arguments, "end", last_s), last_s)
    if start_s > max(0.0, last_s - SHORTEST_S):
        raise InvalidClip(
            Message(
                "`start` must be at least %(least)s seconds before the end of the video, at "
                "%(end)s seconds.",
                least=numeral(SHORTEST_S),
                end=numeral(last_s, 3),
            )
        )
    if start_s >= end_s:
        raise InvalidClip(Message("`end` must be after `start`."))
    return Clip(start_s, end_s) if start_s > 0 or end_s < last_s else None


def playable_clip(video: Video, arguments: Mapping[str, str] | None = None) -> Clip | None:
    """Return the clip that a player shows; None for the whole video.

    `arguments` are those of the request unless others are given. A clip that isn't valid is the
    whole video. A video has clips once it is ready.
    """
    if video.status is not VideoStatus.READY or not video.duration_s:
        return None
    try:
        return parse_clip(request.args if arguments is None else arguments, video.duration_s)
    except InvalidClip:
        return None


def clip_arguments(video: Video) -> dict[str, str]:
    """Return the parameters of the request's clip for other addresses; empty for the whole video.

    Before a video is ready, they are unchecked and kept for its player.
    """
    if video.status is VideoStatus.READY:
        clip = playable_clip(video)
        return clip.arguments if clip else {}
    return {name: request.args[name] for name in PARAMETERS if name in request.args}


def _time_in(arguments: Mapping[str, str], name: str, default_s: float) -> float:
    text = arguments.get(name)
    if text is None:
        return default_s
    text = text.strip().lower()
    match = _UNIT_TIME.fullmatch(text) or _CLOCK_TIME.fullmatch(text)
    if match is None:
        raise InvalidClip(
            Message(
                "`%(parameter)s` must be a time in seconds, such as 90 or 12.5, or as 1m30s.",
                parameter=name,
            )
        )
    hours, minutes, seconds = (float(part or 0) for part in match.groups())
    return round(hours * 3600 + minutes * 60 + seconds, 3)
