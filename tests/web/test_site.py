"""A site's own name, accent and logo: on every page, for other sites, and checked at the start."""

import itertools
from pathlib import Path

import pytest
from api_client import Client, app_client
from page_rows import READY, make_row
from page_texts import page
from signed_in import text_of

from portal.config import Config, ConfigError
from portal.config.values import (
    DARK_GROUND,
    LIGHT_GROUND,
    READABLE,
    accent_colours,
    contrast,
    read_colour,
    readable_on_light,
)

LOGO = b'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 8 8"><path d="M0 0h8v8z"/></svg>'
DATABASE = {"DATABASE_URL": "postgresql://portal@db.example/portal"}
PAGES = ("/", "/upload", "/sign-in", "/set-up", "/api/docs", "/nothing-here")


async def test_every_page_and_oembed_have_the_sites_name(config: Config) -> None:
    async with app_client(config, site_name="Films & <Friends>") as client:
        pages = {address: await text_of(await client.get(address)) for address in PAGES}
        video = await make_row(**READY)
        watch = await page(client, f"/videos/{video.id}")
        query = {"url": f"{config.public_url}/videos/{video.id}"}
        answer = await (await client.get("/oembed", query_string=query)).get_json()
    for address, text in pages.items():
        head, _, body = text.partition("</head>")
        assert "· Films &amp; &lt;Friends&gt;</title>" in head, address
        assert '<span class="wordmark__name">Films &amp; &lt;Friends&gt;</span>' in body, address
        assert "· Portal" not in text, address
    assert '<meta property="og:site_name" content="Films &amp; &lt;Friends&gt;">' in watch
    assert answer["provider_name"] == "Films & <Friends>"


async def test_accent_and_logo_are_files_that_browsers_keep(config: Config, tmp_path: Path) -> None:
    path = tmp_path / "logo.svg"
    path.write_bytes(LOGO)
    async with app_client(config, site_accent="#b00020", site_logo=path) as client:
        text = await page(client, "/")
        style = await client.get("/site.css")
        logo = await client.get("/site-logo")
        assert await logo.get_data(as_text=False) == LOGO
        rules = await style.get_data(as_text=True)
    assert 'href="/site.css?v=' in text
    # Beside the name, and as the icon of the tab.
    assert text.count('"/site-logo?v=') == 2
    assert style.content_type == "text/css; charset=utf-8"
    assert logo.content_type == "image/svg+xml"
    assert style.headers["Cache-Control"] == "public, max-age=31536000, immutable"
    light, _, dark = rules.partition("@media (prefers-color-scheme:dark)")
    assert "--accent:#b00020;" in light
    assert "--accent:#" in dark
    assert "#b00020" not in dark


async def test_links_of_the_site_are_on_every_page_and_in_embeds(config: Config) -> None:
    text = "Imprint https://example.org/a?b=1&c=2,Privacy notice   https://example.org/privacy"
    links = Config.from_env(DATABASE | {"SITE_LINKS": text}).site_links
    assert links == (
        ("Imprint", "https://example.org/a?b=1&c=2"),
        ("Privacy notice", "https://example.org/privacy"),
    )
    async with app_client(config, site_links=links) as client:
        for address in PAGES:
            footer = (await text_of(await client.get(address))).partition("<footer")[2]
            assert '<a href="https://example.org/a?b=1&amp;c=2">Imprint</a>' in footer, address
            assert '<a href="https://example.org/privacy">Privacy notice</a>' in footer, address
        for values in (READY, {}):
            video = await make_row(len(values), **values)
            embed = await text_of(await client.get(f"/embed/{video.id}"))
            assert embed.count("https://example.org/privacy") == 1
            watch = (await text_of(await client.get(f"/videos/{video.id}"))).partition("<footer")[0]
            assert "https://example.org/privacy" not in watch


async def test_robots_and_programs_without_a_browser_find_their_files(client: Client) -> None:
    robots = await client.get("/robots.txt")
    assert robots.content_type == "text/plain; charset=utf-8"
    lines = (await text_of(robots)).splitlines()
    assert lines[0] == "User-agent: *"
    assert {"Disallow: /api", "Disallow: /videos/*/downloads"} < set(lines)
    icon = await client.get("/favicon.ico")
    assert icon.status_code == 302
    assert (await client.get(icon.headers["Location"])).mimetype == "image/svg+xml"


async def test_site_without_branding_has_neither(client: Client) -> None:
    for address in ("/site.css", "/site-logo"):
        assert (await client.get(address)).status_code == 404
        assert address not in await page(client, "/")


def test_logo_is_small_enough_for_every_page(tmp_path: Path) -> None:
    path = tmp_path / "logo.png"
    path.write_bytes(bytes(100_001))
    with pytest.raises(ConfigError, match="at most 100,000 bytes"):
        Config.from_env(DATABASE | {"SITE_LOGO": str(path)})


def test_every_accent_is_readable_in_light_and_in_dark() -> None:
    levels = range(0, 256, 51)
    for colour in itertools.product(levels, levels, levels):
        colours = accent_colours(readable_on_light(colour))
        for palette, ground in zip(colours, (LIGHT_GROUND, DARK_GROUND), strict=True):
            accent, strong, soft, on_accent = map(read_colour, palette.values())
            assert contrast(accent, ground) >= READABLE
            assert contrast(strong, soft) >= READABLE
            assert contrast(on_accent, accent) >= READABLE
