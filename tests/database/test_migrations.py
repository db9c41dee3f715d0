"""What was published before an upgrade plays after it, and the queue's tables are up to date."""

from pathlib import Path
from uuid import UUID, uuid4

from api_client import rows, run_sql
from older_databases import old_video, older_database
from procrastinate.schema import SchemaManager

from portal.config import Config
from portal.database import migrations
from portal.database.connection import migrate

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
FILLED = """
SELECT status, has_poster, has_storyboard, notes, complete_job_id, forgiven_attempts
FROM videos ORDER BY transcode_job_id
"""


async def test_old_videos_keep_their_renditions_and_their_poster(services: dict[str, str]) -> None:
    ready, waiting = uuid4(), uuid4()
    async with older_database(services, "0003_queue") as config:
        await run_sql(
            config.database_url,
            old_video(1, id=ready, status="ready", attempt="2")
            + old_video(2, id=waiting, status="processing")
            + ATTEMPTS.format(id=ready),
        )

        await migrate(config)

        assert await _renditions(config, ready) == [
            ("360p", "video", "complete", 2, 0, 640, "30000/1001", 1000),
            ("720p", "video", "complete", 2, 1, 1280, "30000/1001", 1000),
        ]
        assert await _renditions(config, waiting) == []
        assert await rows(config.database_url, FILLED) == [
            ("ready", True, False, [], None, 0),
            ("processing", False, False, [], None, 0),
        ]


async def _renditions(config: Config, video_id: UUID) -> list[tuple[object, ...]]:
    query = """
        SELECT name, kind, state, attempt_number, position, width, frame_rate,
               average_bandwidth_bps
        FROM renditions WHERE video_id = %s ORDER BY position
    """
    return await rows(config.database_url, query, video_id)


def test_queue_tables_are_those_of_the_installed_procrastinate() -> None:
    """If not, a release has changed its schema: a further migration has to follow it."""
    laid = (Path(migrations.__file__).parent / "0003_queue.sql").read_text()
    assert laid.endswith(SchemaManager.get_schema())
