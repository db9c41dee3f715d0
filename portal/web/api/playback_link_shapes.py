"""Request and response shapes of playback links."""

from typing import Annotated

from pydantic import AfterValidator, Field
from pydantic.config import JsonDict
from pydantic_core import PydanticCustomError

from portal.videos.playback_links import MAX_LIFE_S, MIN_LIFE_S, PlaybackLink
from portal.web.api.shapes import Shape, Timestamp, WholeNumber
from portal.web.playback_addresses import PlaybackAddresses

URI: JsonDict = {"format": "uri"}


def _is_life(value: int) -> int:
    if not MIN_LIFE_S <= value <= MAX_LIFE_S:
        limits = {"least": f"{MIN_LIFE_S:,}", "most": f"{MAX_LIFE_S:,}"}
        raise PydanticCustomError(
            "life", "Give {least} to {most} seconds, a minute to a year.", limits
        )
    return value


class PlaybackLinkRequest(Shape):
    """Asks for a link by which a video can be watched for a while."""

    expires_in_seconds: Annotated[
        WholeNumber,
        AfterValidator(_is_life),
        Field(
            description="How long the link works.",
            json_schema_extra={"minimum": MIN_LIFE_S, "maximum": MAX_LIFE_S},
        ),
    ]


class CreatedPlaybackLink(Shape):
    """A new link. Whoever has one of its addresses may watch the video."""

    playback_url: str = Field(description="The stream, for any player.", json_schema_extra=URI)
    embed_url: str = Field(description="The portal's player, for a frame.", json_schema_extra=URI)
    expires_at: Timestamp
    id: str


class PlaybackLinkRecord(Shape):
    """A link that works."""

    id: str
    playback_url: str = Field(description="Empty while the video is transcoded anew.")
    embed_url: str = Field(json_schema_extra=URI)
    created_at: Timestamp
    expires_at: Timestamp
    made_by: str | None = Field(
        description="The e-mail address of the account; null without accounts, or once it is gone."
    )


class PlaybackLinkList(Shape):
    """The links of a video that work, the newest first."""

    links: list[PlaybackLinkRecord]


def created_link(link: PlaybackLink, addresses: PlaybackAddresses) -> CreatedPlaybackLink:
    """The public shape of a new link."""
    return CreatedPlaybackLink(
        playback_url=addresses.playback_url,
        embed_url=addresses.embed_url,
        expires_at=link.expires_at,
        id=str(link.id),
    )


def link_record(link: PlaybackLink, addresses: PlaybackAddresses) -> PlaybackLinkRecord:
    """The public shape of a link in a list."""
    return PlaybackLinkRecord(
        id=str(link.id),
        playback_url=addresses.playback_url,
        embed_url=addresses.embed_url,
        created_at=link.created_at,
        expires_at=link.expires_at,
        made_by=link.made_by,
    )
