"""Use cases of series. A series and its videos are changed by one transaction after another.

A program's change names the version that it is for. People's changes of the list say what moves, is
added or removed, so they can't undo each other. Whoever changes the list leaves the videos that
they may not see at their places.
"""

import hashlib
import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from uuid import UUID, uuid4

from psycopg import sql

from portal.accounts.permissions import (
    Action,
    Audience,
    Principal,
    audience_in,
    editable_by,
    listed_for,
    visible_to,
)
from portal.database.connection import (
    IS_PRESENT,
    Row,
    execute,
    fetch_rows,
    run_query,
    sql_with,
    transaction,
)
from portal.database.models import Video
from portal.errors import (
    FieldError,
    InvalidRequest,
    NotAllowed,
    SeriesChanged,
    SeriesNotFound,
    VersionConflict,
)
from portal.events.log import AuditAction, changed_fields, record_action
from portal.locale.messages import Message, numeral
from portal.videos.library_queries import Cursor, LibraryQuery
from portal.videos.reading import AUDIENCE_NOW, check_version, parse_video_id
from portal.videos.series import SERIES_AUDIENCE, check_visible
from portal.videos.visibility import PasswordChange, access_of, audience_with, with_password

MAX_VIDEOS = 500
# Series that a person may choose from in the workshop, the newest.
MAX_CHOICES = 200
COLUMNS = ", ".join(("id", "title", "description", *SERIES_AUDIENCE, "version, created_at"))
# Columns of videos that lists show, and of their audience.
SHOWN = f"""
id, title, status, created_at, duration_s, published_attempt, has_poster, poster_version,
{AUDIENCE_NOW}
"""
# The innermost tables have the columns of the videos' audience.
SUMMARIES = f"""
SELECT series.*, seen.* FROM (
  SELECT {COLUMNS}, updated_at FROM series WHERE {{condition}}
  ORDER BY created_at DESC, id DESC LIMIT {{limit}}
) AS series CROSS JOIN LATERAL (
  SELECT count(*) AS video_count, (array_agg(video_id ORDER BY position))[1] AS first_id
  FROM series_videos JOIN publications ON publications.id = video_id
  WHERE series_id = series.id AND {IS_PRESENT} AND {{visible}}
) AS seen ORDER BY created_at DESC, id DESC
"""  # noqa: S608 - put together from constants
ANY_LISTED = "SELECT FROM series WHERE {listed} LIMIT 1"
OF_VIDEO = "id IN (SELECT series_id FROM series_videos WHERE video_id = {video_id})"
VIDEOS = f"""
SELECT {SHOWN} FROM videos JOIN series_videos ON video_id = id
WHERE series_id = {{series_id}} AND {IS_PRESENT} AND {{visible}} ORDER BY position
"""  # noqa: S608
LOCK = f"SELECT {COLUMNS} FROM series WHERE id = %s FOR UPDATE"  # noqa: S608
INSERT = """
INSERT INTO series (id, title, description, visibility, signed_in_only, owner_id)
VALUES (%s, %s, %s, %s, %s, %s)
"""
UPDATE = """
UPDATE series SET title = %s, description = %s, visibility = %s, signed_in_only = %s,
  admitted_ids = %s, editor_ids = %s, unlock_id = %s,
  password_hash = CASE WHEN %s::uuid IS NOT NULL THEN coalesce(%s, password_hash) END,
  version = version + 1, updated_at = now()
WHERE id = %s
"""
LOCKED = """
SELECT unlock_id, password_hash FROM series
WHERE id = %s AND visibility = 'private' AND unlock_id IS NOT NULL
"""
TOUCH = "UPDATE series SET version = version + 1, updated_at = now() WHERE id = %s"
# The videos of a series and others, locked against removal, and whether the reader sees each.
LOCK_VIDEOS = f"""
SELECT id, ({IS_PRESENT} AND {{visible}}) AS is_seen FROM publications
WHERE id = ANY ({{ids}}::uuid[])
  OR id IN (SELECT video_id FROM series_videos WHERE series_id = {{series_id}})
ORDER BY created_at, id FOR KEY SHARE
"""  # noqa: S608
MEMBERS = "SELECT video_id FROM series_videos WHERE series_id = %s ORDER BY position"
REMOVE_OTHERS = "DELETE FROM series_videos WHERE series_id = %s AND video_id <> ALL (%s)"
PLACE = """
INSERT INTO series_videos (series_id, video_id, position, added_by_editor)
SELECT {series_id}, id, number, {may_edit} FROM publications
JOIN unnest({ids}::uuid[]) WITH ORDINALITY AS member (video_id, number) ON video_id = id
ON CONFLICT (series_id, video_id) DO UPDATE SET position = excluded.position
WHERE series_videos.position <> excluded.position
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """Series of videos. `version` counts the changes of the series and of its list."""

    id: UUID
    title: str
    description: str
    audience: Audience
    version: int
    created_at: datetime

    @property
    def details_version(self) -> str:
        """Return a digest of what the form of a series changes."""
        values = [self.title, self.description, access_of(self.audience).version]
        return hashlib.blake2b(json.dumps(values).encode(), digest_size=12).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesSummary(Series):
    """Series with the number of videos that a reader may see, and the first of them."""

    updated_at: datetime
    video_count: int
    first_id: UUID | None


def parse_place(text: str) -> Cursor | None:
    """Return a place in the list of series, which has the order of the library's newest videos."""
    return Cursor.parse(text, LibraryQuery())


async def list_series(
    reader: Principal,
    *,
    limit: int,
    after: Cursor | None = None,
    counted: sql.Composable | None = None,
) -> tuple[list[SeriesSummary], Cursor | None]:
    """Return a page of the series that a reader's lists include, and the place of the next page.

    `counted` is the condition for videos that count: by default those that the reader may see.
    """
    condition = listed_for(reader)
    if after is not None:
        place = {"at": after.value, "id": after.video_id}
        beyond = sql_with("(created_at, id) < ({at}, {id})", **place)
        condition = sql_with("{listed} AND {beyond}", listed=condition, beyond=beyond)
    page = await _summaries(condition, counted or visible_to(reader), limit=limit + 1)
    if len(page) <= limit:
        return page, None
    return page[:limit], Cursor(0, page[limit - 1].created_at, page[limit - 1].id)


async def has_listed(reader: Principal) -> bool:
    """Return whether a reader's lists include any series."""
    return bool(await run_query(sql_with(ANY_LISTED, listed=listed_for(reader))))


async def read_series(series_id: str, reader: Principal) -> SeriesSummary:
    """Return a series.

    Raises `SeriesNotFound` for an unknown or malformed id, and as `check_visible` if the reader may
    not see it.
    """
    parsed = parse_video_id(series_id)
    if parsed is None:
        raise SeriesNotFound
    summaries = await _summaries(sql_with("id = {id}", id=parsed), visible_to(reader), limit=1)
    check_visible(summaries[0].audience if summaries else None, reader)
    return summaries[0]


async def fetch_locks(series_id: str) -> list[Row]:
    """Return the columns `unlock_id` and `password_hash` of a private series with a password."""
    return await fetch_rows(LOCKED, parse_video_id(series_id))


async def read_editable(series_id: str, editor: Principal) -> SeriesSummary:
    """Return a series that an account may edit; raise as `read_series`, and `NotAllowed`."""
    series = await read_series(series_id, editor)
    if not editor.may(Action.EDIT, on=series.audience):
        raise NotAllowed(
            Message(
                "Only the person who made this series, people with whom it is shared for editing, "
                "an admin or an owner may do this."
            )
        )
    return series


async def fetch_videos_of(series_id: UUID, visible: sql.Composable) -> list[Video]:
    """Return the videos of a series in order, with the columns `SHOWN`.

    `visible` is the condition for videos that the reader may see, perhaps without their films.
    """
    query = sql_with(VIDEOS, series_id=series_id, visible=visible)
    videos: list[Video] = await Video.raw(query.as_string(None))
    return videos


async def series_of(video_id: UUID, reader: Principal) -> list[SeriesSummary]:
    """Return the series of a video that a reader may see."""
    condition = sql_with(
        "{member} AND {visible}",
        member=sql_with(OF_VIDEO, video_id=video_id),
        visible=visible_to(reader),
    )
    return await _summaries(condition, visible_to(reader), limit=MAX_CHOICES)


async def series_to_edit(editor: Principal) -> list[SeriesSummary]:
    """Return the newest series that an account may edit."""
    return await _summaries(editable_by(editor), visible_to(editor), limit=MAX_CHOICES)


async def create(title: str, description: str, *, audience: Audience) -> UUID:
    """Create a series without videos, and return its id."""
    series_id = uuid4()
    values = (audience.visibility.value, audience.signed_in_only, audience.owner_id)
    async with transaction():
        await execute(INSERT, series_id, title, description, *values)
        await record_action(AuditAction.SERIES_MADE, series_id)
    return series_id


async def edit(
    series_id: UUID,
    alter: Callable[[Series], Series],
    *,
    versions: Collection[str] | None,
    version_of: Callable[[Series], str] = lambda series: str(series.version),
    conflict: type[VersionConflict] = SeriesChanged,
    password: PasswordChange | None = None,
) -> Series:
    """Change details and audience of a series of one of these versions; None for any version.

    Return the changed series. `version_of` tells the recorded version. The password stays unless
    `password` changes it, and ends when the series is no longer private. Raises `SeriesNotFound` or
    the conflict.
    """
    async with transaction():
        series = await _locked(series_id)
        changed = _with_lock(alter(series), series.audience.unlock_id, password)
        if changed == series:
            return series
        check_version(version_of(series), versions, conflict)
        audience = changed.audience
        await execute(
            UPDATE,
            changed.title,
            changed.description,
            audience.visibility.value,
            audience.signed_in_only,
            sorted(audience.admitted_ids),
            sorted(audience.editor_ids),
            audience.unlock_id,
            audience.unlock_id,
            password and password.hash,
            series_id,
        )
        detail = changed_fields(asdict(series), asdict(changed))
        await record_action(AuditAction.SERIES_CHANGED, series_id, detail=detail)
    return changed


async def remove(series_id: UUID, *, versions: Collection[str] | None) -> None:
    """Remove a series, but none of its videos. Raises `SeriesNotFound` or `SeriesChanged`."""
    async with transaction():
        check_version(str((await _locked(series_id)).version), versions, SeriesChanged)
        await execute("DELETE FROM series WHERE id = %s", series_id)
        await record_action(AuditAction.SERIES_REMOVED, series_id)


async def replace_videos(
    series_id: UUID, chosen: Sequence[UUID], *, by: Principal, versions: Collection[str] | None
) -> None:
    """Replace those videos of a series that `by` may see by `chosen`, in this order.

    Videos of the series that `by` may not see stay at their places. The caller has checked that
    `by` may edit the series. `versions` are those that the change was made from; None for any.

    Raises:
        InvalidRequest: `chosen` has an id twice, or one of no video that `by` may see.
        SeriesChanged: another version is recorded, and the change would change it.
        SeriesNotFound: the series was removed.
    """
    await _arrange(series_id, lambda _: chosen, by=by, added=chosen, versions=versions)


async def add_videos(series_id: UUID, video_ids: Sequence[UUID], *, by: Principal) -> None:
    """Add those videos that are not in a series at its end. Raises as `replace_videos`."""
    await _arrange(series_id, lambda visible: [*visible, *video_ids], by=by, added=video_ids)


async def remove_video(series_id: UUID, video_id: UUID, *, by: Principal) -> None:
    """Remove a video from a series, if it is in it. Raises `SeriesNotFound`."""
    await _arrange(series_id, lambda visible: _without(visible, video_id), by=by)


async def move_video(series_id: UUID, video_id: UUID, index: int, *, by: Principal) -> None:
    """Move a video of a series to an index among those that the account may see.

    An index outside of the list is the nearest end. Raises `SeriesNotFound`.
    """
    await _arrange(series_id, lambda visible: _moved(visible, video_id, max(index, 0)), by=by)


def with_hidden(
    present: Sequence[UUID], hidden: Collection[UUID], visible: Iterable[UUID]
) -> list[UUID]:
    """Return the new list of a series: `visible` in order, and the hidden ones at their places."""
    arranged = list(visible)
    for index, video_id in enumerate(present):
        if video_id in hidden:
            arranged.insert(index, video_id)
    return arranged


def _without(visible: Sequence[UUID], video_id: UUID) -> list[UUID]:
    return [member_id for member_id in visible if member_id != video_id]


def _moved(visible: Sequence[UUID], video_id: UUID, index: int) -> Sequence[UUID]:
    if video_id not in visible:
        return visible
    remaining = _without(visible, video_id)
    return [*remaining[:index], video_id, *remaining[index:]]


async def _arrange(
    series_id: UUID,
    alter: Callable[[Sequence[UUID]], Sequence[UUID]],
    *,
    by: Principal,
    added: Sequence[UUID] = (),
    versions: Collection[str] | None = None,
) -> None:
    """Change the list of the videos that an account sees. `added` are those that need a check."""
    async with transaction():
        series = await _locked(series_id)
        sees = await _lock_videos(series_id, added, by)
        present = [row["video_id"] for row in await fetch_rows(MEMBERS, series_id)]
        hidden = {video_id for video_id in present if not sees[video_id]}
        visible = alter([video_id for video_id in present if video_id not in hidden])
        arranged = with_hidden(present, hidden, dict.fromkeys(visible))
        _check_added(added, sees, len(arranged))
        if arranged == present:
            return
        check_version(str(series.version), versions, SeriesChanged)
        await execute(REMOVE_OTHERS, series_id, arranged)
        place = sql_with(PLACE, series_id=series_id, ids=arranged, may_edit=editable_by(by))
        await run_query(place)
        await execute(TOUCH, series_id)
        await record_action(AuditAction.SERIES_VIDEOS_CHANGED, series_id)


def _check_added(added: Sequence[UUID], sees: Mapping[UUID, bool], count: int) -> None:
    """Raise `InvalidRequest` for videos that can't be added, and for too many in a series."""
    unknown = Message("There is no video with this id that you can see.")
    repeated = Message("This video is named twice.")
    faults = [
        FieldError(f"/videoIds/{index}", repeated if sees.get(video_id) else unknown)
        for index, video_id in enumerate(added)
        if not sees.get(video_id) or video_id in added[:index]
    ]
    if count > MAX_VIDEOS:
        limit = numeral(MAX_VIDEOS)
        message = Message("A series has at most %(limit)s videos.", limit=limit)
        faults.append(FieldError("/videoIds", message))
    if faults:
        raise InvalidRequest(faults)


async def _lock_videos(
    series_id: UUID, others: Sequence[UUID], reader: Principal
) -> dict[UUID, bool]:
    """Return whether a reader sees the videos of a series and others; lock them until the end."""
    values = {"ids": list(others), "series_id": series_id, "visible": visible_to(reader)}
    rows = await run_query(sql_with(LOCK_VIDEOS, **values))
    return {row["id"]: row["is_seen"] for row in rows}


async def _locked(series_id: UUID) -> Series:
    rows = await fetch_rows(LOCK, series_id)
    if not rows:
        raise SeriesNotFound
    return Series(**_attributes(rows[0]))


def _with_lock(series: Series, present_id: UUID | None, password: PasswordChange | None) -> Series:
    """Return a series with its present password, or the changed one."""
    access = with_password(access_of(series.audience), present_id, password)
    return replace(series, audience=audience_with(access, series.audience.owner_id))


async def _summaries(
    condition: sql.Composable, visible: sql.Composable, *, limit: int
) -> list[SeriesSummary]:
    """Return the newest series that meet a condition, with counts of their `visible` videos."""
    query = sql_with(SUMMARIES, condition=condition, visible=visible, limit=limit)
    return [SeriesSummary(**_attributes(row)) for row in await run_query(query)]


def _attributes(row: Row) -> Row:
    """Return the columns of a series as attributes: those of its audience in one."""
    own = {name: value for name, value in row.items() if name not in SERIES_AUDIENCE}
    return own | {"audience": audience_in(row)}
