"""The built scripts, styles and images, compressed beforehand by the build.

Their names carry a hash of their content, so that browsers may keep them for ever.
"""

import mimetypes
import re
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from pathlib import Path

from quart import Blueprint, Response, request

from portal.errors import NotFound
from portal.web.access import Policy, policy
from portal.web.assets import static_dist_dir

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


@dataclass(frozen=True)
class BuiltFile:
    """A file as it is sent; `encoding` is empty for a plain one."""

    content: bytes
    encoding: str
    etag: str


@blueprint.get("/static/<name>")
@policy(Policy.ANYONE)
async def static_file(name: str) -> Response:
    """A built file, in the best encoding that the browser takes."""
    if not NAME.fullmatch(name) or name.endswith(tuple(ENCODINGS.values())):
        raise NotFound
    accepted = request.accept_encodings
    file = built_file(
        static_dist_dir() / name, tuple(coding for coding in ENCODINGS if accepted[coding] > 0)
    )
    response = Response(file.content, mimetype=file_type(name))
    if file.encoding:
        response.headers["Content-Encoding"] = file.encoding
    response.headers["Vary"] = "Accept-Encoding"
    response.headers["Cache-Control"] = f"public, max-age={MAX_AGE_S}, immutable"
    response.set_etag(file.etag)
    return await response.make_conditional(
        request, accept_ranges=True, complete_length=len(file.content)
    )


# Kept, for they are few, small and never change: a page asks for thirty of them at once.
@lru_cache(maxsize=512)
def built_file(path: Path, accepted: tuple[str, ...]) -> BuiltFile:
    """What is sent to who takes these encodings, best first; NotFound where there is no file."""
    for encoding in accepted:
        packed = path.with_name(path.name + ENCODINGS[encoding])
        if packed.exists():
            return _read(packed, encoding)
    if not path.is_file():
        raise NotFound
    return _read(path, encoding="")


def _read(path: Path, encoding: str) -> BuiltFile:
    content = path.read_bytes()
    return BuiltFile(content, encoding, etag=sha256(content).hexdigest()[:16])


def file_type(name: str) -> str:
    """The media type of a file by its name, the same on every machine."""
    guessed, _ = mimetypes.guess_type(name)
    return TYPES.get(Path(name).suffix) or guessed or "application/octet-stream"
