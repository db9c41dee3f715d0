-- Videos as people see them: publications with the columns of their current versions.

-- Every row finds its version. It is a left join because the planner leaves that out of queries
-- that read no column of the version.
DROP VIEW IF EXISTS videos;
CREATE VIEW videos AS
SELECT publications.*,
       file_name, storage_key, size_bytes, source_etag, probe_answer, keep, base_id,
       status, failure_code, failure_message, notes,
       transcode_job_id, encode_job_id, complete_job_id, storyboard_job_id, storyboard_tries,
       forgiven_attempts, published_attempt, duration_s, width, height, has_poster, has_storyboard,
       integrated_lufs, loudness_range_lu, true_peak_dbtp
FROM publications LEFT JOIN versions
  ON versions.id = publications.version_id AND versions.video_id = publications.id;
