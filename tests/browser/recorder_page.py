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
# Middle of the grey square of `flashing_screen.mjs`.
GREY = (slice(16, 48), slice(80, 112))


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
        return begins_of_sound(self.sound, self.rate)


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


@dataclass(frozen=True)
class LongFilm:
    """Marks of a noisy `flashingScreen` of any length.

    `pictures_s` has the time of each picture, `phases` the time since the last beep that it shows,
    in seconds, and `sound` one channel.
    """

    pictures_s: np.ndarray[Any, Any]
    phases: np.ndarray[Any, Any]
    sound: np.ndarray[Any, Any]
    rate: int

    @property
    def end_s(self) -> float:
        return float(self.pictures_s[-1])

    @property
    def sound_s(self) -> float:
        return self.sound.shape[1] / self.rate

    @property
    def missing_s(self) -> float:
        """Time without pictures: a screen that stands still has one each second."""
        gaps_s = np.diff(self.pictures_s)
        return float((gaps_s[gaps_s > 1] - 1).sum())

    def step_s(self, from_s: float, to_s: float) -> float:
        """Return by how much the sound follows the picture in an interval, at the median."""
        steps_s: list[float] = []
        for beep_s in begins_of_sound(self.sound, self.rate):
            if from_s <= beep_s <= to_s:
                first, last = np.searchsorted(self.pictures_s, (beep_s + 0.1, beep_s + 0.4))
                steps_s += list((self.phases - self.pictures_s)[first:last] + beep_s)
        assert steps_s, "no beep"
        return float(np.median(steps_s))


def decode_long(path: Path) -> LongFilm:
    """Decode a film, and keep only its marks."""
    pictures_s: list[float] = []
    greys: list[float] = []
    parts: list[np.ndarray[Any, Any]] = []
    with av.open(path) as container:
        for frame in container.decode():
            if isinstance(frame, av.VideoFrame):
                pictures_s.append(float(frame.time or 0))
                greys.append(float(frame.to_ndarray()[GREY].mean()))
            elif isinstance(frame, av.AudioFrame):
                rate = frame.sample_rate
                parts.append(frame.to_ndarray()[:1])
    darkest, lightest = np.percentile(greys, (1, 99))
    phases = 0.01 + 0.98 * (np.array(greys) - darkest) / (lightest - darkest)
    return LongFilm(np.array(pictures_s), phases, np.concatenate(parts, axis=1), rate)


def begins_of_sound(sound: np.ndarray[Any, Any], rate: int) -> list[float]:
    """Return the times at which sound begins after at least 0.4 s of silence."""
    loud = np.flatnonzero(np.abs(sound).max(axis=0) > 0.05) / rate
    starts = np.flatnonzero(np.diff(loud, prepend=-1.0) > 0.4)
    return [float(at_s) for at_s in loud[starts]]


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
