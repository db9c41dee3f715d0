"""Watching: the page of a video, its player on other sites, its streams, and saved positions."""

from portal.videos.feature import Feature

FEATURE = Feature(name="watching", routes=("playback", "pages", "embedding", "unlocking"))
