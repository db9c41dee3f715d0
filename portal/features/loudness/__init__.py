"""Even loudness: the portal's player applies one gain to the sound of a video.

Begin with `service`. The gain follows from the loudness that a worker has measured
(`films.storyboards`). Stored sound is not changed.
"""

from portal.videos.feature import Feature

FEATURE = Feature(name="loudness", routes=("api", "pages"), panels=("pages",))
