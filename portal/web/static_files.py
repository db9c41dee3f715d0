"""The built scripts, styles and images, compressed beforehand by the build.

Their names carry a hash of their content, so that browsers may keep them for ever.
"""

import mimetypes
import re
from functools import lru_cache
from pathlib import Path

from quart import Blueprint, Response, request
from werkzeug.utils import get_content_type

from portal.errors import NotFound
from portal.web.assets import static_dist_dir
from portal.web.auth import Policy, policy
from portal.web.body_cache import CachedBody, cached_body

blueprint = Blueprint("static_files", __name__)

MAX_AGE_S = 31_536_000
# Names of content codings with the ending of the file that holds it, best first (RFC 7932, 1952).
ENCODINGS = {"br": ".br", "gzip": ".gz"}
# What the build makes; other names, some too long for any file system, are not looked for.
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}")
# Told here and not by the machine's own tables, which differ.
TYPES = {
    ".js": "text/javascript",
    ".css": "text/css",
    ".svg": "image/svg+xml",
    ".webp": "image/webp",
    ".woff2": "font/woff2",
}


@blueprint.get("/static/<name>")
@policy(Policy.ANYONE)
async def static_file(name: str) -> Response:
    """A built file, in the best encoding that the browser takes."""
    if not NAME.fullmatch(name) or name.endswith(tuple(ENCODINGS.values())):
        raise NotFound
    encoding = _encoding(static_dist_dir() / name)
    file = _built_file(static_dist_dir() / (name + ENCODINGS.get(encoding, "")))
    response = await file.answer(
        content_type=get_content_type(file_type(name), "utf-8"),
        cache_control=f"public, max-age={MAX_AGE_S}, immutable",
        accept_ranges=True,
    )
    if encoding:
        response.headers["Content-Encoding"] = encoding
    response.headers["Vary"] = "Accept-Encoding"
    return response


def _encoding(path: Path) -> str:
    """The first coding that both sides have, or none."""
    accepted = request.accept_encodings
    for name, ending in ENCODINGS.items():
        if accepted[name] > 0 and path.with_name(path.name + ending).exists():
            return name
    return ""


# Kept, for they are few, small and never change: a page asks for thirty of them at once.
@lru_cache(maxsize=512)
def _built_file(path: Path) -> CachedBody:
    if not path.is_file():
        raise NotFound
    return cached_body(path.read_bytes())


def file_type(name: str) -> str:
    """The media type of a file by its name, the same on every machine."""
    guessed, _ = mimetypes.guess_type(name)
    return TYPES.get(Path(name).suffix) or guessed or "application/octet-stream"
