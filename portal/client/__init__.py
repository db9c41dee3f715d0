"""A client of the portal's public JSON API, for any asyncio program.

    async with Portal("https://videos.example.org", token=token) as portal:
        video = await portal.publish(Path("film.mp4"), categories=["Music"])
        print((await portal.wait(video["id"]))["playbackUrl"])

It prints nothing. What goes wrong is a `PortalFailure`, whose text is for people.
"""

from portal.client.calls import PortalFailure, PortalRefused, PortalUnreachable
from portal.client.portal import Event, Portal, Video, VideoFailed, verify_webhook

__all__ = [
    "Event",
    "Portal",
    "PortalFailure",
    "PortalRefused",
    "PortalUnreachable",
    "Video",
    "VideoFailed",
    "verify_webhook",
]
