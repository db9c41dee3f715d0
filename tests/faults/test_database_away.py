"""A database that is away for a moment costs no work that is already done."""

from pathlib import Path

import pytest
from api_client import Client, rows, run_sql
from passes import make_playable, published_file
from running_portal import make_video

from portal.database.models import Attempt
from portal.database.states import VideoStatus
from portal.web.composition import WebContext

# The server ends the connection the first two times that a row is written like this.
AWAY = """
CREATE SEQUENCE tries;
CREATE FUNCTION go_away() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF nextval('tries') <= 2 THEN
    PERFORM pg_terminate_backend(pg_backend_pid());
    PERFORM pg_sleep(1);
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER away BEFORE {event} FOR EACH ROW
WHEN ({condition}) EXECUTE FUNCTION go_away();
"""
PUBLISHED = AWAY.format(event="UPDATE ON attempts", condition="NEW.outcome = 'published'")
FAILED = AWAY.format(event="UPDATE ON attempts", condition="NEW.outcome = 'failed'")
ENQUEUED = AWAY.format(
    event="INSERT ON procrastinate_jobs", condition="NEW.task_name = 'portal:complete'"
)


@pytest.mark.parametrize("away", [PUBLISHED, ENQUEUED], ids=["published", "next one queued"])
async def test_pass_is_published_when_the_database_is_back(
    away: str,
    client: Client,
    resources: WebContext,
    tmp_path: Path,
) -> None:
    source = make_video(tmp_path / "wide.mp4", size="640x360")
    video = await published_file(client, resources, source)
    await run_sql(resources.config.database_url, away)
    video = await make_playable(video, resources, tmp_path)
    assert (video.status, video.published_attempt) == (VideoStatus.READY, 1)
    assert video.complete_job_id is not None
    assert await rows(resources.config.database_url, "SELECT last_value FROM tries") == [(3,)]


async def test_work_is_handed_back_when_the_database_is_back(
    client: Client, resources: WebContext, short_video: Path, tmp_path: Path
) -> None:
    video = await published_file(client, resources, short_video)
    await resources.storage.delete(video.storage_key)
    await run_sql(resources.config.database_url, FAILED)
    with pytest.raises(Exception, match="terminat"):
        await make_playable(video, resources, tmp_path)
    [attempt] = await Attempt.filter(video_id=video.id)
    assert attempt.outcome == "handed_back"
