"""The colours that follow from a site's one accent, readable in light and in dark. Pure.

Contrast is that of the Web Content Accessibility Guidelines, 1.4.3: 4.5 for text.
"""

import re
from collections.abc import Mapping

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
