"""Removals and posters have no leases any more: their jobs may run any number of times."""

from tortoise import migrations
from tortoise.migrations import operations as ops


class Migration(migrations.Migration):
    dependencies = [("portal", "0010_since_0_4_0")]

    operations = [
        ops.RemoveField("Deletion", "lease_expires_at"),
        ops.RemoveField("PosterRequest", "lease_expires_at"),
    ]
