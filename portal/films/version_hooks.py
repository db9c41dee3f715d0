"""Changes of the version that viewers get, for the features that follow them."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from portal.database.models import Video
from portal.transcoding.encoding.assembly import PassOutput


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionChange:
    """A version of a locked video that viewers get from now on, and the one before.

    Each is given as the video with the columns of the version. `former` is None for a video that
    becomes ready. `output` is that of the pass which has just made the version, and `chapters` are
    those of its file; a version that comes back has none.
    """

    video: Video
    former: Video | None
    output: PassOutput | None = None
    chapters: Sequence[Mapping[str, Any]] = ()

    @property
    def is_other_file(self) -> bool:
        """Return whether the version is that of another uploaded file than the one before."""
        return self.former is not None and self.former.storage_key != self.video.storage_key


# Function of a feature that follows a change, in the transaction of the change.
VersionHook = Callable[[VersionChange], Awaitable[None]]
