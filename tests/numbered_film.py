"""Films in which each frame shows its number, and the pitch of the sound tells its time."""

import io
from pathlib import Path

import av
import numpy as np
from numpy.typing import NDArray
from running_portal import run_ffmpeg

Luma = NDArray[np.uint8]
FPS = 25
# Columns of the picture, each of which is one digit of the frame's number.
DIGITS = 16
_BRIGHT = 128
_RISE_HZ = 200


def make_numbered(
    path: Path, *options: str, seconds: int, size: str = "640x360", sounds: int = 1
) -> Path:
    """Make a film in which bright columns are the ones of each frame's number."""
    number = "geq=lum='16+219*mod(floor(N/pow(2,X)),2)':cb=128:cr=128"
    scaled = f"scale={size.replace('x', ':')}:flags=neighbor,setsar=1"
    tracks = [
        f"nullsrc=s={DIGITS}x2:r={FPS}:d={seconds},{number},{scaled}",
        *(f"{_tone(number)}:d={seconds}:s=48000" for number in range(sounds)),
    ]
    inputs = [word for track in tracks for word in ("-f", "lavfi", "-i", track)]
    maps = [word for number in range(len(tracks)) for word in ("-map", str(number))]
    encoding = ["-c:v", "libx264", "-preset", "veryfast", "-pix_fmt", "yuv420p", "-b:v", "300k"]
    return run_ffmpeg(path, *inputs, *maps, *encoding, *options)


def _tone(track: int) -> str:
    return f"aevalsrc='0.4*sin(2*PI*({_first_hz(track)}*t+{_RISE_HZ / 2}*t*t))'"


def _first_hz(track: int) -> float:
    return 500 * (track + 1)


def time_of_tone(frequency_hz: float, track: int = 0) -> float:
    """Return when a sound track of a film has this frequency, in seconds."""
    return (frequency_hz - _first_hz(track)) / _RISE_HZ


def shown_numbers(film: bytes | Path) -> list[int]:
    """Return the numbers of the frames of a film by `make_numbered`, or of its playlist."""
    with av.open(str(film) if isinstance(film, Path) else io.BytesIO(film)) as container:
        return [number_in(frame.to_ndarray(format="gray")) for frame in container.decode(video=0)]


def number_in(luma: Luma) -> int:
    """Return the number that a picture shows."""
    middles = [luma.shape[1] * (2 * digit + 1) // (2 * DIGITS) for digit in range(DIGITS)]
    ones = luma[:, middles].mean(axis=0) > _BRIGHT
    return sum(1 << digit for digit in range(DIGITS) if ones[digit])
