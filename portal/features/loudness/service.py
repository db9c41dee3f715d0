"""Loudness of the sound of videos, the gain of the player, and the switch that turns it off."""

import hashlib
from collections.abc import Collection
from dataclasses import dataclass
from uuid import UUID

from portal.database.connection import transaction
from portal.database.models import Publication, Video
from portal.errors import VersionConflict
from portal.events.log import AuditAction, record_action
from portal.transcoding.encoding.loudness import LOUDNESS_COLUMNS, Loudness
from portal.videos.reading import check_version, get_video, locked_video


class LoudnessChanged(VersionConflict, code="loudness_changed"):
    """The loudness of this video has changed. Read it again, then decide what to send."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SoundLevel:
    """Measured loudness of a video, None if it wasn't measured, and how the player changes it.

    The portal's setting is `target_lufs`; None leaves all sound as it is. `is_even` is the switch
    of the video.
    """

    measured: Loudness | None
    target_lufs: float | None
    is_even: bool

    @classmethod
    def of(cls, video: Video, target_lufs: float | None) -> "SoundLevel":
        """Return the level of a video."""
        figures = {name: getattr(video, name) for name in LOUDNESS_COLUMNS}
        return cls(
            measured=None if None in figures.values() else Loudness(**figures),
            target_lufs=target_lufs,
            is_even=video.has_even_loudness,
        )

    @property
    def gain_db(self) -> float:
        """Return the gain that the player applies; 0 for sound that plays as it is."""
        if self.measured is None or self.target_lufs is None or not self.is_even:
            return 0.0
        return self.measured.gain_db(self.target_lufs)

    @property
    def version(self) -> str:
        """Digest of all values."""
        return hashlib.blake2b(repr(self).encode(), digest_size=12).hexdigest()


async def save_switch(
    video_id: UUID, *, is_even: bool, target_lufs: float | None, versions: Collection[str] | None
) -> SoundLevel:
    """Switch even loudness of a video on or off; return its level.

    Raises:
        LoudnessChanged: the switch would change a level of other versions; None takes any version.
        VideoNotFound: the video was deleted.
    """
    async with transaction():
        video = await locked_video(video_id)
        if video.has_even_loudness != is_even:
            check_version(SoundLevel.of(video, target_lufs).version, versions, LoudnessChanged)
            await Publication.filter(id=video_id).update(has_even_loudness=is_even)
            detail = {"even_loudness": "on" if is_even else "off"}
            await record_action(AuditAction.LOUDNESS_CHANGED, video_id, detail=detail)
        return SoundLevel.of(await get_video(str(video_id)), target_lufs)
