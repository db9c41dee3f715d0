"""Deliveries of public events to webhooks, and the jobs that send them.

A delivery with a time to be sent at has a job at that time, from the same transaction.
"""

from portal.database.connection import fetch_rows
from portal.queue.enqueue import defer_delivery

# A transaction that deletes or disables a webhook is waited for, by `FOR SHARE`.
DELIVER = """
INSERT INTO webhook_deliveries (webhook_id, event_number, type)
SELECT id, %s, %s FROM webhooks WHERE disabled_reason IS NULL AND %s = ANY (events) FOR SHARE
RETURNING webhook_id, lane
"""


async def deliver(event_number: int, type: str) -> None:
    """Create a delivery of an event for each webhook that subscribes to its type."""
    for row in await fetch_rows(DELIVER, event_number, type, type):
        await defer_delivery(row["webhook_id"], row["lane"])
