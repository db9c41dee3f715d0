"""Everything that changed after version 0.4.0.

Accounts with what they sign in with, visibility, playback links, single sign-on, the audit log;
segments of renditions that are being made; pictures sent as posters; deletions that can be undone.
"""

from tortoise import migrations
from tortoise.migrations import operations as ops

ACCOUNTS = (
    """
    CREATE TABLE accounts (
      id uuid PRIMARY KEY,
      email varchar(254) NOT NULL UNIQUE,
      role varchar(10) NOT NULL,
      password_hash text,
      is_disabled boolean NOT NULL,
      created_at timestamptz NOT NULL,
      seen_at timestamptz,
      email_unverified boolean NOT NULL DEFAULT false,
      name varchar(100) NOT NULL DEFAULT ''
    )
    """,
    """
    CREATE TABLE sessions (
      id uuid PRIMARY KEY,
      digest varchar(64) NOT NULL UNIQUE,
      account_id uuid NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
      device varchar(200) NOT NULL,
      address varchar(64) NOT NULL,
      created_at timestamptz NOT NULL,
      seen_at timestamptz NOT NULL
    )
    """,
    """
    CREATE TABLE api_tokens (
      id uuid PRIMARY KEY,
      digest varchar(64) NOT NULL UNIQUE,
      account_id uuid NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
      name varchar(100) NOT NULL,
      scopes text[] NOT NULL,
      created_at timestamptz NOT NULL,
      expires_at timestamptz,
      used_at timestamptz
    )
    """,
    """
    CREATE TABLE one_time_links (
      id uuid PRIMARY KEY,
      digest varchar(64) NOT NULL UNIQUE,
      account_id uuid REFERENCES accounts (id) ON DELETE CASCADE,
      role varchar(10),
      label varchar(100) NOT NULL DEFAULT '',
      created_at timestamptz NOT NULL,
      expires_at timestamptz NOT NULL
    )
    """,
    """
    CREATE TABLE sign_in_failures (
      id bigserial PRIMARY KEY,
      email varchar(254) NOT NULL,
      address varchar(64) NOT NULL,
      at timestamptz NOT NULL
    )
    """,
    """
    CREATE TABLE identities (
      id uuid PRIMARY KEY,
      issuer text NOT NULL,
      subject varchar(255) NOT NULL,
      account_id uuid NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
      created_at timestamptz NOT NULL,
      UNIQUE (issuer, subject),
      UNIQUE (account_id, issuer)
    )
    """,
    """
    CREATE TABLE sign_ons (
      id uuid PRIMARY KEY,
      digest varchar(64) NOT NULL UNIQUE,
      next_path varchar(2000) NOT NULL,
      expires_at timestamptz NOT NULL
    )
    """,
    # Without foreign keys: a line outlives whom and what it tells of.
    """
    CREATE TABLE audit_events (
      id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
      at timestamptz NOT NULL DEFAULT clock_timestamp(),
      action varchar(60) NOT NULL,
      actor_kind varchar(20) NOT NULL,
      actor_id uuid,
      actor_email varchar(254) NOT NULL,
      token_id uuid,
      token_name varchar(100) NOT NULL,
      address varchar(64) NOT NULL,
      object_id varchar(100),
      object_name varchar(254) NOT NULL,
      detail jsonb NOT NULL
    )
    """,
    "CREATE INDEX sessions_account_idx ON sessions (account_id)",
    "CREATE INDEX api_tokens_account_idx ON api_tokens (account_id)",
    "CREATE INDEX sign_in_failures_email_idx ON sign_in_failures (email, at)",
    "CREATE INDEX sign_in_failures_address_idx ON sign_in_failures (address, at)",
    "CREATE INDEX sign_ons_expiry_idx ON sign_ons (expires_at)",
    "CREATE INDEX audit_events_at_idx ON audit_events (at)",
    "CREATE INDEX audit_events_action_idx ON audit_events (action, id)",
    "CREATE INDEX audit_events_actor_idx ON audit_events (actor_email, id)",
    "CREATE INDEX audit_events_object_idx ON audit_events (object_id, id)",
    "CREATE INDEX audit_events_object_name_idx ON audit_events (object_name, id)",
)
VIDEOS = (
    """
    ALTER TABLE videos
      ADD encode_job_id bigint,
      ADD probe_answer text,
      ADD storyboard_tries smallint,
      ADD owner_id uuid REFERENCES accounts (id) ON DELETE SET NULL,
      ADD visibility varchar(10) NOT NULL DEFAULT 'public',
      ADD signed_in_only boolean NOT NULL DEFAULT false,
      ADD embed_origins text[] NOT NULL DEFAULT '{}',
      ADD changed_at timestamptz,
      ADD deleted_at timestamptz,
      ALTER published_attempt TYPE bigint,
      ALTER forgiven_attempts TYPE bigint
    """,
    "ALTER TABLE attempts ALTER number TYPE bigint",
    "ALTER TABLE renditions ALTER attempt_number TYPE bigint",
    """
    CREATE TABLE made_segments (
      id bigserial PRIMARY KEY,
      video_id uuid NOT NULL REFERENCES videos (id) ON DELETE CASCADE,
      rendition varchar(40) NOT NULL,
      number int NOT NULL,
      folder bigint NOT NULL,
      made_by bigint NOT NULL,
      uri varchar(40) NOT NULL,
      size_bytes bigint NOT NULL,
      key_size_bytes bigint NOT NULL,
      sample_count int NOT NULL,
      from_ticks bigint NOT NULL,
      last_ticks bigint NOT NULL,
      until_ticks bigint NOT NULL,
      UNIQUE (video_id, rendition, number)
    )
    """,
    # Posters and removals are jobs that may run any number of times, without a lease.
    "ALTER TABLE poster_requests ALTER time_s DROP NOT NULL, DROP lease_expires_at",
    "ALTER TABLE deletions DROP lease_expires_at",
    """
    CREATE TABLE poster_pictures (
      video_id uuid PRIMARY KEY REFERENCES videos (id) ON DELETE CASCADE,
      content bytea NOT NULL
    )
    """,
    """
    CREATE TABLE signing_keys (
      kid varchar(20) PRIMARY KEY,
      secret bytea NOT NULL,
      created_at timestamptz NOT NULL
    )
    """,
    """
    CREATE TABLE playback_links (
      id uuid PRIMARY KEY,
      video_id uuid NOT NULL REFERENCES videos (id) ON DELETE CASCADE,
      made_by_id uuid REFERENCES accounts (id) ON DELETE SET NULL,
      label varchar(100) NOT NULL DEFAULT '',
      created_at timestamptz NOT NULL,
      expires_at timestamptz NOT NULL
    )
    """,
    "CREATE INDEX videos_owner_idx ON videos (owner_id) WHERE owner_id IS NOT NULL",
    # What those see who are not signed in, in the library's usual order.
    "CREATE INDEX videos_public_idx ON videos (created_at, id) WHERE visibility = 'public'",
    # Of the few that are deleted at any moment.
    "CREATE INDEX videos_deleted_idx ON videos (deleted_at) WHERE deleted_at IS NOT NULL",
    "CREATE INDEX videos_size_idx ON videos (size_bytes, id)",
    "CREATE INDEX videos_visibility_idx ON videos (visibility, id)",
    # Found by state alone, too.
    "CREATE INDEX videos_state_idx ON videos (status, id)",
    "DROP INDEX videos_status_idx",
    "CREATE INDEX playback_links_video_idx ON playback_links (video_id, created_at)",
    "CREATE INDEX playback_links_expiry_idx ON playback_links (expires_at)",
    "CREATE INDEX playback_links_maker_idx ON playback_links (made_by_id)"
    " WHERE made_by_id IS NOT NULL",
)
UPLOADS = (
    """
    ALTER TABLE uploads
      ADD owner_id uuid REFERENCES accounts (id) ON DELETE SET NULL,
      ADD is_compared boolean NOT NULL DEFAULT false
    """,
    # What is older was changed by an operator, if at all: `portal doctor --deep` reports it.
    "UPDATE uploads SET is_compared = true WHERE created_at < now() - interval '8 days'",
    "CREATE INDEX uploads_owner_idx ON uploads (owner_id) WHERE owner_id IS NOT NULL",
    "ALTER TABLE tombstones ADD owner_id uuid, ADD published_at timestamptz",
    "CREATE INDEX tombstones_owner_idx ON tombstones (owner_id) WHERE owner_id IS NOT NULL",
)


class Migration(migrations.Migration):
    dependencies = [("portal", "0009_totals")]

    operations = [*map(ops.RunSQL, (*ACCOUNTS, *VIDEOS, *UPLOADS))]
