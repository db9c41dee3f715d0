"""The queue's tables are made by a migration of the portal's own, and are procrastinate's."""

from pathlib import Path

from procrastinate.schema import SchemaManager

from portal.database import migrations


def test_queue_tables_are_those_of_the_installed_procrastinate() -> None:
    """If not, a release has changed its schema: a further migration has to follow it."""
    laid = (Path(migrations.__file__).parent / "0003_queue.sql").read_text()
    assert laid.endswith(SchemaManager.get_schema())
