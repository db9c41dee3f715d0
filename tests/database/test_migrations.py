"""What was published before an upgrade plays after it."""

from uuid import UUID, uuid4

from api_client import rows, run_sql
from psycopg import sql
from running_portal import execute, on_database
from tortoise import Tortoise
from tortoise.migrations.api import migrate as tortoise_migrate

from portal.config import Config
from portal.database.connection import _migration_config, migrate

VIDEO = """
INSERT INTO uploads (key, file_name, content_type, created_at)
VALUES ('videos/{id}.mp4', 'a.mp4', 'video/mp4', now());
INSERT INTO videos (id, title, description, category_ids, tags, file_name, storage_key,
                    transcode_job_id, status, size_bytes, source_etag, published_attempt,
                    created_at, updated_at)
VALUES ('{id}', 'Old', '', '{{1}}', '', 'a.mp4', 'videos/{id}.mp4', {job}, '{status}', 1, 'e',
        {attempt}, now(), now());
"""
ATTEMPTS = """
INSERT INTO attempts (video_id, number, worker, stage, percent, lease_expires_at, started_at,
                      outcome)
SELECT '{id}', number, 'w', 'finishing', 100, now(), now(), outcome
FROM (VALUES (1, 'failed'), (2, 'published')) AS made (number, outcome);
INSERT INTO renditions (attempt_id, name, width, height, frame_rate, codecs, bandwidth_bps,
                        average_bandwidth_bps, size_bytes, segment_count)
SELECT attempts.id, name, width, height, '30000/1001', 'avc1.64001f', 2000, 1000, 3000, 4
FROM attempts, (VALUES ('360p', 640, 360), ('720p', 1280, 720)) AS made (name, width, height)
WHERE number = 2;
"""


async def test_old_videos_keep_their_renditions_and_their_poster(
    services: dict[str, str],
) -> None:
    name = f"test_{uuid4().hex}"
    environ = on_database(services, name)
    config = Config.from_env(environ)
    await execute(services, sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
    try:
        await tortoise_migrate(config=_migration_config(config), target="portal.0003_queue")
    finally:
        await Tortoise.close_connections()
    ready, waiting = uuid4(), uuid4()
    await run_sql(
        config.database_url,
        VIDEO.format(id=ready, job=1, status="ready", attempt=2)
        + VIDEO.format(id=waiting, job=2, status="processing", attempt="NULL")
        + ATTEMPTS.format(id=ready),
    )

    await migrate(config)

    assert await _renditions(config, ready) == [
        ("360p", "video", "complete", 2, 0, 640, "30000/1001", 1000),
        ("720p", "video", "complete", 2, 1, 1280, "30000/1001", 1000),
    ]
    assert await _renditions(config, waiting) == []
    found = await rows(
        config.database_url,
        "SELECT status, has_poster, has_storyboard, notes, complete_job_id, forgiven_attempts"
        " FROM videos ORDER BY transcode_job_id",
    )
    assert found == [("ready", True, False, [], None, 0), ("processing", False, False, [], None, 0)]
    drop = sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name))
    await execute(services, drop)


async def _renditions(config: Config, video_id: UUID) -> list[tuple[object, ...]]:
    query = """
        SELECT name, kind, state, attempt_number, position, width, frame_rate,
               average_bandwidth_bps
        FROM renditions WHERE video_id = %s ORDER BY position
    """
    return await rows(config.database_url, query, video_id)
