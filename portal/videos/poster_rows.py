"""The SQL of pictures that were sent to become a poster.

They are kept in the database until then, not in storage: a picture is recorded and removed together
with its request, so that there is none without the other to be looked for. It has some megabytes,
and there is one for a video at most.
"""

from uuid import UUID

from portal.database.connection import execute, fetch_rows

KEEP = """
INSERT INTO poster_pictures (video_id, content) VALUES (%s, %s)
ON CONFLICT (video_id) DO UPDATE SET content = excluded.content
"""


async def keep_picture(video_id: UUID, picture: bytes) -> None:
    """Record the picture in the place of an earlier one."""
    await execute(KEEP, video_id, picture)


async def fetch_picture(video_id: UUID) -> bytes | None:
    """The picture that waits; None if another request has made it void."""
    rows = await fetch_rows("SELECT content FROM poster_pictures WHERE video_id = %s", video_id)
    return bytes(rows[0]["content"]) if rows else None


async def drop_picture(video_id: UUID) -> None:
    """Remove the picture, if there is one."""
    await execute("DELETE FROM poster_pictures WHERE video_id = %s", video_id)
