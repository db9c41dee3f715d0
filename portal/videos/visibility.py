"""Access to a video: its visibility, and the sites that may frame its player.

A program's change names the versions that it is for. If another version is recorded, nothing is
written, unless the change is recorded already. A person's form has the values that it was made from
instead, and is merged with changes that others have saved since.
"""

import hashlib
import json
from collections.abc import Collection, Iterable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from uuid import UUID

from portal.database.connection import transaction
from portal.database.models import Publication, Video, Visibility
from portal.errors import AccessChanged
from portal.events.log import AuditAction, changed_fields, record_action
from portal.locale.messages import Message
from portal.text import is_site
from portal.videos.merging import Merged, MergeRule, Values, merge, united
from portal.videos.reading import check_version, locked_video

MAX_EMBED_ORIGINS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class VideoAccess:
    """Access to a video. Empty `embed_origins` leave framing to the portal's setting."""

    visibility: Visibility
    signed_in_only: bool = False
    embed_origins: tuple[str, ...] = ()

    @property
    def version(self) -> str:
        """Digest of the values."""
        text = json.dumps(asdict(self), sort_keys=True)
        return hashlib.blake2b(text.encode(), digest_size=12).hexdigest()


def _united_sites(base: tuple[str, ...], *changed: tuple[str, ...]) -> tuple[str, ...] | None:
    """Return both changes of the sites in one; None for a conflict.

    An empty list stands for the portal's setting, so it can't be merged with a list of sites.
    """
    sites = tuple(united(base, *changed))
    return sites if sites and all(changed) and len(sites) <= MAX_EMBED_ORIGINS else None


MERGED_FIELDS = {
    "visibility": MergeRule(compared=tuple),
    "embed_origins": MergeRule(compared=frozenset, united=_united_sites),
}


def mergeable(visibility: str, embed_origins: Iterable[str], *, signed_in_only: bool) -> Values:
    """Return access as merged values. `signed_in_only` is merged as part of the visibility."""
    return {
        "visibility": (visibility, signed_in_only),
        "embed_origins": tuple(embed_origins),
    }


def signed_in_only_fault(visibility: Visibility, *, signed_in_only: bool) -> str | None:
    """Return what is wrong with a choice, and the remedy; None if nothing is."""
    if signed_in_only and visibility is not Visibility.PRIVATE:
        return Message(
            "Only a private video can be for everyone signed in. Choose private, or false here."
        )
    return None


def embed_origin_fault(origin: str) -> str | None:
    """Return what is wrong with the name of a site, and the remedy; None if nothing is."""
    if is_site(origin):
        return None
    if is_site(origin.replace("//*.", "//", 1)):
        return Message(
            "This would be anyone's site. Name the domain as well, like https://*.example.org."
        )
    return Message(
        "Give a site like https://blog.example.org, in small letters and without a path."
    )


def recorded_access(video: Video) -> VideoAccess:
    """Return the recorded access to a video."""
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
        await _record_access(video, access)
    return video


async def merge_access(video_id: UUID, mine: VideoAccess, *, base: Values) -> tuple[Video, Merged]:
    """Merge and write a change of `base`. Return the video and the result of the merge.

    Nothing is written if there are conflicts. Raises `VideoNotFound` if the video was deleted.
    """
    async with transaction():
        video = await locked_video(video_id)
        theirs = recorded_access(video)
        merged = merge(MERGED_FIELDS, base=base, mine=_parts(mine), theirs=_parts(theirs))
        if not merged.conflicts:
            await _record_access(video, merged_access(merged))
    return video, merged


def merged_access(merged: Merged) -> VideoAccess:
    """Return the access that results from a merge."""
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


async def _record_access(video: Video, access: VideoAccess) -> None:
    """Write access to a locked video and its event, unless it is recorded already."""
    present = recorded_access(video)
    if access == present:
        return
    columns = asdict(access) | {
        "embed_origins": list(access.embed_origins),
        "changed_at": datetime.now(UTC),
    }
    if access.visibility is not present.visibility:
        # Programs change the visibility together with the metadata.
        columns["metadata_version"] = video.metadata_version + 1
    await Publication.filter(id=video.id).update(**columns)
    video.update_from_dict(columns)
    await record_action(
        AuditAction.ACCESS_CHANGED, video.id, detail=_access_detail(present, access)
    )


def _access_detail(before: VideoAccess, after: VideoAccess) -> dict[str, str]:
    """Return a change for the audit log: both visibilities, and the names of other fields."""
    old_fields = asdict(before)
    new_fields = asdict(after)
    old = old_fields.pop("visibility")
    new = new_fields.pop("visibility")
    detail = {"was": old.value, "visibility": new.value} if old is not new else {}
    return detail | changed_fields(old_fields, new_fields)
