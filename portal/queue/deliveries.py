"""Jobs that send deliveries to webhooks, in lanes."""

from datetime import datetime
from uuid import UUID

from portal.queue.jobs import WEBHOOK_QUEUE, Job
from portal.queue.priorities import due_priority
from portal.queue.rows import wake_waiting_job

DELIVERY = Job(name="send_webhook", queue=WEBHOOK_QUEUE, lock="webhook:{webhook_id}:{lane}")


async def enqueue_delivery(webhook_id: UUID, lane: int, *, at: datetime | None = None) -> None:
    """Enqueue the job that sends due deliveries in a lane of a webhook, at this time or at once.

    Jobs of one lane share a lock, so that a slow receiver occupies at most four workers. A job that
    waits to start sends a new delivery too, so no other is enqueued then: it can't start before the
    current transaction ends. Two concurrent transactions may each enqueue a first job of a lane.

    A job that is scheduled for later would hold up jobs with the same lock, unless they have a
    higher priority. Priorities therefore descend with the time.
    """
    lane_of = {"webhook_id": webhook_id, "lane": lane}
    if at is None and await wake_waiting_job(DELIVERY.lock.format(**lane_of)):
        return
    await DELIVERY.insert(due_priority(at, 0) if at else 0, lane_of, at=at)
