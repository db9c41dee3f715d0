"""Files that refer to others, and what notices when anyone follows them."""

import ctypes
import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from aiohttp import web
from mp4_writer import box

IN_NONBLOCK, IN_ACCESS, IN_OPEN = os.O_NONBLOCK, 0x1, 0x20
IMPOSTORS = {
    "playlist": "#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXTINF:4,\n{file}\n#EXTINF:4,\n{http}\n",
    "master": "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1\n{http}\n"
    "#EXT-X-STREAM-INF:BANDWIDTH=2\n{file}",
    "concat script": "ffconcat version 1.0\nfile '{file}'\nfile '{http}'\n",
    "old concat script": "file '{file}'\nfile '{http}'\n",
    "dash": '<?xml version="1.0"?><MPD xmlns="urn:mpeg:dash:schema:mpd:2011" type="static"><Period>'
    '<AdaptationSet mimeType="video/mp4"><Representation id="1" bandwidth="1"><BaseURL>{http}'
    "</BaseURL></Representation></AdaptationSet></Period></MPD>",
    "svg": '<svg xmlns="http://www.w3.org/2000/svg" xmlns:x="http://www.w3.org/1999/xlink">'
    '<image x:href="{file}"/><image x:href="{http}"/></svg>',
    "sdp": "v=0\no=- 0 0 IN IP4 127.0.0.1\ns=x\nc=IN IP4 127.0.0.1\nm=video 9 RTP/AVP 96\n",
    "smil": '<smil><body><video src="{http}"/><video src="{file}"/></body></smil>',
    "sheet": "subtitles:{file}\nconcat:{file}|{http}\n",
}


class Neighbourhood:
    """What a file may name and must not get at: a file and a server."""

    def __init__(self, folder: Path) -> None:
        self.canary, self.source = folder / "canary.txt", folder / "source.mp4"
        self.canary.write_text("secret")
        self.address = ""
        self.asked: list[str] = []

    @property
    def names(self) -> dict[str, str]:
        """The addresses of both."""
        return {"file": f"file://{self.canary}", "http": f"{self.address}/other.ts"}

    async def answer(self, request: web.Request) -> web.StreamResponse:
        if request.path == "/source.mp4":
            return web.FileResponse(self.source)
        self.asked.append(request.path)
        return web.Response(body=b"got in")


@contextmanager
def unopened(path: Path) -> Iterator[None]:
    """Fail when anyone opens the file meanwhile (inotify(7))."""
    libc = ctypes.CDLL(None, use_errno=True)
    watch = libc.inotify_init1(IN_NONBLOCK)
    try:
        assert libc.inotify_add_watch(watch, os.fsencode(path), IN_ACCESS | IN_OPEN) >= 0
        yield
        with pytest.raises(BlockingIOError):
            os.read(watch, 4096)
    finally:
        os.close(watch)


def alias(path: bytes) -> bytes:
    """A QuickTime data reference, as its reference movies have them, with the path in full."""
    fixed = struct.pack(">I4sHHHB27s", 0, bytes(4), 200, 2, 0, 3, b"Disk".ljust(27, b"\0"))
    names = struct.pack(">IHIB63s", 0, 0, 0, len(path[:63]), path[:63].ljust(63, b"\0"))
    paths = struct.pack(">HH", 18, len(path)) + path + bytes(len(path) % 2)
    tail = bytes(4 + 4 + 4 + 4) + struct.pack(">HH", 0, 0) + bytes(4 + 2 + 10)
    return box(b"alis", bytes(4), fixed[4:], names, tail, paths, struct.pack(">HH", 0xFFFF, 0))
