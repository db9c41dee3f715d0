"""Storyboards are made after a video is ready, by a pass of their own."""

from tortoise import fields, migrations
from tortoise.migrations import operations as ops


class Migration(migrations.Migration):
    dependencies = [("portal", "0009_totals")]

    operations = [ops.AddField("Video", "storyboard_tries", fields.SmallIntField(null=True))]
