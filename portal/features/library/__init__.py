"""Library: the pages that list and search videos, and actions on several of them."""

from portal.videos.feature import Feature

FEATURE = Feature(name="library", routes=("pages", "bulk_actions"), panels=("bulk_actions",))
