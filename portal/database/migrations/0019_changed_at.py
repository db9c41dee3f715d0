"""When a person last changed a video, which its processing doesn't."""

from tortoise import fields, migrations
from tortoise.migrations import operations as ops


class Migration(migrations.Migration):
    dependencies = [("portal", "0018_moves")]

    operations = [ops.AddField("Video", "changed_at", fields.DatetimeField(null=True))]
