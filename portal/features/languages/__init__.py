"""Choice of the language of pages, by readers with and without an account."""

from portal.videos.feature import Feature

FEATURE = Feature(name="languages", routes=("pages",))
