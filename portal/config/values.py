"""Parsers of variables, and the colours that follow from a site's accent.

A parser raises `ValueError` with a message for each fault, to which the variable's name is
prepended. Contrast is that of the Web Content Accessibility Guidelines, 1.4.3: 4.5 for text.
"""

import re
from collections.abc import Callable, Mapping
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import Any

from psycopg import ProgrammingError
from psycopg.conninfo import conninfo_to_dict

from portal.text import host_name, http_address, is_site

# Value of ALLOWED_HOSTS that allows every name.
ANY_HOST = "*"
# Values of EMBED_ORIGINS for every site, and for the portal's own pages only.
ANY_SITE = "*"
NO_SITE = "none"
# Copies of `database.account_models.Role`, which is on a higher floor.
ROLES = ("owner", "admin", "editor", "contributor", "viewer")
IMAGES = (".svg", ".png", ".webp")
MODEL_FILES = ("model.bin", "tokenizer.json")
MAX_LINKS = 8
# Fits in the menu of a small player.
MAX_LINK_NAME = 40
# Every page loads the logo.
MAX_LOGO_BYTES = 100_000
LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})

WHITE = (255, 255, 255)
BLACK = (0, 0, 0)
# Backgrounds of `static/css/tokens.css` on which an accent has the least contrast.
LIGHT_GROUND = (242, 243, 246)
DARK_GROUND = (27, 31, 41)
READABLE = 4.5
# Higher than readable, so that links on dark pages differ from the text as on light pages.
DARK_CONTRAST = 6.5
STEPS = 100
NUMBER = re.compile(r"-\d+(\.\d+)?")
HEX = re.compile("#[0-9a-fA-F]{6}")

Colour = tuple[int, int, int]


def one_of(choices: tuple[str, ...], make: Callable[[str], Any] = str) -> Callable[[str], Any]:
    """Return a parser for a choice of texts; `make` converts them."""
    return checked(choices.__contains__, f"choose one of {', '.join(choices)}.", make)


def checked(
    is_good: Callable[[str], object],
    remedy: str,
    make: Callable[[str], Any] = str,
    *,
    is_secret: bool = False,
) -> Callable[[str], Any]:
    """Return a parser that checks a text and converts it; messages don't repeat secrets."""

    def parse(text: str) -> Any:
        if not is_good(text):
            raise ValueError(f": {remedy}" if is_secret else f"={text!r}: {remedy}")
        return make(text)

    return parse


def is_database_url(text: str) -> bool:
    """Return whether libpq accepts a text as a URL."""
    try:
        conninfo_to_dict(text)
    except ProgrammingError:
        return False
    return text.startswith(("postgresql://", "postgres://"))


def is_language(text: str) -> bool:
    """Return whether a text is the code of a language, of two or three letters (ISO 639)."""
    return re.fullmatch("[a-z]{2,3}", text) is not None


def is_host(text: str) -> bool:
    """Return whether a text is an IP address or a host name."""
    return is_address(f"http://[{text}]" if ":" in text else f"http://{text}")


def is_address(text: str) -> bool:
    """Return whether a text is an http or https URL without a query."""
    parts = http_address(text)
    return parts is not None and not parts.query


def read_address(text: str) -> str:
    """Parse a URL; return it without trailing slashes."""
    address = text.rstrip("/")
    if address and not is_address(address):
        raise ValueError(f"{_repeat(address)}: use a URL like https://example.org.")
    return address


def read_accent(text: str) -> str:
    """Parse a colour `#rrggbb` that is readable on light pages."""
    try:
        accent = read_colour(text)
    except ValueError as exc:
        raise ValueError(f"={text!r}: use a colour like #3448e6.") from exc
    readable = readable_on_light(accent)
    if readable != accent:
        darker = hex_of(readable)
        raise ValueError(f"={text!r}: too light to read on light pages, use {darker} or darker.")
    return hex_of(accent)


def read_logo(text: str) -> Path:
    """Parse the path of an image file."""
    path = Path(text)
    if path.suffix not in IMAGES or not path.is_file():
        raise ValueError(f"={text!r}: use the path of an image file ({', '.join(IMAGES)}).")
    if path.stat().st_size > MAX_LOGO_BYTES:
        raise ValueError(f"={text!r}: use a file of at most {MAX_LOGO_BYTES:,} bytes.")
    return path.resolve()


def read_model(text: str) -> Path:
    """Parse the path of a model's folder; the library would download a missing tokenizer."""
    path = Path(text)
    if not all((path / name).is_file() for name in MODEL_FILES):
        raise ValueError(f"={text!r}: use a folder that contains {' and '.join(MODEL_FILES)}.")
    return path.resolve()


def is_loudness(text: str) -> bool:
    """Return whether a text is a loudness in LUFS, or off."""
    return text == "off" or (NUMBER.fullmatch(text) is not None and -31 <= float(text) <= -5)


def read_hosts(text: str) -> tuple[str, ...]:
    """Parse host names, separated by commas."""
    hosts = [entry.lower().removesuffix(".") for entry in _entries(text)]
    remedy = "use host names like portal.example.org."
    return _check_all(hosts, lambda host: host == ANY_HOST or host_name(host) == host, remedy)


def read_sites(text: str) -> tuple[str, ...]:
    """Parse sites with optional wildcards, separated by commas."""
    if text in (ANY_SITE, NO_SITE):
        return (text,)
    remedy = f"use sites like https://blog.example.org, {ANY_SITE} or {NO_SITE}."
    return _check_all(_entries(text), is_site, remedy)


def read_origins(text: str) -> tuple[str, ...]:
    """Parse origins, separated by commas."""
    remedy = "use origins like https://app.example.org."
    return _check_all(_entries(text), lambda site: is_site(site) and "*" not in site, remedy)


def read_links(text: str) -> tuple[tuple[str, str], ...]:
    """Parse links, separated by commas: each is a name, a space and a URL. Raises ValueError."""
    entries = _entries(text)
    if len(entries) > MAX_LINKS:
        raise ValueError(f": use at most {MAX_LINKS} links.")
    remedy = (
        f"use names of at most {MAX_LINK_NAME} characters with URLs: Imprint https://example.org."
    )
    links = (entry.rpartition(" ") for entry in _check_all(entries, _is_link, remedy))
    return tuple((name.strip(), address) for name, _, address in links)


def read_networks(text: str) -> tuple[IPv4Network | IPv6Network, ...]:
    """Parse IP addresses and networks, separated by commas."""
    try:
        return tuple(ip_network(entry) for entry in _entries(text))
    except ValueError as exc:
        message = f": use IP addresses or networks like 10.0.0.0/8, fd00::1 ({exc})."
        raise ValueError(message) from exc


def _is_link(entry: str) -> bool:
    name, _, address = entry.rpartition(" ")
    is_name = bool(name.strip()) and name.isprintable() and len(name) <= MAX_LINK_NAME
    return is_name and http_address(address) is not None


def _entries(text: str) -> list[str]:
    return [entry for part in text.split(",") if (entry := part.strip())]


def _check_all(entries: list[str], is_good: Callable[[str], bool], remedy: str) -> tuple[str, ...]:
    if invalid := [entry for entry in entries if not is_good(entry)]:
        raise ValueError(*(f": {entry!r} is invalid; {remedy}" for entry in invalid))
    return tuple(entries)


def _repeat(address: str) -> str:
    """Return the part of a message that repeats a URL, empty if it may hold a password."""
    return "" if "@" in address else f"={address!r}"


def read_issuer(text: str) -> str:
    """Parse the issuer of a provider, which is kept character by character."""
    parts = http_address(text)
    is_safe = parts and (parts.scheme == "https" or parts.hostname in LOOPBACK)
    if not parts or not is_safe or "@" in parts.netloc or parts.query or parts.fragment:
        raise ValueError(f"{_repeat(text)}: use the https URL that the provider has as its issuer.")
    return text


def read_roles(text: str) -> tuple[tuple[str, str], ...]:
    """Parse pairs of a group and a role, separated by commas."""
    entries = _check_all(
        _entries(text),
        lambda entry: (
            entry.rpartition(":")[2].strip() in ROLES and bool(entry.rpartition(":")[0].strip())
        ),
        f"use pairs like staff:editor, with one of {', '.join(ROLES)}.",
    )
    pairs = [entry.rpartition(":") for entry in entries]
    return tuple((group.strip(), role.strip()) for group, _, role in pairs)


def read_domains(text: str) -> tuple[str, ...]:
    """Parse domains of email addresses, separated by commas."""
    domains = [entry.lower().removeprefix("@") for entry in _entries(text)]
    remedy = "use domains like example.org."
    return _check_all(domains, lambda domain: host_name(domain) == domain, remedy)


def read_colour(text: str) -> Colour:
    """Return the red, green and blue of `#rrggbb`, each 0 to 255. Raises `ValueError`."""
    if not HEX.fullmatch(text):
        raise ValueError(text)
    red, green, blue = bytes.fromhex(text[1:])
    return red, green, blue


def hex_of(colour: Colour) -> str:
    """Return a colour as `#rrggbb`."""
    return f"#{bytes(colour).hex()}"


def contrast(first: Colour, second: Colour) -> float:
    """Return the contrast ratio of two colours, 1 to 21."""
    darker, lighter = sorted((_luminance(first), _luminance(second)))
    return (lighter + 0.05) / (darker + 0.05)


def readable_on_light(accent: Colour) -> Colour:
    """Return an accent, darkened until it is readable as text on light pages."""
    return _mix_until(READABLE, accent, towards=BLACK, ground=LIGHT_GROUND)


def accent_colours(accent: Colour) -> tuple[Mapping[str, str], Mapping[str, str]]:
    """Return the CSS custom properties of a readable accent, for light and for dark pages."""
    dark = _mix_until(DARK_CONTRAST, accent, towards=WHITE, ground=DARK_GROUND)
    on_light = _properties(
        accent, strong=_mix(accent, BLACK, 0.2), soft=_mix(accent, WHITE, 0.9), on=WHITE
    )
    on_dark = _properties(
        dark,
        strong=_mix(dark, WHITE, 0.3),
        soft=_mix(accent, DARK_GROUND, 0.8),
        on=_mix(accent, BLACK, 0.85),
    )
    return on_light, on_dark


def _properties(accent: Colour, *, strong: Colour, soft: Colour, on: Colour) -> Mapping[str, str]:
    named = {"accent": accent, "accent-strong": strong, "accent-soft": soft, "on-accent": on}
    return {f"--{name}": hex_of(colour) for name, colour in named.items()}


def _mix_until(ratio: float, colour: Colour, *, towards: Colour, ground: Colour) -> Colour:
    """Return the first mixture of two colours that has a contrast ratio on a background."""
    mixtures = (_mix(colour, towards, step / STEPS) for step in range(STEPS + 1))
    return next(mixture for mixture in mixtures if contrast(mixture, ground) >= ratio)


def _mix(colour: Colour, added: Colour, share: float) -> Colour:
    """Return a colour with a share (0 to 1) of another one."""
    red, green, blue = (round(a + (b - a) * share) for a, b in zip(colour, added, strict=True))
    return red, green, blue


def _luminance(colour: Colour) -> float:
    red, green, blue = (_linear(channel / 255) for channel in colour)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _linear(value: float) -> float:
    return value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4
