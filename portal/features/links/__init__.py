"""Playback links to private videos, in the workshop and in the API."""

from portal.videos.feature import Feature

FEATURE = Feature(name="links", routes=("api", "pages"), panels=("pages",))
