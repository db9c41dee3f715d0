"""Server of a page that has only the recorder, and decoder of the films that it records."""

import base64
import functools
import http.server
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import av
import numpy as np
from front_end import install_tools, run_node

# Smallest content security policy for the recorder: WASM, and the worker that mediabunny creates.
POLICY = "default-src 'self'; script-src 'self' 'wasm-unsafe-eval'; worker-src 'self' blob:"
PAGE = '<!doctype html><title>Record</title><script type="module" src="page.js"></script>'
# Smallest mean of the channels of a white area, of 255.
WHITE = 200


def bundle_page(folder: Path) -> None:
    """Write the page, and its script with the recorder, into a folder."""
    esbuild = install_tools() / "esbuild" / "bin" / "esbuild"
    script = Path(__file__).with_name("recorder_page.mjs")
    arguments = ("--bundle", "--splitting", "--format=esm", f"--outdir={folder}")
    run_node(str(esbuild), f"page={script}", *arguments, "--log-level=error")
    (folder / "index.html").write_text(PAGE, encoding="utf-8")


class _Handler(http.server.SimpleHTTPRequestHandler):
    def end_headers(self) -> None:
        self.send_header("Content-Security-Policy", POLICY)
        super().end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        """Drop the line about a request."""


@contextmanager
def serve(folder: Path) -> Iterator[str]:
    """Serve a folder over HTTP, and yield its URL."""
    handler = functools.partial(_Handler, directory=str(folder))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()


@dataclass(frozen=True)
class Picture:
    """Decoded frame. `pixels` has its rows of RGB values."""

    at_s: float
    is_key: bool
    pixels: np.ndarray[Any, Any]

    @property
    def is_white(self) -> bool:
        return bool(self.pixels[4:20, 4:20].mean() > WHITE)


@dataclass(frozen=True)
class Film:
    """Decoded recording. `sound` has one row per channel, and `rate` samples per second."""

    pictures: list[Picture]
    sound: np.ndarray[Any, Any]
    rate: int

    @property
    def flashes_s(self) -> list[float]:
        """Return the times at which the picture becomes white."""
        pairs = zip(self.pictures, self.pictures[1:], strict=False)
        return [after.at_s for before, after in pairs if after.is_white and not before.is_white]

    @property
    def beeps_s(self) -> list[float]:
        """Return the times at which sound begins after at least 0.4 s of silence."""
        loud = np.flatnonzero(np.abs(self.sound).max(axis=0) > 0.05) / self.rate
        starts = np.flatnonzero(np.diff(loud, prepend=-1.0) > 0.4)
        return [float(at_s) for at_s in loud[starts]]


def decode(data: bytes) -> Film:
    """Decode all frames of a film. Their times include the offset of their track."""
    pictures: list[Picture] = []
    parts: list[np.ndarray[Any, Any]] = []
    rate = 48_000
    with av.open(BytesIO(data)) as container:
        for frame in container.decode():
            if isinstance(frame, av.VideoFrame):
                pixels = frame.to_ndarray(format="rgb24")
                pictures.append(Picture(float(frame.time or 0), frame.key_frame, pixels))
            elif isinstance(frame, av.AudioFrame):
                rate = frame.sample_rate
                parts.append(frame.to_ndarray())
    sound = np.concatenate(parts, axis=1) if parts else np.zeros((2, 0))
    return Film(pictures, sound, rate)


def fragment_ends(data: bytes) -> list[int]:
    """Return the offset of the end of each fragment, in bytes."""
    ends: list[int] = []
    at = 0
    while at < len(data):
        size = int.from_bytes(data[at : at + 4], "big")
        at += size
        if data[at - size + 4 : at - size + 8] == b"mdat":
            ends.append(at)
    return ends


def decode_base64(text: str) -> bytes:
    return base64.b64decode(text)
