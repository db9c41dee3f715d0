"""What the tests of playback links share: videos that can be played, keys of any age, addresses."""

from typing import Any
from urllib.parse import urlsplit

from api_client import run_sql
from page_rows import READY
from signed_in import make_video

from portal.config import Config
from portal.database.account_models import Account
from portal.database.models import Video

LIFE = {"expiresInSeconds": 3600}


async def ready_video(owner: Account | None = None) -> Video:
    """A video that can be played, as far as the database knows."""
    video = await make_video(owner)
    await Video.filter(id=video.id).update(**READY)
    return await Video.get(id=video.id)


def links_of(video: Video) -> str:
    """Where the API has the links of a video."""
    return f"/api/videos/{video.id}/playback-links"


def token_in(address: str) -> str:
    """The token in a playback address."""
    _, p, token, *_ = urlsplit(address).path.split("/")
    assert p == "p"
    return token


async def age_keys(config: Config, seconds: float) -> None:
    """Make every key older."""
    await run_sql(
        config.database_url,
        f"UPDATE signing_keys SET created_at = created_at - interval '{seconds} s'",
    )


async def age_links(config: Config, seconds: float) -> None:
    """Make every link older, and closer to its end."""
    await run_sql(
        config.database_url,
        f"UPDATE playback_links SET created_at = created_at - interval '{seconds} s',"
        f" expires_at = expires_at - interval '{seconds} s'",
    )


def without(record: dict[str, Any], *names: str) -> dict[str, Any]:
    """A record without these members."""
    return {name: value for name, value in record.items() if name not in names}
