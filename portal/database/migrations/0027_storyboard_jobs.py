"""A video names the job that makes its storyboard; the job no longer is a pass.

Where a storyboard is missing, the pass that would have made it is named. Recovery replaces that job
once it has ended.
"""

from tortoise import migrations
from tortoise.migrations import operations as ops

ADD = """
ALTER TABLE videos ADD storyboard_job_id bigint;
UPDATE videos SET storyboard_job_id = complete_job_id
WHERE status = 'ready' AND storyboard_tries IS NOT NULL;
UPDATE videos SET storyboard_tries = 0 WHERE storyboard_tries IS NULL;
ALTER TABLE videos ALTER storyboard_tries SET DEFAULT 0, ALTER storyboard_tries SET NOT NULL;
"""


class Migration(migrations.Migration):
    dependencies = [("portal", "0026_parts")]

    operations = [ops.RunSQL(ADD)]
