"""Approval of contributors' videos, which wait until an editor decides. Begin with `service`.

The library lists the waiting videos.
"""

from portal.features.approval import service
from portal.videos.feature import Feature

FEATURE = Feature(
    name="approval", routes=("api", "pages"), follow_version=service.submit_new_version
)
