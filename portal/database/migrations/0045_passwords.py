"""Passwords of videos."""

from tortoise import migrations
from tortoise.migrations import operations as ops

PASSWORDS = "ALTER TABLE publications ADD password_hash text, ADD unlock_id uuid"


class Migration(migrations.Migration):
    dependencies = [("portal", "0044_schedules")]

    operations = [ops.RunSQL(PASSWORDS)]
