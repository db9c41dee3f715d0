"""Videos have versions; `videos` becomes a view of publications with their current versions.

The view is in `functions/videos.sql`. The only version of each video gets the id of the video.
"""

from tortoise import migrations
from tortoise.migrations import operations as ops

PUBLICATIONS = """
ALTER TABLE videos RENAME TO publications;
"""
# By the foreign key of two columns the planner knows that each publication has a version. It would
# expect a single row of the view otherwise, and sort all videos for a page of them.
VERSIONS = """
CREATE TABLE versions (
  id uuid PRIMARY KEY,
  video_id uuid NOT NULL REFERENCES publications ON DELETE CASCADE,
  created_at timestamptz NOT NULL,
  file_name varchar(255) NOT NULL,
  storage_key varchar(400) NOT NULL UNIQUE REFERENCES uploads (key) ON DELETE RESTRICT,
  size_bytes bigint NOT NULL,
  source_etag varchar(200) NOT NULL,
  probe_answer text,
  status varchar(10) NOT NULL,
  failure_code varchar(60),
  failure_message text,
  notes text[] NOT NULL DEFAULT '{}',
  transcode_job_id bigint NOT NULL UNIQUE,
  encode_job_id bigint,
  complete_job_id bigint,
  storyboard_job_id bigint,
  storyboard_tries smallint NOT NULL DEFAULT 0,
  forgiven_attempts bigint NOT NULL DEFAULT 0,
  published_attempt bigint,
  duration_s double precision,
  width integer,
  height integer,
  has_poster boolean NOT NULL DEFAULT false,
  has_storyboard boolean NOT NULL DEFAULT false,
  UNIQUE (id, video_id)
);
INSERT INTO versions
SELECT id, id, created_at, file_name, storage_key, size_bytes, source_etag, probe_answer,
       status, failure_code, failure_message, notes,
       transcode_job_id, encode_job_id, complete_job_id, storyboard_job_id, storyboard_tries,
       forgiven_attempts, published_attempt, duration_s, width, height, has_poster, has_storyboard
FROM publications;
ALTER TABLE publications ADD version_id uuid;
UPDATE publications SET version_id = id;
ALTER TABLE publications
  ALTER version_id SET NOT NULL,
  ADD FOREIGN KEY (version_id, id) REFERENCES versions (id, video_id)
    DEFERRABLE INITIALLY DEFERRED,
  DROP file_name, DROP storage_key, DROP size_bytes, DROP source_etag, DROP probe_answer,
  DROP status, DROP failure_code, DROP failure_message, DROP notes,
  DROP transcode_job_id, DROP encode_job_id, DROP complete_job_id, DROP storyboard_job_id,
  DROP storyboard_tries, DROP forgiven_attempts, DROP published_attempt, DROP duration_s,
  DROP width, DROP height, DROP has_poster, DROP has_storyboard;
"""
# Every worker polls for the few versions with unfinished work.
INDEXES = """
CREATE INDEX versions_video_idx ON versions (video_id);
CREATE INDEX versions_processing_idx ON versions (transcode_job_id) WHERE status = 'processing';
CREATE INDEX versions_completing_idx ON versions (complete_job_id)
  WHERE complete_job_id IS NOT NULL;
CREATE INDEX versions_duration_idx ON versions ((coalesce(duration_s, -1)), video_id);
CREATE INDEX versions_size_idx ON versions (size_bytes, video_id);
CREATE INDEX versions_state_idx ON versions (status, video_id);
"""
ATTEMPTS = """
ALTER TABLE attempts ADD version_id uuid REFERENCES versions ON DELETE CASCADE;
UPDATE attempts SET version_id = video_id;
ALTER TABLE attempts ALTER version_id SET NOT NULL;
CREATE INDEX attempts_version_idx ON attempts (version_id);
"""
WORK = "".join(
    f"""
ALTER TABLE {table} RENAME video_id TO version_id;
ALTER TABLE {table} DROP CONSTRAINT {table}_video_id_fkey,
  ADD FOREIGN KEY (version_id) REFERENCES {parent} ON DELETE CASCADE;
"""
    for table, parent in (
        ("renditions", "versions"),
        ("made_segments", "versions"),
        ("passes", "versions"),
        ("pass_parts", "passes"),
    )
)
JOBS = """
UPDATE procrastinate_jobs
SET args = args - 'video_id' || jsonb_build_object('version_id', args->'video_id')
WHERE status IN ('todo', 'doing', 'failed') AND task_name IN (
  'portal:transcode', 'portal:encode', 'portal:complete', 'portal:share', 'portal:storyboard'
);
"""


class Migration(migrations.Migration):
    dependencies = [("portal", "0029_watch_positions")]

    operations = [*map(ops.RunSQL, (PUBLICATIONS, VERSIONS, INDEXES, ATTEMPTS, WORK, JOBS))]
