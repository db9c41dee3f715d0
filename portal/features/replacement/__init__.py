"""Replacement of the file of a video, and the way back to the former one."""

from portal.videos.feature import Feature

FEATURE = Feature(name="replacement", routes=("api", "pages"), panels=("pages",))
