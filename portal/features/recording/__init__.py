"""Recording of screen, camera and microphone in the browser, uploaded meanwhile.

The portal serves the page alone. Its scripts use the API of uploads of unknown size and publish the
recording like any other upload.
"""

from portal.videos.feature import Feature

FEATURE = Feature(name="recording", routes=("pages",))
