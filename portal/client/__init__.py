"""Client of the portal's public JSON API, for asyncio programs.

    async with Portal("https://videos.example.org", token=token) as portal:
        video = await portal.publish(Path("film.mp4"), categories=["Music"])
        print((await portal.wait(video["id"]))["playbackUrl"])

It prints nothing. Errors are `PortalFailure`s, whose messages can be shown to people.
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
