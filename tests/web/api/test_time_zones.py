"""Times of records where the database lives in another time zone."""

from datetime import UTC, datetime

from api_client import UTC_TIME, app_client, published

from portal.config import Config


async def test_timestamps_are_utc_whatever_the_time_zone_of_the_database(config: Config) -> None:
    far_east = f"{config.database_url}&options=-c%20timezone%3DAsia/Kolkata"
    async with app_client(config, database_url=far_east) as client:
        before = datetime.now(UTC)
        record = await published(client)
        read = await (await client.get(f"/api/videos/{record['id']}")).get_json()
    for member in ("createdAt", "updatedAt"):
        assert read[member] == record[member]
        assert UTC_TIME.fullmatch(read[member])
        assert before <= datetime.fromisoformat(read[member]) <= datetime.now(UTC)
