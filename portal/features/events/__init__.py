"""Events: what happened to videos, as a list and as a stream."""

from portal.videos.feature import Feature

FEATURE = Feature(name="events", routes=("api",))
