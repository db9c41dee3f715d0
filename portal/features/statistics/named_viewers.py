"""Viewers whose names are known, and how much of a video each has watched.

With `VIEWER_NAMES=on` a report from a person with an account, from a guest, or from the address of
a playback link that names its viewer has a `Viewer`. Its id is a key: the kind of the viewer, a
colon, and the account's id, the guest's e-mail address, or the id in the other system. The key
comes from the credentials of the report's request, so nobody can report for another viewer.
"""

from uuid import UUID

from pydantic import Field

from portal.config import Config
from portal.database.connection import Row, fetch_rows
from portal.errors import NotFound
from portal.events.records import Shape, Time
from portal.features.statistics.films import HUNDREDTHS, fetch_films
from portal.features.statistics.viewers import ViewerDay
from portal.locale.messages import Message

# Share from which a video counts as watched completely: few people watch the credits.
COMPLETED = 0.9
PAGE_SIZE = 200

# The account may have been removed since the report. A removal at the same time fails the fold,
# which is repeated.
ADD_CHANGES = """
INSERT INTO named_viewers
  (video_id, viewer, label, account_id, first_at, last_at, watch_ms, seen)
SELECT video_id, viewer, (array_agg(label ORDER BY at DESC))[1], accounts.id,
       min(at), max(at), sum(watch_ms), bit_or(seen)
FROM jsonb_to_recordset(%s) AS change (
  video_id uuid, viewer text, label text, at timestamptz, watch_ms bigint, seen bit(100)
)
LEFT JOIN accounts ON viewer = 'account:' || accounts.id
WHERE accounts.id IS NOT NULL OR viewer NOT LIKE 'account:%%'
GROUP BY video_id, viewer, accounts.id
ON CONFLICT (video_id, viewer) DO UPDATE SET
  label = excluded.label, last_at = greatest(named_viewers.last_at, excluded.last_at),
  watch_ms = named_viewers.watch_ms + excluded.watch_ms,
  seen = named_viewers.seen | excluded.seen
"""
# People can change the names of their accounts.
LIST = """
WITH listed AS (
  SELECT number, split_part(viewer, ':', 1) AS kind,
         coalesce(account.email, substr(viewer, strpos(viewer, ':') + 1)) AS id,
         coalesce(nullif(account.name, ''), account.email, label) AS label,
         first_at, last_at, round(watch_ms / 1000.0)::bigint AS watch_seconds, seen::text AS seen
  FROM named_viewers LEFT JOIN accounts account ON account.id = account_id
  WHERE video_id = %s
)
SELECT * FROM listed
WHERE %s::bigint IS NULL
   OR (lower(label), number) > (SELECT lower(label), number FROM listed WHERE number = %s)
ORDER BY lower(label), number LIMIT %s
"""
DELETE = "DELETE FROM named_viewers WHERE last_at < now() - make_interval(days => %s)"


class NamedViewer(Shape):
    """Viewer whose name is known, with the share of a video that the viewer has watched."""

    kind: str = Field(description="`account`, `guest`, or `external`: named by a playback link.")
    id: str = Field(description="E-mail address, or the `id` in the playback link.")
    label: str = Field(description="Name, e-mail address, or the `label` in the playback link.")
    first_at: Time = Field(description="Time of the first report.")
    last_at: Time = Field(description="Time of the last report.")
    watch_seconds: int = Field(description="Time for which the viewer watched.")
    share: float = Field(ge=0, le=1, description="Share of the video that the viewer saw.")
    is_completed: bool = Field(description=f"True from a share of {COMPLETED} on.")


class NamedViewers(Shape):
    """Page of the viewers of a video whose names are known, in the order of their labels."""

    viewers: list[NamedViewer] = Field(description="The viewers.")
    next_cursor: int | None = Field(description="Start of the next page; null on the last page.")


def change_row(report: Row, before: ViewerDay, after: ViewerDay) -> Row:
    """Return what a player's report about a named viewer adds, as a row for `ADD_CHANGES`.

    It is the difference of the viewer's day `before` and `after` the report.
    """
    return {
        "video_id": report["video_id"],
        "viewer": report["named_viewer"]["id"],
        "label": report["named_viewer"]["label"],
        "at": report["received_at"],
        "watch_ms": after.watch_ms - before.watch_ms,
        "seen": "".join("1" if plays else "0" for plays in after.plays),
    }


async def list_viewers(
    video_id: UUID, *, config: Config, limit: int = PAGE_SIZE, after: int | None = None
) -> NamedViewers:
    """Return a page of the named viewers of a video; `after` is the cursor of the page before.

    Raises `NotFound` while `VIEWER_NAMES` is off.
    """
    if not config.viewer_names:
        raise NotFound(Message("This portal doesn't keep names of viewers. Set VIEWER_NAMES=on."))
    rows = await fetch_rows(LIST, video_id, after, after, limit + 1)
    film = (await fetch_films([video_id]))[video_id]
    shares = [film.share_seen(bytes(map(int, row["seen"]))) / HUNDREDTHS for row in rows]
    return NamedViewers(
        viewers=[
            NamedViewer(**row, share=share, is_completed=share >= COMPLETED)
            for row, share in zip(rows[:limit], shares, strict=False)
        ],
        next_cursor=rows[limit - 1]["number"] if len(rows) > limit else None,
    )
