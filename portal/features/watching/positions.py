"""Watch positions: where signed-in people continue their videos, on any device.

The database keeps a position for each account and video. A position of 0 is that of a video which
the person has finished, or removed from "Continue watching": it replaces the older positions that
other browsers have saved (`static/src/player/saved-state.js`). Other people's positions are only in
their browsers. Positions in a cut video are stored as times of the whole film, so they stay right
when it is cut again.
"""

from dataclasses import dataclass, replace
from uuid import UUID

from portal.accounts.permissions import Principal, audience_in
from portal.database.connection import IS_PRESENT, execute, fetch_rows
from portal.database.models import Video
from portal.events.records import AUDIENCE_COLUMNS
from portal.transcoding.planning.kept import Kept
from portal.videos.reading import fetch_videos

# The same rules as in `static/src/player/saved-state.js`.
SHORTEST_WATCHED_S = 5
ENDING_SHARE = 0.05
ENDING_S = 20
# Number of videos whose positions are kept for an account, the most recently watched ones.
MAX_POSITIONS = 100
# The subquery doesn't see the inserted row yet.
SAVE = """
WITH saved AS (
  INSERT INTO watch_positions (account_id, video_id, position_s) VALUES (%s, %s, %s)
  ON CONFLICT (account_id, video_id) DO UPDATE
    SET position_s = excluded.position_s, changed_at = excluded.changed_at
)
DELETE FROM watch_positions WHERE account_id = %s AND video_id IN (
  SELECT video_id FROM watch_positions WHERE account_id = %s AND video_id <> %s
  ORDER BY changed_at DESC OFFSET %s
)
"""
FINISH = """
UPDATE watch_positions SET position_s = 0, changed_at = now()
WHERE account_id = %s AND video_id = %s
"""
READ = """
SELECT position_s, extract(epoch FROM now() - changed_at)::double precision AS age_s
FROM watch_positions WHERE account_id = %s AND video_id = %s
"""
BEGUN = f"""
SELECT video_id, position_s, {", ".join(AUDIENCE_COLUMNS)}
FROM watch_positions watched JOIN videos ON videos.id = video_id
WHERE account_id = %s AND position_s > 0 AND status = 'ready' AND {IS_PRESENT}
ORDER BY watched.changed_at DESC
"""  # noqa: S608 - put together from constants
CLEAR = "DELETE FROM watch_positions WHERE account_id = %s"


@dataclass(frozen=True, slots=True)
class WatchPosition:
    """Position of an account in a video, saved `age_s` ago; 0 for a finished video."""

    position_s: int
    age_s: float


@dataclass(frozen=True, slots=True)
class BegunVideo:
    """Video that a person has begun to watch, and their position in it."""

    video: Video
    position_s: int

    @property
    def left_s(self) -> float:
        """Return the time from the position to the end."""
        return max((self.video.duration_s or 0) - self.position_s, 0)

    @property
    def percent(self) -> int:
        """Return the watched share of the video in percent."""
        return round(100 * self.position_s / (self.position_s + self.left_s))


def is_resumable(position_s: int, duration_s: float | None) -> bool:
    """Return whether a position is neither in the first seconds of a video nor in its ending."""
    if duration_s is None:
        return position_s >= SHORTEST_WATCHED_S
    ending_s = min(duration_s * ENDING_SHARE, ENDING_S)
    return SHORTEST_WATCHED_S <= position_s < duration_s - ending_s


async def save_position(person: Principal, video: Video, position_s: int) -> None:
    """Save a signed-in person's position in a video, or mark the video as finished."""
    if not is_resumable(position_s, video.duration_s):
        await mark_finished(person, video.id)
        return
    if video.keep is not None:
        position_s = int(Kept.of(video.keep).whole_time_s(position_s))
    own = (person.account_id, video.id)
    await execute(SAVE, *own, position_s, person.account_id, *own, MAX_POSITIONS - 1)


async def mark_finished(person: Principal, video_id: UUID) -> None:
    """Let a begun video start from the beginning, on all devices of a signed-in person."""
    await execute(FINISH, person.account_id, video_id)


async def fetch_position(person: Principal, video: Video) -> WatchPosition | None:
    """Return the saved position of a signed-in person in a video, if there is one."""
    rows = await fetch_rows(READ, person.account_id, video.id)
    if not rows:
        return None
    saved = WatchPosition(**rows[0])
    return replace(saved, position_s=_present_position_s(saved.position_s, video))


def _present_position_s(position_s: int, video: Video) -> int:
    """Return a saved position in the film that viewers get, and 0 if it has ended by then."""
    if video.keep is None or position_s == 0:
        return position_s
    present_s = int(Kept.of(video.keep).next_cut_time_s(position_s))
    return present_s if is_resumable(present_s, video.duration_s) else 0


async def fetch_begun(person: Principal, *, limit: int) -> list[BegunVideo]:
    """Return the ready videos that a person has begun and may see, the last watched first."""
    begun = await fetch_rows(BEGUN, person.account_id)
    visible = [row for row in begun if person.may_see(audience_in(row))][:limit]
    if not visible:
        return []
    videos = await fetch_videos([row["video_id"] for row in visible])
    present = [
        BegunVideo(video, _present_position_s(row["position_s"], video))
        for row in visible
        if (video := videos.get(row["video_id"])) is not None
    ]
    return [row for row in present if row.position_s > 0]


async def clear_positions(person: Principal) -> None:
    """Delete all saved positions of a signed-in person."""
    await execute(CLEAR, person.account_id)
