"""A source's address as FFmpeg takes it, and how it is to read from there."""

from pathlib import Path

_READ_TIMEOUT_US = 30_000_000
_RECONNECT_MAX_S = 15
_FILE = "file"
# What FFmpeg is told of a source that is read whole, over a network that may break off.
_PERSISTENT = {
    "rw_timeout": str(_READ_TIMEOUT_US),
    "reconnect": "1",
    "reconnect_on_network_error": "1",
    "reconnect_on_http_error": "429,5xx",
    "reconnect_delay_max": str(_RECONNECT_MAX_S),
}


def source_address(source_url: str) -> tuple[str, str]:
    """The address as FFmpeg takes it, and the protocols it may use to read it."""
    if source_url.startswith(("http://", "https://")):
        return source_url, "http,https,tcp,tls"
    if Path(source_url).is_absolute():
        return f"file:{source_url}", _FILE
    raise ValueError("a source is an http(s) address or an absolute path")


def reading_options(protocols: str) -> dict[str, str]:
    """FFmpeg's options for reading a whole source by these protocols, in spite of short faults."""
    return {"protocol_whitelist": protocols, **(_PERSISTENT if protocols != _FILE else {})}
