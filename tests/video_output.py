"""The output of a video as the tests of playback lay it into storage."""

from dataclasses import dataclass

from api_client import run_sql

from portal.web.composition import WebContext

PLAYLIST_TYPE = "application/vnd.apple.mpegurl"
READY = "status = 'ready', published_attempt = 1"
MASTER = "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1\nlow/media.m3u8\n"
MEDIA = """#EXTM3U
#EXT-X-TARGETDURATION:4
#EXT-X-MAP:URI="init.mp4"
#EXTINF:4.0,
one.m4s
#EXT-X-ENDLIST
"""
STORYBOARD = """WEBVTT

00:00:00.000 --> 00:00:01.000
storyboard-000.jpg#xywh=0,0,192,108

00:00:01.000 --> 00:00:02.000
storyboard-000.jpg#xywh=192,0,192,108
"""


@dataclass(frozen=True, slots=True)
class Output:
    """What lies in storage of a video."""

    resources: WebContext
    video_id: str

    @property
    def folder(self) -> str:
        return f"hls/{self.video_id}/1"

    async def put(self, key: str, text: str, content_type: str = PLAYLIST_TYPE) -> None:
        await self.resources.storage.put(key, text.encode(), content_type=content_type)

    async def change(self, change: str) -> None:
        """Change the video's row."""
        await run_sql(self.resources.config.database_url, f"UPDATE videos SET {change}")
