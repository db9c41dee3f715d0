"""Publishing: uploads, new videos, and the progress of their processing."""

from portal.videos.feature import Feature

FEATURE = Feature(name="publishing", routes=("api", "uploads_api", "transcodes_api", "pages"))
