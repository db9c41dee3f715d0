"""What a site looks like beyond the portal's own design: its name, its accent and its logo."""

from dataclasses import dataclass
from hashlib import blake2b

from quart import Blueprint, Quart, Response, current_app

from portal.config import Config
from portal.config.accent import accent_colours, read_colour
from portal.errors import NotFound
from portal.web.auth import Policy, policy
from portal.web.static_files import MAX_AGE_S, file_type

blueprint = Blueprint("site", __name__)

EXTENSION = "site"


@dataclass(frozen=True, slots=True)
class Site:
    """What templates are given; addresses are empty where the portal's own design is used."""

    name: str
    style: str
    logo: bytes
    logo_type: str
    style_url: str
    logo_url: str


def install_site(app: Quart, config: Config) -> None:
    """Give the site to templates, as `site`, and to the views here."""
    site = site_of(config)
    app.extensions[EXTENSION] = app.jinja_env.globals["site"] = site


def site_of(config: Config) -> Site:
    """The site that the settings describe. Addresses carry a hash of what they lead to."""
    style = accent_style(config.site_accent) if config.site_accent else ""
    path = config.site_logo
    logo = path.read_bytes() if path else b""
    return Site(
        name=config.site_name,
        style=style,
        logo=logo,
        logo_type=file_type(path.name) if path else "",
        style_url=f"/site.css?v={_digest(style.encode())}" if style else "",
        logo_url=f"/site-logo?v={_digest(logo)}" if logo else "",
    )


def accent_style(accent: str) -> str:
    """The style sheet of an accent, `#rrggbb`, after `static/css/tokens.css`."""
    light, dark = (
        "".join(f"{name}:{value};" for name, value in colours.items())
        for colours in accent_colours(read_colour(accent))
    )
    return f":root{{{light}}}@media (prefers-color-scheme:dark){{:root{{{dark}}}}}\n"


@blueprint.get("/site.css")
@policy(Policy.ANYONE)
async def style() -> Response:
    """The site's accent."""
    return _kept(_site().style.encode(), "text/css; charset=utf-8")


@blueprint.get("/site-logo")
@policy(Policy.ANYONE)
async def logo() -> Response:
    """The site's logo."""
    site = _site()
    return _kept(site.logo, site.logo_type)


def _site() -> Site:
    site: Site = current_app.extensions[EXTENSION]
    return site


def _kept(body: bytes, content_type: str) -> Response:
    if not body:
        raise NotFound
    headers = {"Cache-Control": f"public, max-age={MAX_AGE_S}, immutable"}
    return Response(body, content_type=content_type, headers=headers)


def _digest(data: bytes) -> str:
    return blake2b(data, digest_size=6).hexdigest()
