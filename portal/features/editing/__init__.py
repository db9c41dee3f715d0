"""Changes of a video's details and of its audience, by forms and by the API."""

from portal.videos.feature import Feature

FEATURE = Feature(
    name="editing",
    routes=("api", "access_api", "pages", "visibility"),
    panels=("pages", "visibility"),
)
