"""Playback links to private videos, in the workshop and in the API."""

from portal.videos import playback_links
from portal.videos.feature import Feature

FEATURE = Feature(
    name="links",
    routes=("api", "pages"),
    panels=("pages",),
    prune=playback_links.forget_unused,
)
