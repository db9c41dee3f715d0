"""What the upload page says of this portal's limits: for its scripts, and in words. Pure."""

from dataclasses import dataclass

from portal.config import Config
from portal.text import duration_in_words
from portal.web.pages import formatting

FORMATS = "MP4 or QuickTime: .mp4, .m4v or .mov"


@dataclass(frozen=True, slots=True)
class LimitsView:
    """What a file may measure; 0 means no limit. `lines` say it below the drop zone."""

    size_bytes: int
    duration_s: int
    pixels: int
    lines: tuple[str, ...]


def limits_view(config: Config) -> LimitsView:
    """The limits of this portal, as it is set up."""
    most = [formatting.size(config.max_source_bytes).words] if config.max_source_bytes else []
    if config.max_source_duration_s:
        most.append(duration_in_words(config.max_source_duration_s))
    lines = (FORMATS, f"Up to {' and '.join(most)} each") if most else (FORMATS,)
    return LimitsView(
        size_bytes=config.max_source_bytes,
        duration_s=config.max_source_duration_s,
        pixels=config.max_source_pixels,
        lines=lines,
    )
