"""Keys that sign playback addresses, and links by which a video can be watched for a while."""

from tortoise import migrations
from tortoise.migrations import operations as ops

CREATE = (
    """
    CREATE TABLE signing_keys (
      kid varchar(20) PRIMARY KEY,
      secret bytea NOT NULL,
      created_at timestamptz NOT NULL,
      retired_at timestamptz
    )
    """,
    """
    CREATE TABLE playback_links (
      id uuid PRIMARY KEY,
      video_id uuid NOT NULL REFERENCES videos (id) ON DELETE CASCADE,
      kid varchar(20) NOT NULL REFERENCES signing_keys (kid) ON DELETE CASCADE,
      made_by_id uuid REFERENCES accounts (id) ON DELETE SET NULL,
      created_at timestamptz NOT NULL,
      expires_at timestamptz NOT NULL
    )
    """,
    "CREATE INDEX playback_links_video_idx ON playback_links (video_id, created_at)",
    "CREATE INDEX playback_links_kid_idx ON playback_links (kid)",
    "CREATE INDEX playback_links_expiry_idx ON playback_links (expires_at)",
    "CREATE INDEX playback_links_maker_idx ON playback_links (made_by_id) "
    "WHERE made_by_id IS NOT NULL",
)


class Migration(migrations.Migration):
    dependencies = [("portal", "0013_visibility")]

    operations = [*map(ops.RunSQL, CREATE)]
