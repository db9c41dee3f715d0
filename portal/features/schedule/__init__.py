"""Schedules: a video becomes public, becomes private or is deleted at a time. Begin with `service`.

Each worker applies what is due once a minute.
"""

from portal.features.schedule import service
from portal.videos.feature import Feature

FEATURE = Feature(
    name="schedule",
    routes=("api", "pages"),
    panels=("pages",),
    each_minute=service.apply_due,
)
