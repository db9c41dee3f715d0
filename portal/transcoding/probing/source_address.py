"""A source's address as FFmpeg takes it."""

from pathlib import Path


def source_address(source_url: str) -> tuple[str, str]:
    """The address as FFmpeg takes it, and the protocols it may use to read it."""
    if source_url.startswith(("http://", "https://")):
        return source_url, "http,https,tcp,tls"
    if Path(source_url).is_absolute():
        return f"file:{source_url}", "file"
    raise ValueError("a source is an http(s) address or an absolute path")
