"""Podcast feeds (RSS 2.0) of the library, its searches and categories, and of series.

Each has a feed for audio and one for video, because a player shows no picture for an audio
enclosure, and podcast clients play no stream alone. A person's private feeds have a key in their
addresses. Begin with `service`.
"""

from portal.features.feeds import service
from portal.videos.feature import Feature

FEATURE = Feature(name="feeds", routes=("pages",), follow_version=service.follow_version)
