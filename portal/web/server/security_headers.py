"""Response headers that keep browsers strict: one policy for every answer.

The player page for other sites differs in one thing: it may be framed. What else others may load
says so itself, by a Cross-Origin-Resource-Policy of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlsplit

from portal.config import Config


def security_headers(
    config: Config, storage_origin: str, *, frameable: bool = False
) -> Mapping[str, str]:
    """The headers of every response, made once; with `frameable` those of what others may frame.

    Browsers PUT uploads to storage and read segments and posters from it, or from the CDN.
    """
    origins = (storage_origin, _origin(config.public_url), _origin(config.playback_base_url))
    media = " ".join(dict.fromkeys(origin for origin in origins if origin))
    policy = {
        "default-src": "'self'",
        "script-src": "'self'",
        "style-src": "'self'",
        "img-src": f"'self' data: {media}",
        "media-src": f"'self' blob: {media}",
        "connect-src": f"'self' {media}",
        "object-src": "'none'",
        "base-uri": "'none'",
        "form-action": "'self'",
        "frame-ancestors": "*" if frameable else "'none'",
    }
    # The older header knows no way to say "anyone".
    framing = {} if frameable else {"X-Frame-Options": "DENY"}
    return {
        "Content-Security-Policy": "; ".join(f"{name} {value}" for name, value in policy.items()),
        "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": "strict-origin-when-cross-origin",
        "Cross-Origin-Opener-Policy": "same-origin",
        "Cross-Origin-Resource-Policy": "cross-origin" if frameable else "same-origin",
        "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
        **framing,
        **_transport_security(config),
    }


def _transport_security(config: Config) -> dict[str, str]:
    if config.public_url.startswith("https://"):
        return {"Strict-Transport-Security": "max-age=31536000"}
    return {}


def _origin(address: str) -> str:
    parts = urlsplit(address)
    return f"{parts.scheme}://{parts.netloc}" if parts.netloc else ""
