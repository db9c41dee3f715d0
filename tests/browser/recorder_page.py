"""Page that records with the recorder alone, from a server of its own, and films read by PyAV."""

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

# What the record page's policy must allow: WASM, and a worker that mediabunny makes.
POLICY = "default-src 'self'; script-src 'self' 'wasm-unsafe-eval'; worker-src 'self' blob:"
PAGE = '<!doctype html><title>Record</title><script type="module" src="page.js"></script>'
WHITE = 200
CORNER = 24


def bundle_page(folder: Path) -> None:
    """Write the page, its script and the recorder."""
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
        """Log nothing."""


@contextmanager
def serve(folder: Path) -> Iterator[str]:
    """Serve a folder; the value is its URL."""
    handler = functools.partial(_Handler, directory=str(folder))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()


@dataclass(frozen=True)
class Picture:
    """A decoded frame: its time, whether it is a key frame, its pixels as RGB or luma."""

    at_s: float
    is_key: bool
    pixels: np.ndarray[Any, Any]

    @property
    def is_white(self) -> bool:
        return bool(self.pixels[4:20, 4:20].mean() > WHITE)


@dataclass(frozen=True)
class Film:
    """A decoded recording. `sound` has one row per channel."""

    pictures: list[Picture]
    sound: np.ndarray[Any, Any]
    rate: int

    @property
    def flashes_s(self) -> list[float]:
        """Times at which the picture becomes white."""
        pairs = zip(self.pictures, self.pictures[1:], strict=False)
        return [after.at_s for before, after in pairs if after.is_white and not before.is_white]

    def steps_s(self, *, after_s: float = 0) -> list[float]:
        """Return by how much the nearest beep follows each flash after a time."""
        beeps_s = self.beeps_s
        flashes_s = [at_s for at_s in self.flashes_s if at_s > after_s]
        return [min((beep - flash for beep in beeps_s), key=abs) for flash in flashes_s]

    @property
    def beeps_s(self) -> list[float]:
        """Times at which sound begins after half a second of silence."""
        loud = np.flatnonzero(np.abs(self.sound).max(axis=0) > 0.05) / self.rate
        starts = np.flatnonzero(np.diff(loud, prepend=-1.0) > 0.4)
        return [float(at_s) for at_s in loud[starts]]


def decode(data: bytes) -> Film:
    """Decode a film wholly, with the offsets of its tracks."""
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


def decode_marks(path: Path) -> Film:
    """Decode a film of any length: the luma of the pictures' corners, and one channel."""
    pictures: list[Picture] = []
    parts: list[np.ndarray[Any, Any]] = []
    with av.open(path) as container:
        for frame in container.decode():
            if isinstance(frame, av.VideoFrame):
                corner = frame.to_ndarray()[:CORNER, :CORNER].copy()
                pictures.append(Picture(float(frame.time or 0), frame.key_frame, corner))
            elif isinstance(frame, av.AudioFrame):
                rate = frame.sample_rate
                parts.append(frame.to_ndarray()[:1])
    return Film(pictures, np.concatenate(parts, axis=1), rate)


def fragment_ends(data: bytes) -> list[int]:
    """Return the offsets at which a fragment has ended."""
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
