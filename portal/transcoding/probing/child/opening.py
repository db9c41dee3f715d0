"""Open a source with PyAV, and tell one that does not arrive from one that is broken."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import av
from av.container import InputContainer
from av.error import HTTPClientError, HTTPError

# PyAV's classes for system errors (no route, timed out, no such file) are OSErrors too.
UNREACHABLE = (HTTPError, HTTPClientError, OSError)
# These complain of a source that doesn't arrive.
_PROTOCOLS = frozenset({"http", "https", "tcp", "tls"})
_MAX_LOST_LINES = 5


def open_source(
    address: str, options: Mapping[str, str], *, timeout_s: float | None = None
) -> InputContainer:
    """Open an mp4 or QuickTime file. Raises one of `UNREACHABLE`, FFmpegError or ValueError."""
    container: InputContainer = av.open(
        address,
        # One forced demuxer: by default FFmpeg also recognises playlists, which name other files.
        format="mov",
        options=dict(options),
        timeout=timeout_s,
        metadata_errors="replace",
    )
    return container


def told_lost(complaints: Sequence[tuple[Any, str, str]]) -> str:
    """What FFmpeg logged of a source that broke off, which it takes for the end of the file.

    Empty when it came whole.
    """
    lost = [text for _, name, text in complaints if name in _PROTOCOLS]
    return "".join(lost[-_MAX_LOST_LINES:])
