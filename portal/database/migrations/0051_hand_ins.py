"""Hand-in links, by which people without an account upload videos."""

from tortoise import migrations
from tortoise.migrations import operations as ops

# The uploads of a link have no foreign key: to remove a link must not lock them, because handing in
# locks an upload before its link.
HAND_INS = """
CREATE TABLE hand_ins (
  id uuid PRIMARY KEY,
  digest text NOT NULL UNIQUE,
  owner_id uuid REFERENCES accounts ON DELETE CASCADE,
  name text NOT NULL,
  category_id smallint NOT NULL REFERENCES categories,
  max_files int NOT NULL,
  max_bytes bigint,
  series_id uuid REFERENCES series ON DELETE SET NULL,
  received_files int NOT NULL DEFAULT 0,
  created_at timestamptz NOT NULL DEFAULT now(),
  expires_at timestamptz NOT NULL
);
CREATE INDEX hand_ins_owner ON hand_ins (owner_id);
CREATE INDEX hand_ins_series ON hand_ins (series_id) WHERE series_id IS NOT NULL;
CREATE TABLE hand_in_files (
  video_id uuid PRIMARY KEY REFERENCES publications ON DELETE CASCADE,
  hand_in_id uuid REFERENCES hand_ins ON DELETE SET NULL,
  sender text NOT NULL,
  sender_digest text NOT NULL,
  title text NOT NULL,
  received_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX hand_in_files_sender ON hand_in_files (hand_in_id, sender_digest);
ALTER TABLE uploads
  ADD COLUMN hand_in_id uuid,
  ADD COLUMN sender_digest varchar(64),
  ADD COLUMN sender_max_bytes bigint,
  ADD COLUMN sender_until timestamptz;
CREATE INDEX uploads_hand_in ON uploads (hand_in_id) WHERE hand_in_id IS NOT NULL;
"""


class Migration(migrations.Migration):
    dependencies = [("portal", "0050_pages_and_passwords")]

    operations = [ops.RunSQL(HAND_INS)]
