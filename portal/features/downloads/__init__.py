"""Downloads: the uploaded file, and files that are joined from segments on demand."""

from portal.features.downloads import service
from portal.videos.feature import Feature

FEATURE = Feature(
    name="downloads",
    routes=("api", "pages", "files"),
    jobs=((service.DOWNLOAD, service.make_file),),
    sweep=service.sweep,
)
