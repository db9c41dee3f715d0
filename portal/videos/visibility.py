"""Who may see a video and which sites may frame its player: the rules, and what writes it.

A program's change names the version that it read. When that is no longer what is recorded, nothing
is written, unless what is sent is what is recorded already. A person's form says what it was made
from instead, and is merged with what others have saved since.
"""

import hashlib
import json
from collections.abc import Collection, Iterable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from uuid import UUID

from portal.database.connection import transaction
from portal.database.models import Video, Visibility
from portal.errors import AccessChanged
from portal.events.log import AuditAction, changed_fields, note
from portal.text import is_site
from portal.videos.merging import Merged, MergeRule, Values, merge, united
from portal.videos.reading import check_version, locked_video

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


def _united_sites(base: tuple[str, ...], *changed: tuple[str, ...]) -> tuple[str, ...] | None:
    """Both changes of the sites; where none are named, others may be meant than what is left."""
    sites = tuple(united(base, *changed))
    return sites if sites and all(changed) and len(sites) <= MAX_EMBED_ORIGINS else None


MERGED_FIELDS = {
    "visibility": MergeRule(compared=tuple),
    "embed_origins": MergeRule(compared=frozenset, united=_united_sites),
}


def mergeable(visibility: str, embed_origins: Iterable[str], *, signed_in_only: bool) -> Values:
    """Who may see a video as it is merged: whom private means is part of the visibility."""
    return {
        "visibility": (visibility, signed_in_only),
        "embed_origins": tuple(embed_origins),
    }


def signed_in_only_fault(visibility: Visibility, *, signed_in_only: bool) -> str | None:
    """What is wrong with a choice, and the remedy."""
    if signed_in_only and visibility is not Visibility.PRIVATE:
        return "Only a private video can be for everyone signed in. Choose private, or false here."
    return None


def embed_origin_fault(origin: str) -> str | None:
    """What is wrong with the name of a site, and the remedy."""
    if is_site(origin):
        return None
    if is_site(origin.replace("//*.", "//", 1)):
        return "This would be anyone's site. Name the domain as well, like https://*.example.org."
    return "Give a site like https://blog.example.org, in small letters and without a path."


def recorded_access(video: Video) -> VideoAccess:
    """Who may see a video, as it is in the database."""
    return VideoAccess(
        visibility=video.visibility,
        signed_in_only=video.signed_in_only,
        embed_origins=tuple(video.embed_origins),
    )


async def save_access(
    video_id: UUID, access: VideoAccess, *, versions: Collection[str] | None
) -> Video:
    """Replace the access to a video of one of these versions; None replaces any version.

    Raises:
        AccessChanged: another version is recorded that differs from the change.
        VideoNotFound: the video was deleted.
    """
    async with transaction():
        video = await locked_video(video_id)
        present = recorded_access(video)
        if access != present:
            check_version(present.version, versions, AccessChanged)
        await _record(video, access)
    return video


async def merge_access(video_id: UUID, mine: VideoAccess, *, base: Values) -> tuple[Video, Merged]:
    """Write what I made of `base` together with what others have made of it; the video after that.

    Nothing is written if there are conflicts. Raises `VideoNotFound` if the video was deleted.
    """
    async with transaction():
        video = await locked_video(video_id)
        theirs = recorded_access(video)
        merged = merge(MERGED_FIELDS, base=base, mine=_parts(mine), theirs=_parts(theirs))
        if not merged.conflicts:
            await _record(video, merged_access(merged))
    return video, merged


def merged_access(merged: Merged) -> VideoAccess:
    """Who may see a video by what came of two changes."""
    visibility, signed_in_only = merged.values["visibility"]
    return VideoAccess(
        visibility=Visibility(visibility),
        signed_in_only=signed_in_only,
        embed_origins=merged.values["embed_origins"],
    )


def _parts(access: VideoAccess) -> Values:
    return mergeable(
        access.visibility.value, access.embed_origins, signed_in_only=access.signed_in_only
    )


async def _record(video: Video, access: VideoAccess) -> None:
    """Write who may see a video, and who said so; nothing if it is what is recorded."""
    present = recorded_access(video)
    if access == present:
        return
    columns = asdict(access) | {
        "embed_origins": list(access.embed_origins),
        "changed_at": datetime.now(UTC),
    }
    if access.visibility is not present.visibility:
        # Programs change it together with the metadata.
        columns["metadata_version"] = video.metadata_version + 1
    await video.update_from_dict(columns).save(update_fields=list(columns))
    await note(AuditAction.ACCESS_CHANGED, video.id, detail=_told(present, access))


def _told(before: VideoAccess, after: VideoAccess) -> dict[str, str]:
    """What of it is in the audit log: the visibility, and what else has changed."""
    was, now = asdict(before), asdict(after)
    old, new = was.pop("visibility"), now.pop("visibility")
    told = {"was": old.value, "visibility": new.value} if old is not new else {}
    return told | changed_fields(was, now)
