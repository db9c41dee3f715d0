"""What pages say of an account's quotas: how much is used, and whether that is nearly all."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from portal.uploads.quotas import Usage, counted, usage_of
from portal.web.auth import principal
from portal.web.composition import web_context
from portal.web.pages.formatting import Moment, moment, size

NEARLY_ALL = 0.8


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaView:
    """What an account has used, as far as that is limited.

    `left_videos` and `left_bytes` are None for any number. `free` is when the next video may be
    published, if none may now.
    """

    words: tuple[str, ...]
    left_videos: int | None
    left_bytes: int | None
    is_nearly_used_up: bool
    free: Moment | None

    @property
    def is_used_up(self) -> bool:
        """Whether nothing at all can be published now."""
        return 0 in (self.left_videos, self.left_bytes)


async def own_quota() -> QuotaView | None:
    """Of who asks; None without an account or without quotas."""
    account_id = (await principal()).account_id
    return (await quotas_of([account_id])).get(account_id) if account_id else None


async def quotas_of(account_ids: Sequence[UUID]) -> Mapping[UUID, QuotaView]:
    """Of each of these accounts; of none without quotas."""
    quota = web_context().quota
    if not quota:
        return {}
    return {id: quota_view(usage) for id, usage in (await usage_of(account_ids, quota)).items()}


def quota_view(usage: Usage) -> QuotaView:
    """A usage as pages show it."""
    videos, stored_bytes = usage.quota.videos_per_day, usage.quota.stored_bytes
    words = []
    if videos:
        words.append(f"{usage.videos:,} of {counted(videos)} in the last 24 hours")
    if stored_bytes:
        words.append(f"{size(usage.stored_bytes).words} of {size(stored_bytes).words} used")
    return QuotaView(
        words=tuple(words),
        left_videos=usage.left_videos,
        left_bytes=usage.left_bytes,
        is_nearly_used_up=usage.videos >= NEARLY_ALL * videos > 0
        or usage.stored_bytes >= NEARLY_ALL * stored_bytes > 0,
        free=moment(usage.free_at) if usage.free_at and usage.left_videos == 0 else None,
    )
