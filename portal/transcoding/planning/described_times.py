"""Times in a description, and where they lead in the film that viewers get. Pure.

A description is the text of its editor, so a cut doesn't change it. Its times are those of the
whole film. Times that were written for a cut film are recorded beside the text with their times in
the whole film, and so are all times when another file takes the place of a cut film.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Self

from portal.transcoding.planning.kept import Kept

# Recorded times in seconds by those in the text; null for those that lead nowhere.
Recorded = Mapping[str, float | None]
# A time as players show it, such as 1:05 or 1:02:03, but not inside of a longer number.
_TIME = re.compile(r"(?<![\w:.,/-])(?:(\d{1,2}):)?(\d{1,2}):([0-5]\d)(?![\w:]|[.,/-]\d)")


def find_times(text: str) -> Iterator[tuple[re.Match[str], int]]:
    """Yield the times in a text, and their seconds."""
    for match in _TIME.finditer(text):
        hours, minutes, seconds = (int(part or 0) for part in match.groups())
        if not match[1] or minutes < 60:
            yield match, hours * 3600 + minutes * 60 + seconds


@dataclass(frozen=True, slots=True)
class DescribedTimes:
    """Links of the times in a description, such as 1:05, to moments of the film that viewers get.

    That is the whole film, or its intervals `keep`, and lasts `duration_s`. While the duration is
    None, no time is a link.
    """

    recorded: Recorded
    keep: Kept | None
    duration_s: float | None

    @classmethod
    def of(
        cls, recorded: Recorded, keep: Sequence[Sequence[float]] | None, duration_s: float | None
    ) -> Self:
        """Return the times of a row of the database."""
        return cls(recorded, Kept.of(keep) if keep else None, duration_s)

    def whole_s(self, seconds: int) -> float | None:
        """Return the time in the whole film of a time in the text; None if it leads nowhere."""
        return self.recorded.get(str(seconds), seconds)

    def shown_s(self, seconds: int) -> float | None:
        """Return where a time in the text leads; None after the film, and in removed parts."""
        at_s = self.whole_s(seconds)
        if self.keep is not None and at_s is not None:
            at_s = self.keep.cut_time_s(at_s)
        return at_s if at_s is not None and at_s < (self.duration_s or 0.0) else None

    def of_edited(self, former: str, text: str) -> dict[str, float | None]:
        """Return the record for a description that was `former` and is now `text`.

        Times that both texts have keep their record. Times that are new in `text` are those of the
        film that viewers get. Times that are the same in the whole film need no record.
        """
        former_times = {seconds for _, seconds in find_times(former)}
        recorded = {}
        for _, seconds in find_times(text):
            if seconds in former_times:
                whole_s = self.whole_s(seconds)
            else:
                whole_s = seconds if self.keep is None else self.keep.whole_time_s(seconds)
            if whole_s != seconds:
                recorded[str(seconds)] = whole_s
        return recorded

    def of_next_film(self, text: str) -> dict[str, float | None]:
        """Return what is recorded for another film, which begins with the times of this one."""
        next_times = {seconds: self.shown_s(seconds) for _, seconds in find_times(text)}
        return {str(seconds): at_s for seconds, at_s in next_times.items() if at_s != seconds}
