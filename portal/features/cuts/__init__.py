"""Cuts: parts of a film that viewers don't get, and new videos of a film's parts.

Begin with `service`; `copies` makes the new videos.
"""

from portal.videos.feature import Feature

FEATURE = Feature(name="cuts", routes=("api", "pages"))
