"""Imports: files that the portal fetches from other servers and publishes."""

from portal.features.imports import service
from portal.videos.feature import Feature

FEATURE = Feature(
    name="imports",
    routes=("api",),
    jobs=((service.IMPORT, service.run),),
    find_pending=service.find_pending,
)
