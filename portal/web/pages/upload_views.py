"""What the upload page says of this portal's limits. Pure."""

from portal.config import Config
from portal.text import duration_in_words
from portal.web.pages import formatting

FORMATS = "MP4 or QuickTime: .mp4, .m4v or .mov"


def limits_in_words(config: Config) -> tuple[str, ...]:
    """The lines below the drop zone."""
    most = [formatting.size(config.max_source_bytes).words] if config.max_source_bytes else []
    if config.max_source_duration_s:
        most.append(duration_in_words(config.max_source_duration_s))
    return (FORMATS, f"Up to {' and '.join(most)} each") if most else (FORMATS,)
