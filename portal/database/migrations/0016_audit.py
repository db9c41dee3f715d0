"""The audit log: who did what to which object, from where and when."""

from tortoise import migrations
from tortoise.migrations import operations as ops

# Without foreign keys: a line outlives whom and what it tells of.
CREATE = (
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
    "CREATE INDEX audit_events_at_idx ON audit_events (at)",
    "CREATE INDEX audit_events_action_idx ON audit_events (action, id)",
    "CREATE INDEX audit_events_actor_idx ON audit_events (actor_email, id)",
    "CREATE INDEX audit_events_object_idx ON audit_events (object_id, id)",
    "CREATE INDEX audit_events_object_name_idx ON audit_events (object_name, id)",
)


class Migration(migrations.Migration):
    dependencies = [("portal", "0015_quotas")]

    operations = [*map(ops.RunSQL, CREATE)]
