"""Use cases of hand-in links: make and revoke one, begin an upload by it, and hand the file in.

People who hand a file in have no account: the digest of a secret in their browser tells their
uploads from those of others. A video, its row in `hand_in_files` and the link's count are committed
together. The count locks the row of the link, so concurrent requests can't exceed the maximum.
"""

from contextlib import suppress
from uuid import UUID, uuid4

from portal.accounts.people import fetch_principals
from portal.accounts.permissions import ANYONE, EVERYONES, Audience, Principal
from portal.accounts.tokens import digest, new_secret
from portal.database.connection import Row, execute, fetch_rows, transaction
from portal.database.models import Upload, Video
from portal.errors import InvalidRequest, LinkNotValid, NotAllowed, NotSignedIn, SeriesNotFound
from portal.events.log import AuditAction, record_action
from portal.features.series import service as series
from portal.storage.bucket import Storage
from portal.uploads.quotas import Quota
from portal.videos.metadata import EditableMetadata, Submission
from portal.videos.publishing import begin_upload, publish

INSERT = """
INSERT INTO hand_ins
  (id, digest, owner_id, name, category_id, series_id, max_files, max_bytes, expires_at)
VALUES (%s, %s, %s, %s, %s, %s, %s, %s::bigint * 1000000, now() + make_interval(days => %s))
"""
# The newest links of an account, or of all accounts.
LINKS = """
SELECT link.id, link.name, max_files, received_files, expires_at, account.email AS made_by,
       expires_at > now() AS is_live
FROM hand_ins link LEFT JOIN accounts account ON account.id = owner_id
WHERE %s OR owner_id = %s ORDER BY link.created_at DESC, link.id LIMIT 1000
"""
# The uploads come first, because handing in locks an upload before its link.
REVOKE = """
WITH link AS (SELECT id FROM hand_ins WHERE id = %s AND (%s OR owner_id = %s)),
ended AS (
  UPDATE uploads SET sender_digest = NULL WHERE hand_in_id IN (SELECT id FROM link) RETURNING id
)
DELETE FROM hand_ins WHERE id IN (SELECT id FROM link) AND (SELECT count(*) FROM ended) >= 0
RETURNING name
"""
# The links of a maker without the permission to publish are not live. The largest size of a file
# is 0 without a limit of the link or of the portal.
LIVE = """
SELECT link.id, link.name, owner_id, category_id, series_id, max_files, received_files, expires_at,
       coalesce(least(max_bytes, nullif(%s, 0)), 0) AS max_bytes,
       coalesce(account.name, '') AS maker_name
FROM hand_ins link LEFT JOIN accounts account ON account.id = owner_id
WHERE digest = %s AND expires_at > now() AND (is_disabled OR role = 'viewer') IS NOT TRUE
"""
LOCK = "SELECT FROM hand_ins WHERE id = %s FOR UPDATE"
# Ten more uploads may be begun than the link takes files, so that abandoned ones don't use it up.
BEGIN = """
INSERT INTO uploads (id, key, file_name, content_type, owner_id, created_at, hand_in_id,
                     sender_digest, sender_max_bytes, sender_until)
SELECT %s, %s, %s, %s, owner_id, now(), id, %s, max_bytes, expires_at FROM hand_ins
WHERE id = %s AND received_files < max_files AND max_files + 10 > (
  SELECT count(*) FROM uploads WHERE hand_in_id = hand_ins.id AND NOT is_discarded
)
"""
RECEIVE = """
WITH link AS (
  UPDATE hand_ins SET received_files = received_files + 1 FROM uploads
  WHERE hand_ins.id = %s AND received_files < max_files
    AND uploads.id = %s AND hand_in_id = hand_ins.id
  RETURNING hand_ins.id, sender_digest
)
INSERT INTO hand_in_files (video_id, hand_in_id, sender, sender_digest, title)
SELECT %s, id, %s, sender_digest, %s FROM link
"""
FILES = """
SELECT file.title, received_at, status FROM hand_in_files file JOIN videos ON videos.id = video_id
WHERE hand_in_id = %s AND sender_digest = %s AND deleted_at IS NULL ORDER BY received_at DESC
"""
SENDER = """
SELECT sender, link.name AS link_name FROM hand_in_files
LEFT JOIN hand_ins link ON link.id = hand_in_id WHERE video_id = %s
"""


async def make(
    name: str,
    *,
    category_id: int,
    series_id: UUID | None,
    max_files: int,
    max_megabytes: int | None,
    days: int,
    by: Principal,
) -> str:
    """Create a link that ends after some days, and return its secret, which is not stored.

    A `max_megabytes` of None leaves only the portal's limit of the size of a file. Raises
    `SeriesNotFound` or `NotAllowed` for a series that `by` may not edit.
    """
    if series_id is not None:
        await series.read_editable(str(series_id), by)
    link_id = uuid4()
    secret = new_secret()
    async with transaction():
        await execute(
            INSERT,
            link_id,
            digest(secret),
            by.account_id,
            name,
            category_id,
            series_id,
            max_files,
            max_megabytes,
            days,
        )
        await record_action(AuditAction.HAND_IN_MADE, link_id, name=name)
    return secret


async def list_links(reader: Principal) -> list[Row]:
    """Return the newest links of an account, or of all accounts for admins and owners."""
    return await fetch_rows(LINKS, reader.sees_all, reader.account_id)


async def revoke(link_id: UUID, *, by: Principal) -> None:
    """Remove a link that is in the list of `by`, if it is not removed yet. Its videos stay."""
    async with transaction():
        for row in await fetch_rows(REVOKE, link_id, by.sees_all, by.account_id):
            await record_action(AuditAction.HAND_IN_REVOKED, link_id, name=row["name"])


async def require_link(secret: str, *, max_source_bytes: int) -> Row:
    """Return the link of a secret, as columns of `LIVE`. Raises `LinkNotValid` if it has ended.

    Its `max_bytes` is at most `max_source_bytes`, the portal's limit of the size of a file; 0 is no
    limit.
    """
    rows = await fetch_rows(LIVE, max_source_bytes, digest(secret))
    if not rows:
        raise LinkNotValid
    return rows[0]


async def begin(
    link: Row, file_name: str, content_type: str, *, sender_digest: str, quota: Quota
) -> Upload:
    """Issue an upload of the link's maker to a browser.

    Raises `LinkNotValid` if the link takes no more files, and as `publishing.begin_upload` if the
    maker's quota is used up.
    """
    upload = await begin_upload(file_name, content_type, owner_id=link["owner_id"], quota=quota)
    values = (upload.id, upload.key, file_name, content_type, sender_digest, link["id"])
    async with transaction():
        # Uploads are counted by a later statement, which sees those of concurrent requests.
        await execute(LOCK, link["id"])
        if not await execute(BEGIN, *values):
            raise LinkNotValid
    return upload


async def receive(
    link: Row,
    upload: Upload,
    *,
    file_name: str,
    title: str,
    sender: str,
    storage: Storage,
    quota: Quota,
) -> None:
    """Create the private video of an upload that was begun by the link, in the link's series.

    A repetition changes nothing. Raises `LinkNotValid` if the link takes no more files, and as
    `publishing.publish`.
    """

    async def count(video: Video) -> None:
        if not await execute(RECEIVE, link["id"], upload.id, video.id, sender, title):
            raise LinkNotValid
        if link["series_id"] is not None:
            await _add_to_series(video, link["series_id"])

    await publish(
        Submission(
            metadata=EditableMetadata(
                title=title,
                description="",
                category_ids=(link["category_id"],),
                tags="",
            ),
            file_name=file_name,
            key=upload.key,
        ),
        storage=storage,
        max_source_bytes=link["max_bytes"],
        audience=Audience(owner_id=link["owner_id"]),
        quota=quota,
        follow=count,
    )


async def _add_to_series(video: Video, series_id: UUID) -> None:
    """Add a video to a series, unless the series is full or its owner may not edit it any more."""
    principals = await fetch_principals([video.owner_id]) if video.owner_id else {}
    maker = principals.get(video.owner_id, ANYONE) if video.owner_id else EVERYONES
    with suppress(InvalidRequest, NotAllowed, NotSignedIn, SeriesNotFound):
        await series.read_editable(str(series_id), maker)
        await series.add_videos(series_id, [video.id], by=maker)


async def files_of(link: Row, sender_digest: str) -> list[Row]:
    """Return the files that a browser has handed in by a link, the newest first."""
    return await fetch_rows(FILES, link["id"], sender_digest)


async def read_panel(video: Video) -> dict[str, object]:
    """Return who has handed a video in and by which link, in the list `handed_in`."""
    return {"handed_in": await fetch_rows(SENDER, video.id)}
