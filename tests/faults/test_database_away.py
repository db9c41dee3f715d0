"""A database that is away for a moment costs no work that is already done."""

from __future__ import annotations

from pathlib import Path

import pytest
from api_kit import Client, rows, run_sql
from passes_kit import make_playable, published_file

from portal.models import Attempt, VideoStatus
from portal.resources import Resources

# The server ends the connection the first two times that an attempt is closed like this.
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
CREATE TRIGGER away BEFORE UPDATE ON attempts FOR EACH ROW
WHEN (NEW.outcome = '{outcome}') EXECUTE FUNCTION go_away();
"""


async def test_pass_is_published_when_the_database_is_back(
    client: Client, resources: Resources, short_video: Path, tmp_path: Path
) -> None:
    video = await published_file(client, resources, short_video)
    await run_sql(resources.config.database_url, AWAY.format(outcome="published"))
    video = await make_playable(video, resources, tmp_path)
    assert (video.status, video.published_attempt) == (VideoStatus.READY, 1)
    assert await rows(resources.config.database_url, "SELECT last_value FROM tries") == [(3,)]


async def test_work_is_handed_back_when_the_database_is_back(
    client: Client, resources: Resources, short_video: Path, tmp_path: Path
) -> None:
    video = await published_file(client, resources, short_video)
    await resources.storage.delete(video.storage_key)
    await run_sql(resources.config.database_url, AWAY.format(outcome="failed"))
    with pytest.raises(Exception, match="terminat"):
        await make_playable(video, resources, tmp_path)
    [attempt] = await Attempt.filter(video_id=video.id)
    assert attempt.outcome == "handed_back"
