"""Captions and chapters that a video had with a former file, which come back with the file."""

from tortoise import migrations
from tortoise.migrations import operations as ops

CAPTIONS = """
CREATE TABLE former_captions (
  version_id uuid NOT NULL REFERENCES versions ON DELETE CASCADE,
  id bigint NOT NULL,
  language varchar(60) NOT NULL,
  label text NOT NULL,
  is_default boolean NOT NULL,
  source varchar(10) NOT NULL,
  rendition varchar(40),
  text text,
  whole_text text,
  search tsvector NOT NULL,
  cue_count integer NOT NULL,
  version integer NOT NULL,
  changed_at timestamptz NOT NULL,
  PRIMARY KEY (version_id, language)
);
"""
CHAPTERS = """
CREATE TABLE former_chapters (
  version_id uuid PRIMARY KEY REFERENCES versions ON DELETE CASCADE,
  saved jsonb,
  of_file jsonb
);
"""


class Migration(migrations.Migration):
    dependencies = [("portal", "0034_times_of_cut_films")]

    operations = [*map(ops.RunSQL, (CAPTIONS, CHAPTERS))]
