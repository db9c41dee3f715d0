"""Posters that editors choose: a frame, or a picture of their own."""

from portal.features.posters import service
from portal.videos.feature import Feature

FEATURE = Feature(
    name="posters",
    routes=("pages",),
    panels=("pages",),
    jobs=((service.POSTER, service.make_poster),),
    follow_version=service.follow_version,
    before_removal=service.move_from_attempt,
)
