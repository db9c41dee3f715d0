"""Looking into a file and encoding it are jobs of their own, and so is making its storyboard."""

from tortoise import fields, migrations
from tortoise.migrations import operations as ops


class Migration(migrations.Migration):
    dependencies = [("portal", "0009_totals")]

    operations = [
        ops.AddField("Video", "encode_job_id", fields.BigIntField(null=True)),
        ops.AddField("Video", "storyboard_tries", fields.SmallIntField(null=True)),
    ]
