"""Recipes of small media: a card whose corners tell which way is up, with flashes and beeps."""

from collections.abc import Callable, Sequence
from pathlib import Path

from decoded_media import RGB

MakeMedia = Callable[..., Path]

SIZE = "544x306"  # the smallest 16:9 that gets two rungs
DURATION_S = 7.0  # two segments, and one group of pictures too long to be copied
FLASHES_S = (0.5, 6.0)
FLASH_S = 0.2
# Corners in reading order: upper left, upper right, lower left, lower right.
CORNERS: tuple[RGB, ...] = ((192, 48, 48), (48, 160, 48), (48, 64, 192), (192, 176, 64))
# A level above what players are sure to take, so that a source has to be encoded; and a common one.
ENCODED = ("-level:v", "5.1")
COPYABLE = ("-g", "50", "-level:v", "4")
X264 = ("-c:v", "libx264", "-preset", "ultrafast", "-g", "999", "-bf", "2", *ENCODED)
X265 = ("-c:v", "libx265", "-preset", "ultrafast", "-tag:v", "hvc1")
X265 += ("-x265-params", "log-level=error")
BT709_TAGS = "setparams=colorspace=bt709:color_primaries=bt709:color_trc=bt709:range=tv"


def card(
    *,
    size: str = SIZE,
    rate: str = "25",
    duration_s: float = DURATION_S,
    flashes_s: Sequence[float] = FLASHES_S,
    flash_s: float = FLASH_S,
) -> str:
    """The card in RGB, as a lavfi source."""
    places = [(x, y) for y in ("0", "ih/2") for x in ("0", "iw/2")]
    quarters = [_box(x, y, "iw/2", "ih/2", c) for (x, y), c in zip(places, CORNERS, strict=True)]
    centre = ("iw*3/8", "ih*3/8", "iw/4", "ih/4")
    lit = _during(flashes_s, flash_s)
    return ",".join(
        [
            f"color=c=black:s={size}:r={rate}:d={duration_s},format=gbrp",
            *quarters,
            _box(*centre, (0, 0, 0)),
            f"{_box(*centre, (255, 255, 255))}:enable='{lit}'",
        ]
    )


def _box(x: str, y: str, width: str, height: str, colour: Sequence[float]) -> str:
    code = "".join(f"{round(part):02x}" for part in colour)
    return f"drawbox=x={x}:y={y}:w={width}:h={height}:c=0x{code}:t=fill"


def _during(instants_s: Sequence[float], length_s: float) -> str:
    # A frame belongs to a flash when it begins in it; the half millisecond is for rounding.
    lit = (f"gte(t,{at - 0.0005})*lt(t,{at + length_s - 0.0005})" for at in instants_s)
    return "+".join(lit) or "0"


def as_yuv(pix_fmt: str = "yuv420p", *, matrix: str = "bt709", full_range: bool = False) -> str:
    """From RGB to tagged YUV."""
    span = "pc" if full_range else "tv"
    tags = BT709_TAGS if matrix == "bt709" else f"setparams=colorspace={matrix}"
    tags = tags.replace("range=tv", f"range={span}")
    return f"scale=out_color_matrix={matrix}:out_range={span},format={pix_fmt},{tags}"


def as_hdr(transfer: str, matrix: str = "bt2020nc") -> str:
    """A filter that grades for HDR, with white at 203 nits, in ten bits of BT.2020."""
    return (
        f"{as_yuv('yuv444p')},zscale=t=linear:npl=203,format=gbrpf32le,zscale=p=bt2020,"
        f"zscale=t={transfer}:m={matrix}:r=tv:npl=203,format=yuv420p10le"
    )


# Options that keep times of filters to the microsecond.
MICROSECONDS = ("-enc_time_base", "1/1000000", "-video_track_timescale", "1000000")
EXACT_TIMES = ("-fps_mode", "passthrough", *MICROSECONDS)


# Between 15 and 60 a second, of 240, with times that are on no grid.
IRREGULAR = (
    "select='gte(t-prev_selected_t,0.0165+0.045*mod(n*7919,1000)/1000)+eq(n,0)',"
    "settb=1/1000000,setpts='PTS+mod(N*7919,900)'"
)


def jittering(yuv: str, by_us: int) -> str:
    """Frames that come up to so much late, each by another time, as capture has it."""
    return f"{yuv},settb=1/1000000,setpts='PTS+mod(N*7919,{by_us + 1})'"


def beeps(
    *,
    duration_s: float = DURATION_S,
    at_s: Sequence[float] = FLASHES_S,
    rate_hz: int = 48_000,
    layout: str = "mono",
) -> str:
    """Beeps at the flashes, in every channel, as a lavfi source."""
    lit = _during(at_s, FLASH_S)
    tone = f"0.6*sin(2*PI*1000*t)*({lit})"
    count = {"mono": 1, "stereo": 2, "5.1": 6}[layout]
    return f"aevalsrc=exprs='{'|'.join([tone] * count)}':c={layout}:s={rate_hz}:d={duration_s}"


def with_late(make_media: MakeMedia, name: str, source: Path, track: str, late_s: float) -> Path:
    """A copy whose picture (`0:v`) or sound (`0:a`) begins later, by an empty edit."""
    other = "1:a" if track == "0:v" else "1:v"
    inputs = ("-itsoffset", str(late_s), "-i", str(source), "-i", str(source))
    return make_media(name, *inputs, "-map", track, "-map", other, "-c", "copy")


def join_streams(make_media: MakeMedia, *parts: Path, rate: str) -> Path:
    """Put raw H.264 streams one behind the other; later parameter sets come amid the samples."""
    joined = parts[0].with_name("-".join(part.parent.name for part in parts))
    joined.write_bytes(b"".join(part.read_bytes() for part in parts))
    return make_media("joined.mp4", "-r", rate, "-i", str(joined), "-c", "copy")


def lavfi(*sources: str) -> tuple[str, ...]:
    return tuple(argument for source in sources for argument in ("-f", "lavfi", "-i", source))


def make_card(
    make_media: MakeMedia,
    name: str,
    *options: str,
    picture: str | None = None,
    sound: str | None = "",
    yuv: str | None = None,
    codec: Sequence[str] = X264,
) -> Path:
    """The card with beeps in AAC; `sound` None is silent, '' the standard beeps."""
    inputs = lavfi(picture or card(), *([sound or beeps()] if sound is not None else []))
    conversion = as_yuv() if yuv is None else yuv
    filters = ("-vf", conversion) if conversion else ()
    return make_media(name, *inputs, *filters, *codec, *options)
