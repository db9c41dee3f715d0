"""Events, deliveries and their jobs are written by `portal.events`, without triggers."""

from tortoise import migrations
from tortoise.migrations import operations as ops

# `CASCADE` drops their triggers, too.
DROP = """
DROP FUNCTION IF EXISTS
  complete_event, number_event, deliver_event, enqueue_delivery, event_audience CASCADE
"""


class Migration(migrations.Migration):
    dependencies = [("portal", "0024_upload_ids")]

    operations = [ops.RunSQL(DROP)]
