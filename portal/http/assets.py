"""Templates, the built front end, and the branding of a site: name, accent colour, logo and links.

Templates and front end are read from the repository in a checkout, and from the package in an
installed wheel. ``static/build_frontend.py`` builds and compresses the front end. Addresses contain
a hash of their content, so that browsers may cache them forever.
"""

import json
import mimetypes
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path

from quart import Blueprint, Quart, Response, current_app, redirect, request, url_for
from werkzeug.utils import get_content_type
from werkzeug.wrappers import Response as WerkzeugResponse

from portal.config import Config
from portal.config.values import accent_colours, read_colour
from portal.errors import NotFound
from portal.http.addresses import public_url
from portal.http.auth import Policy, policy
from portal.http.server.headers import OPEN_TO_ALL, conditional_response

blueprint = Blueprint("static_files", __name__)

EXTENSION = "site"
CACHE_CONTROL = "public, max-age=31536000, immutable"
# Names of content codings with the ending of the file that holds it, best first (RFC 7932, 1952).
ENCODINGS = {"br": ".br", "gzip": ".gz"}
# Names of built files. Other names are never looked up, as some are too long for a file system.
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}")
# Instructions for search engines (RFC 9309). Private videos have no address here.
ROBOTS = """User-agent: *
Disallow: /api
Disallow: /hand-in/
Disallow: /p/
Disallow: /sign-in
Disallow: /videos/*/downloads
"""
# Endpoint of the sitemap, in a feature that may be missing.
SITEMAP = "discovery.sitemap"
# Fixed here, because the tables of operating systems differ.
TYPES = {
    ".js": "text/javascript",
    ".json": "application/json",
    ".css": "text/css",
    ".svg": "image/svg+xml",
    ".webp": "image/webp",
    ".woff2": "font/woff2",
}


_PACKAGE = Path(__file__).resolve().parents[1]
_REPOSITORY = _PACKAGE.parent


class FrontEndNotBuilt(RuntimeError):
    """The front end is not built: run `npm ci && npm run build` in static/, or reinstall."""


def templates_dir() -> Path:
    """Return the folder of Jinja templates: the packaged one, or the repository's."""
    return _first_existing(_PACKAGE / "_templates", _REPOSITORY / "templates")


def static_dist_dir() -> Path:
    """Return the folder of the built front end: the packaged one, or the repository's."""
    return _first_existing(_PACKAGE / "_static", _REPOSITORY / "static" / "dist")


def load_manifest(dist: Path) -> Mapping[str, str]:
    """Return the hashed name (app-1A2B3C4D.js) of each built file (app.js) in `dist`.

    Raises `FrontEndNotBuilt` without a complete build, whose manifest is written last.
    """
    try:
        names: dict[str, str] = json.loads((dist / "manifest.json").read_text(encoding="utf-8"))
    except FileNotFoundError as exc:
        raise FrontEndNotBuilt(FrontEndNotBuilt.__doc__) from exc
    return names


def load_text_addresses(dist: Path) -> Mapping[str, str]:
    """Return the address of the texts of scripts by language, with `*` for the script."""
    names: dict[str, str] = json.loads((dist / "messages.json").read_text(encoding="utf-8"))
    return {language: f"/static/{name}" for language, name in names.items()}


def _first_existing(packaged: Path, checked_out: Path) -> Path:
    return packaged if packaged.is_dir() else checked_out


@blueprint.after_request
async def open_to_frames(response: Response) -> Response:
    """Let sandboxed frames, whose origin is that of no site, load what their player needs."""
    response.headers.update(OPEN_TO_ALL)
    return response


@blueprint.get("/static/<name>")
@policy(Policy.ANYONE)
async def static_file(name: str) -> Response:
    """Return a built file in the best encoding that the browser accepts."""
    if not NAME.fullmatch(name) or name.endswith(tuple(ENCODINGS.values())):
        raise NotFound
    encoding = _encoding(static_dist_dir() / name)
    response = await conditional_response(
        _built_file(static_dist_dir() / (name + ENCODINGS.get(encoding, ""))),
        content_type=get_content_type(file_type(name), "utf-8"),
        cache_control=CACHE_CONTROL,
    )
    if encoding:
        response.headers["Content-Encoding"] = encoding
    response.headers["Vary"] = "Accept-Encoding"
    return response


def _encoding(path: Path) -> str:
    """Return the best encoding that the file has and the browser accepts; empty for none."""
    accepted = request.accept_encodings
    for name, ending in ENCODINGS.items():
        if accepted[name] > 0 and path.with_name(path.name + ending).exists():
            return name
    return ""


# Cached, because pages request about thirty of these small files at once.
@lru_cache(maxsize=512)
def _built_file(path: Path) -> bytes:
    if not path.is_file():
        raise NotFound
    return path.read_bytes()


def file_type(name: str) -> str:
    """Return the media type of a file by its name, the same on every machine."""
    guessed, _ = mimetypes.guess_type(name)
    return TYPES.get(Path(name).suffix) or guessed or "application/octet-stream"


@dataclass(frozen=True, slots=True)
class Site:
    """Branding of a site; addresses are empty where the default design is used."""

    name: str
    links: tuple[tuple[str, str], ...]
    style: str
    logo: bytes
    logo_type: str
    style_url: str
    logo_url: str


def install_site(app: Quart, config: Config) -> None:
    """Provide the branding of the settings to templates, as `site`, and to this module's views.

    Addresses contain a hash of their content.
    """
    style = _accent_style(config.site_accent) if config.site_accent else ""
    path = config.site_logo
    logo = path.read_bytes() if path else b""
    app.extensions[EXTENSION] = app.jinja_env.globals["site"] = Site(
        name=config.site_name,
        links=config.site_links,
        style=style,
        logo=logo,
        logo_type=file_type(path.name) if path else "",
        style_url=f"/site.css?v={_digest(style.encode())}" if style else "",
        logo_url=f"/site-logo?v={_digest(logo)}" if logo else "",
    )


def _accent_style(accent: str) -> str:
    """Return the style sheet of an accent, `#rrggbb`, that overrides `static/css/tokens.css`."""
    light, dark = (
        "".join(f"{name}:{value};" for name, value in colours.items())
        for colours in accent_colours(read_colour(accent))
    )
    return f":root{{{light}}}@media (prefers-color-scheme:dark){{:root{{{dark}}}}}\n"


@blueprint.get("/site.css")
@policy(Policy.ANYONE)
async def style() -> Response:
    """Return the style sheet of the site's accent."""
    return _cacheable(_site().style.encode(), "text/css; charset=utf-8")


@blueprint.get("/site-logo")
@policy(Policy.ANYONE)
async def logo() -> Response:
    """Return the site's logo."""
    site = _site()
    return _cacheable(site.logo, site.logo_type)


@blueprint.get("/favicon.ico")
@policy(Policy.ANYONE)
async def favicon() -> WerkzeugResponse:
    """Redirect programs that read no page to the icon of all pages."""
    manifest = load_manifest(static_dist_dir())
    return redirect(_site().logo_url or f"/static/{manifest['favicon.svg']}")


@blueprint.get("/robots.txt")
@policy(Policy.ANYONE)
async def robots() -> Response:
    """Return the instructions for search engines, with the address of the sitemap."""
    text = ROBOTS
    if SITEMAP in current_app.view_functions:
        text += f"\nSitemap: {public_url(url_for(SITEMAP))}\n"
    return await conditional_response(text, content_type="text/plain; charset=utf-8")


def _site() -> Site:
    site: Site = current_app.extensions[EXTENSION]
    return site


def _cacheable(body: bytes, content_type: str) -> Response:
    if not body:
        raise NotFound
    headers = {"Cache-Control": CACHE_CONTROL}
    return Response(body, content_type=content_type, headers=headers)


def _digest(data: bytes) -> str:
    return blake2b(data, digest_size=6).hexdigest()
