"""Who an account is at a provider of single sign-on, and sign-ins that are under way there."""

from tortoise import migrations
from tortoise.migrations import operations as ops

CREATE = (
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
    "CREATE INDEX sign_ons_expiry_idx ON sign_ons (expires_at)",
)


class Migration(migrations.Migration):
    dependencies = [("portal", "0016_audit")]

    operations = [
        ops.RunSQL(
            "ALTER TABLE accounts ADD COLUMN has_own_word_for_email boolean NOT NULL DEFAULT false"
        ),
        *map(ops.RunSQL, CREATE),
    ]
