"""Accounts, what they sign in with, and whose videos and uploads are whose."""

from tortoise import fields, migrations
from tortoise.migrations import operations as ops

CREATE = (
    """
    CREATE TABLE accounts (
      id uuid PRIMARY KEY,
      email varchar(254) NOT NULL UNIQUE,
      role varchar(10) NOT NULL,
      password_hash text,
      is_disabled boolean NOT NULL,
      created_at timestamptz NOT NULL,
      seen_at timestamptz
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
    "CREATE INDEX sessions_account_idx ON sessions (account_id)",
    "CREATE INDEX api_tokens_account_idx ON api_tokens (account_id)",
    "CREATE INDEX sign_in_failures_email_idx ON sign_in_failures (email, at)",
    "CREATE INDEX sign_in_failures_address_idx ON sign_in_failures (address, at)",
)
OWN = (
    "ALTER TABLE videos ADD FOREIGN KEY (owner_id) REFERENCES accounts (id) ON DELETE SET NULL",
    "ALTER TABLE uploads ADD FOREIGN KEY (owner_id) REFERENCES accounts (id) ON DELETE SET NULL",
    "CREATE INDEX videos_owner_idx ON videos (owner_id) WHERE owner_id IS NOT NULL",
    "CREATE INDEX uploads_owner_idx ON uploads (owner_id) WHERE owner_id IS NOT NULL",
)


class Migration(migrations.Migration):
    dependencies = [("portal", "0011_made_segments")]

    operations = [
        *map(ops.RunSQL, CREATE),
        ops.AddField("Video", "owner_id", fields.UUIDField(null=True)),
        ops.AddField("Upload", "owner_id", fields.UUIDField(null=True)),
        *map(ops.RunSQL, OWN),
    ]
