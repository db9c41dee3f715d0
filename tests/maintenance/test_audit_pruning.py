"""The janitor prunes the audit log, unless it is kept for ever."""

from dataclasses import replace

from aged_videos import tidy
from api_client import run_sql
from audit_lines import add_lines, lines

from portal.web.composition import WebContext

AGED = "UPDATE audit_events SET at = now() - interval '{} days 1 hour' WHERE id % 2 = 0"


async def test_lines_are_kept_as_long_as_the_setting_says(resources: WebContext) -> None:
    url = resources.config.database_url
    await add_lines(url, 10)
    await run_sql(url, AGED.format(364))
    assert (await tidy(resources)).audit_lines == 0
    await run_sql(url, AGED.format(365))
    kept = replace(resources, config=replace(resources.config, audit_days=0))
    assert (await tidy(kept)).audit_lines == 0
    assert len(await lines()) == 10
    assert (await tidy(resources)).audit_lines == 5
    assert [it["id"] % 2 for it in await lines()] == [1] * 5
    soon = replace(resources, config=replace(resources.config, audit_days=1))
    assert (await tidy(soon)).audit_lines == 0
    assert len(await lines()) == 5
