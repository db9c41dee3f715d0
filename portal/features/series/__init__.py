"""Series: ordered lists of videos with title, description, picture and an audience of their own.

A series never widens the audience of its videos: readers get those that they may see, as if the
others were not in it. Begin with `service`.
"""

from portal.videos.feature import Feature

FEATURE = Feature(name="series", routes=("api", "pages", "editing"), panels=("editing",))
