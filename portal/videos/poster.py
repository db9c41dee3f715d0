"""Poster of a video: where it is stored, and the revision in its address."""

from portal.database.models import Video
from portal.storage.objects import output_root
from portal.transcoding.encoding.pictures import POSTER_NAME
from portal.transcoding.planning.kept import Kept


def poster_key(video: Video) -> str:
    """Return the storage key of the poster of a ready video.

    It is the frame that transcoding chose if there was no request, or if its frame is cut.
    """
    path = None if lacks_poster_frame(video) else video.poster_path
    return output_root(video.id) + (path or f"{video.published_attempt}/{POSTER_NAME}")


def poster_revision(video: Video) -> str:
    """Return the value in the poster's address that changes with the poster of a ready video."""
    return f"{video.published_attempt}-{video.poster_version}"


def lacks_poster_frame(video: Video) -> bool:
    """Return whether the frame that a requested poster shows is cut from the film."""
    if video.keep is None or video.poster_time_s is None:
        return False
    return Kept.of(video.keep).cut_time_s(video.poster_time_s) is None
