"""Videos in the database of a running portal, without files behind them."""

from typing import Any

import psycopg

from portal.database.search import search_columns

# A picture, for posters that are in no storage.
PIXEL = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de0000000c4944415408d763f8ff"
    "ff3f0005fe02fea7359b810000000049454e44ae426082"
)


class Rows:
    """Writes videos straight into the database of a portal."""

    def __init__(self, database_url: str) -> None:
        self._database_url = database_url

    async def add(self, number: int, title: str, *, tags: str = "", status: str = "ready") -> str:
        """A video without files; answers its id."""
        video_id = f"00000000-0000-4000-8000-{number:012}"
        columns = search_columns(title=title, description="", tags=tags)
        key = f"videos/{number:032}.mp4"
        await self.run(
            "INSERT INTO uploads (id, key, file_name, content_type, created_at)"
            " VALUES (%s, %s, 'a.mp4', 'video/mp4', now()) ON CONFLICT DO NOTHING",
            f"{number:032}",
            key,
        )
        await self.run(
            "WITH publication AS ("
            " INSERT INTO publications (id, version_id, title, description, category_ids, tags,"
            " search, sort_title, created_at, updated_at) VALUES (%s, %s, %s, '', %s, %s,"
            " %s::tsvector, %s, timestamptz '2026-01-01' + %s * interval '1 hour', now())"
            " RETURNING id, created_at"
            ") INSERT INTO versions (id, video_id, created_at, file_name, storage_key,"
            " transcode_job_id, status, size_bytes, source_etag, published_attempt, duration_s)"
            " SELECT id, id, created_at, 'a.mp4', %s, %s, %s, 1, 'e', %s, %s FROM publication",
            *(video_id, video_id, title, [number % 16 + 1], tags),
            # No real job has a negative id.
            *(columns["search"], columns["sort_title"], number, key, -number, status),
            *(1 if status == "ready" else None, 61.0 if status == "ready" else None),
        )
        return video_id

    async def finish(self, video_id: str, status: str) -> None:
        """A worker came to an end with it."""
        await self.run(
            "UPDATE versions SET status = %s, duration_s = 75.0, has_poster = true,"
            " published_attempt = 1 WHERE id = %s",
            status,
            video_id,
        )

    async def begin(self, video_id: str, percent: float) -> None:
        """A worker is busy with it."""
        await self.run(
            "INSERT INTO attempts (video_id, version_id, number, worker, stage, percent,"
            " lease_expires_at, started_at) VALUES (%s, %s, 1, 'w', 'transcoding', %s,"
            " now() + interval '1 hour', now())",
            video_id,
            video_id,
            percent,
        )

    async def run(self, statement: str, *values: Any) -> None:
        async with await psycopg.AsyncConnection.connect(
            self._database_url, autocommit=True
        ) as connection:
            await connection.execute(statement, values)
