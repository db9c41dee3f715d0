"""Webhooks, and addresses of other servers, as the API and pages take them."""

from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from portal.events.log import EventType
from portal.events.outgoing import MAX_ADDRESS_LENGTH, address_fault
from portal.events.records import Shape
from portal.http.composition import web_context
from portal.http.schemas.base import ClosedShape, Text, Timestamp, reject_if

Address = Annotated[
    Text,
    Field(max_length=MAX_ADDRESS_LENGTH, description="Public https address."),
    reject_if(lambda url: address_fault(url, web_context().config)),
]
Events = Annotated[
    list[EventType],
    Field(min_length=1, description="Types of the events to send."),
    AfterValidator(lambda types: [event.value for event in EventType if event in types]),
]


class WebhookRequest(ClosedShape):
    """Request to send events to a public https address."""

    url: Address
    events: Events


class TestEvent(Shape):
    """Body of a test."""

    id: str = Field(description="Unique identifier of the test.")
    type: Literal["webhook.test"] = Field(description="Always `webhook.test`.")
    timestamp: Timestamp = Field(description="Time of the test.")
    sequence: Literal[0] = Field(description="Always 0.")
    data: dict[str, str] = Field(max_length=0, description="Always empty.")
