"""The accounts that made one-time links, which end with the rights of these accounts."""

from tortoise import migrations
from tortoise.migrations import operations as ops

COLUMN = "ALTER TABLE one_time_links ADD made_by_id uuid REFERENCES accounts ON DELETE CASCADE"

# The audit log names the makers of present links. An account has one link at most, the last one.
FILL = """
UPDATE one_time_links SET made_by_id = made.actor_id
FROM (
  SELECT DISTINCT ON (action, object_id) action, object_id, actor_id
  FROM events WHERE action IN ('invitation.made', 'account.link_made')
  ORDER BY action, object_id, at DESC
) made JOIN accounts ON accounts.id = made.actor_id
WHERE made.object_id = CASE WHEN made.action = 'invitation.made' THEN one_time_links.id
                            ELSE one_time_links.account_id END::text
"""


class Migration(migrations.Migration):
    dependencies = [("portal", "0036_removed_attempts")]

    operations = [ops.RunSQL(COLUMN), ops.RunSQL(FILL)]
