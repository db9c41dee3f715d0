"""Loudness of the sound of versions, and whether players even it out."""

from tortoise import migrations
from tortoise.migrations import operations as ops

LOUDNESS = """
ALTER TABLE versions
  ADD integrated_lufs float8,
  ADD loudness_range_lu float8,
  ADD true_peak_dbtp float8;
ALTER TABLE publications ADD has_even_loudness boolean NOT NULL DEFAULT true
"""


class Migration(migrations.Migration):
    dependencies = [("portal", "0052_growing_uploads")]

    operations = [ops.RunSQL(LOUDNESS)]
