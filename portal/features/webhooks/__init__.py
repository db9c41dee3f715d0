"""Webhooks: events of videos, sent to addresses that subscribe to them (Standard Webhooks).

`endpoints` manages the addresses and lists their deliveries. `sending` sends a delivery, and
decides when it is sent again. `events.log` creates the deliveries in the transaction of the event,
so none is lost. Begin with `sending`.
"""

from portal.features.webhooks import endpoints, sending
from portal.queue.deliveries import DELIVERY
from portal.videos.feature import Feature

FEATURE = Feature(
    name="webhooks",
    routes=("api", "pages"),
    jobs=((DELIVERY, sending.send),),
    prune=endpoints.forget_old,
)
