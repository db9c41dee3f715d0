"""Who may see a video and which sites may frame its player: the rules, and what writes it.

A change names the version that was read. When that is no longer what is recorded, nothing is
written, unless what is sent is what is recorded already.
"""

import hashlib
import json
import logging
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from uuid import UUID

from portal.accounts.audit import AuditAction, changed_fields, note
from portal.database.connection import transaction
from portal.database.models import Video
from portal.database.rows import lock_video
from portal.database.states import Visibility
from portal.errors import AccessChanged, VideoNotFound
from portal.processing.moving import request_move
from portal.queue.app import Queue
from portal.text import is_site

logger = logging.getLogger(__name__)

MAX_EMBED_ORIGINS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class VideoAccess:
    """Who may see a video. Without `embed_origins` the portal's own setting says who frames it."""

    visibility: Visibility
    signed_in_only: bool = False
    embed_origins: tuple[str, ...] = ()

    @property
    def version(self) -> str:
        """What tells it from any other."""
        text = json.dumps(asdict(self), sort_keys=True)
        return hashlib.blake2b(text.encode(), digest_size=12).hexdigest()


def signed_in_only_fault(visibility: Visibility, *, signed_in_only: bool) -> str | None:
    """What is wrong with a choice, and the remedy."""
    if signed_in_only and visibility is not Visibility.PRIVATE:
        return "Only a private video can be for everyone signed in. Choose private, or false here."
    return None


def embed_origin_fault(origin: str) -> str | None:
    """What is wrong with the name of a site, and the remedy."""
    if not is_site(origin):
        return "Give a site like https://blog.example.org, in small letters and without a path."
    return None


def recorded_access(video: Video) -> VideoAccess:
    """Who may see a video, as it is in the database."""
    return VideoAccess(
        visibility=video.visibility,
        signed_in_only=video.signed_in_only,
        embed_origins=tuple(video.embed_origins),
    )


async def save_access(
    video_id: UUID, access: VideoAccess, *, version: str | None, queue: Queue
) -> Video:
    """Write who may see a video over the version that was read; None for whatever is there.

    What was made of one that becomes private is moved, so that no address given out leads to it.

    Raises:
        AccessChanged: something else is recorded by now.
        VideoNotFound: the video was deleted meanwhile.
    """
    async with transaction():
        video = await lock_video(video_id)
        if video is None:
            raise VideoNotFound
        present = recorded_access(video)
        if access == present:
            return video
        if version not in (None, present.version):
            raise AccessChanged
        columns = asdict(access) | {
            "embed_origins": list(access.embed_origins),
            "changed_at": datetime.now(UTC),
        }
        await video.update_from_dict(columns).save(update_fields=list(columns))
        if access.visibility is Visibility.PRIVATE and present.visibility is not access.visibility:
            await request_move(video_id, queue)
        await note(AuditAction.ACCESS_CHANGED, video.id, detail=_told(present, access))
    told = {"video_id": str(video_id), "visibility": access.visibility.value}
    logger.info("Access changed", extra={"action": "access", **told})
    return video


def _told(before: VideoAccess, after: VideoAccess) -> dict[str, str]:
    """What of it is in the audit log: the visibility, and what else has changed."""
    was, now = asdict(before), asdict(after)
    old, new = was.pop("visibility"), now.pop("visibility")
    told = {"was": old.value, "visibility": new.value} if old is not new else {}
    return told | changed_fields(was, now)
