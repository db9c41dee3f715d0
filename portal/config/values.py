"""How the texts of variables become values.

What reads a text raises `ValueError` with what follows the variable's name in a message, once for
each fault. The colours that follow from a site's one accent are worked out here, too: contrast is
that of the Web Content Accessibility Guidelines, 1.4.3, 4.5 for text.
"""

import re
from collections.abc import Callable, Mapping
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import Any

from psycopg import ProgrammingError
from psycopg.conninfo import conninfo_to_dict

from portal.text import host_name, http_address, is_site

# In ALLOWED_HOSTS: every name is allowed.
ANY_HOST = "*"
# In EMBED_ORIGINS: every site, or none but the portal's own.
ANY_SITE = "*"
NO_SITE = "none"
# As `database.models` has them, which is above this.
ROLES = ("owner", "admin", "editor", "viewer")
IMAGES = (".svg", ".png", ".webp")
MODEL_FILES = ("model.bin", "tokenizer.json")
# A logo is on every page.
MAX_LOGO_BYTES = 100_000
LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})

WHITE = (255, 255, 255)
BLACK = (0, 0, 0)
# As `static/css/tokens.css` has them: the ground on which an accent has the least contrast.
LIGHT_GROUND = (242, 243, 246)
DARK_GROUND = (27, 31, 41)
READABLE = 4.5
# Lighter than needed, so that a link stands out from the text around it as it does in light.
DARK_CONTRAST = 6.5
STEPS = 100
HEX = re.compile("#[0-9a-fA-F]{6}")

Colour = tuple[int, int, int]


def one_of(choices: tuple[str, ...], make: Callable[[str], Any] = str) -> Callable[[str], Any]:
    return checked(choices.__contains__, f"choose one of {', '.join(choices)}.", make)


def checked(
    is_good: Callable[[str], object],
    remedy: str,
    make: Callable[[str], Any] = str,
    *,
    is_secret: bool = False,
) -> Callable[[str], Any]:
    def parse(text: str) -> Any:
        if not is_good(text):
            raise ValueError(f": {remedy}" if is_secret else f"={text!r}: {remedy}")
        return make(text)

    return parse


def is_database_url(text: str) -> bool:
    try:
        conninfo_to_dict(text)
    except ProgrammingError:
        return False
    return text.startswith(("postgresql://", "postgres://"))


def is_host(text: str) -> bool:
    return is_address(f"http://[{text}]" if ":" in text else f"http://{text}")


def is_address(text: str) -> bool:
    parts = http_address(text)
    return parts is not None and not parts.query


def read_address(text: str) -> str:
    address = text.rstrip("/")
    if address and not is_address(address):
        # One with a user may hold a password, and is not repeated.
        shown = "" if "@" in address else f"={address!r}"
        raise ValueError(f"{shown}: give an address like https://example.org.")
    return address


def read_accent(text: str) -> str:
    """A colour as `#rrggbb` that can be read on light pages."""
    try:
        accent = read_colour(text)
    except ValueError as exc:
        raise ValueError(f"={text!r}: give a colour like #3448e6.") from exc
    readable = readable_on_light(accent)
    if readable != accent:
        nearest = hex_of(readable)
        raise ValueError(f"={text!r}: too light to be read on a light page, {nearest} is not.")
    return hex_of(accent)


def read_logo(text: str) -> Path:
    """The path of an image file."""
    path = Path(text)
    if path.suffix not in IMAGES or not path.is_file():
        raise ValueError(f"={text!r}: give the path of a file that is {', '.join(IMAGES)}.")
    if path.stat().st_size > MAX_LOGO_BYTES:
        raise ValueError(f"={text!r}: give a file of at most {MAX_LOGO_BYTES:,} bytes.")
    return path.resolve()


def read_model(text: str) -> Path:
    """The path of a folder with a model. Without its tokenizer the library would download one."""
    path = Path(text)
    if not all((path / name).is_file() for name in MODEL_FILES):
        raise ValueError(f"={text!r}: give a folder that has {' and '.join(MODEL_FILES)}.")
    return path.resolve()


def read_hosts(text: str) -> tuple[str, ...]:
    hosts = [entry.lower().removesuffix(".") for entry in _entries(text)]
    fault = "is no name like portal.example.org."
    return _checked_all(hosts, lambda it: it == ANY_HOST or host_name(it) == it, fault)


def read_sites(text: str) -> tuple[str, ...]:
    if text in (ANY_SITE, NO_SITE):
        return (text,)
    remedy = f"give sites like https://blog.example.org, {ANY_SITE} or {NO_SITE}."
    return _checked_all(_entries(text), is_site, f"is no such site; {remedy}")


def read_origins(text: str) -> tuple[str, ...]:
    fault = "is no origin like https://app.example.org."
    return _checked_all(_entries(text), lambda it: is_site(it) and "*" not in it, fault)


def read_networks(text: str) -> tuple[IPv4Network | IPv6Network, ...]:
    try:
        return tuple(ip_network(entry) for entry in _entries(text))
    except ValueError as exc:
        message = f": give addresses or networks like 10.0.0.0/8, fd00::1 ({exc})."
        raise ValueError(message) from exc


def _entries(text: str) -> list[str]:
    return [entry for part in text.split(",") if (entry := part.strip())]


def _checked_all(entries: list[str], is_good: Callable[[str], bool], fault: str) -> tuple[str, ...]:
    if wrong := [it for it in entries if not is_good(it)]:
        raise ValueError(*(f": {it!r} {fault}" for it in wrong))
    return tuple(entries)


def read_issuer(text: str) -> str:
    parts = http_address(text)
    is_safe = parts and (parts.scheme == "https" or parts.hostname in LOOPBACK)
    if not parts or not is_safe or "@" in parts.netloc or parts.query or parts.fragment:
        shown = "" if "@" in text else f"={text!r}"
        raise ValueError(f"{shown}: give the provider's https address, as it names itself.")
    # As it is: it is compared character by character, a slash at its end included.
    return text


def read_roles(text: str) -> tuple[tuple[str, str], ...]:
    pairs = [entry.rpartition(":") for entry in _entries(text)]
    wrong = [":".join(it) for it in pairs if not it[0].strip() or it[2].strip() not in ROLES]
    if wrong:
        words = f"is not like staff:editor, with one of {', '.join(ROLES)}."
        raise ValueError(*(f": {it.lstrip(':')!r} {words}" for it in wrong))
    return tuple((value.strip(), role.strip()) for value, _, role in pairs)


def read_domains(text: str) -> tuple[str, ...]:
    domains = [entry.lower().removeprefix("@") for entry in _entries(text)]
    return _checked_all(domains, lambda it: host_name(it) == it, "is no domain like example.org.")


def read_colour(text: str) -> Colour:
    """The red, green and blue of `#rrggbb`, 0 to 255 each. Raises ValueError for anything else."""
    if not HEX.fullmatch(text):
        raise ValueError(text)
    red, green, blue = bytes.fromhex(text[1:])
    return red, green, blue


def hex_of(colour: Colour) -> str:
    """A colour as style sheets have it: `#rrggbb`."""
    return f"#{bytes(colour).hex()}"


def contrast(one: Colour, other: Colour) -> float:
    """The contrast ratio of two colours, 1 to 21."""
    darker, lighter = sorted((_luminance(one), _luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


def readable_on_light(accent: Colour) -> Colour:
    """The accent, darkened as far as text in it on a light page needs."""
    return _until(READABLE, accent, towards=BLACK, ground=LIGHT_GROUND)


def accent_colours(accent: Colour) -> tuple[Mapping[str, str], Mapping[str, str]]:
    """The custom properties of an accent that is readable on light, for light pages and dark."""
    dark = _until(DARK_CONTRAST, accent, towards=WHITE, ground=DARK_GROUND)
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


def _until(wanted: float, colour: Colour, *, towards: Colour, ground: Colour) -> Colour:
    mixed = (_mix(colour, towards, step / STEPS) for step in range(STEPS + 1))
    return next(it for it in mixed if contrast(it, ground) >= wanted)


def _mix(one: Colour, other: Colour, share: float) -> Colour:
    """One colour with a share of another, 0 to 1."""
    red, green, blue = (round(a + (b - a) * share) for a, b in zip(one, other, strict=True))
    return red, green, blue


def _luminance(colour: Colour) -> float:
    red, green, blue = (_linear(it / 255) for it in colour)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _linear(value: float) -> float:
    return value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4
