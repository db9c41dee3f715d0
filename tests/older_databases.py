"""Databases as earlier versions left them, for the tests of migrations."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from uuid import UUID, uuid4

from psycopg import sql
from running_portal import execute, on_database
from tortoise import Tortoise
from tortoise.migrations.api import migrate as tortoise_migrate

from portal.config import Config
from portal.database.connection import _migration_config

VIDEO = """
INSERT INTO uploads (key, file_name, content_type, created_at)
VALUES ('videos/{id}.mp4', 'a.mp4', 'video/mp4', now());
INSERT INTO videos (id, title, description, category_ids, tags, file_name, storage_key,
                    transcode_job_id, status, size_bytes, source_etag, published_attempt,
                    created_at, updated_at)
VALUES ('{id}', '{title}', 'Am Meer', '{{1}}', 'Strand, See', 'a.mp4', 'videos/{id}.mp4', {job},
        '{status}', 1, 'e', {attempt}, now(), now());
"""


def old_video(
    job: int, *, id: UUID, title: str = "Old", status: str = "failed", attempt: str = "NULL"
) -> str:
    """Inserts a video with the columns that there always were."""
    return VIDEO.format(id=id, title=title, job=job, status=status, attempt=attempt)


@asynccontextmanager
async def older_database(services: dict[str, str], last: str) -> AsyncIterator[Config]:
    """A database that was migrated up to here."""
    name = f"test_{uuid4().hex}"
    identifier = sql.Identifier(name)
    await execute(services, sql.SQL("CREATE DATABASE {}").format(identifier))
    config = Config.from_env(on_database(services, name))
    try:
        await tortoise_migrate(config=_migration_config(config), target=f"portal.{last}")
    finally:
        await Tortoise.close_connections()
    yield config
    await execute(services, sql.SQL("DROP DATABASE {} WITH (FORCE)").format(identifier))
