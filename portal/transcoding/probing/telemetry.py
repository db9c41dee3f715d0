"""Recognise telemetry among the text of a film: readings of the sensors of a camera or vehicle.

Drones, dashcams and action cameras store position, height and exposure as subtitles, in many forms
without a standard. Published as captions, these would tell viewers where people live. So no form is
listed here: text is telemetry if most cues are little but numbers with names or units. Pure.

Repetitions are bounded, because hostile text could make unbounded ones slow.
"""

import re
from collections.abc import Sequence

# Limits on the cues that are examined, and on the characters of each.
_EXAMINED_CUES = 1000
_EXAMINED_CHARS = 500
_DEVICE_NAME = re.compile(
    r"dji|gopro|telemetr|nmea|gpmd|rtmd|camm\b|\bgps\b|\bsensors?\b|meta\s?data", re.IGNORECASE
)
_TAG = re.compile(r"<[^<>]*>")
_NUMBER = r"[-+]?\d{1,12}(?:[.,/:]\d{1,12}){0,4}"
_SPEED = r"(?:km/h|kmh|mph|m/s|kn|kts)\b"
_UNIT = rf"(?:{_SPEED}|(?:[km]?m|ft|h?pa|[km]?v|ms|hz|k|°\w?)\b|[°%])"
_SENSOR = (
    r"gps|[a-z_]{0,9}lat(?:itude)?|[a-z_]{0,9}lon(?:g|gt?itude)?|[a-z_]{0,9}alt(?:itude)?|height"
    r"|barometer|pressure|speed|heading|bearing|course|[a-z_]{0,9}yaw|pitch|roll|compass"
    r"|sat(?:s|ellites)?|hdop|acc(?:el)?|gyro|mag|iso|ss|shutter|ev|fnum|aperture|ct|focal_len"
    r"|batt(?:ery)?|voltage|temp(?:erature)?|framecnt|srtcnt|difftime|dist(?:ance)?"
)
# Characters between a name and its number, or its direction and number.
_COLON = r"[\"'\s]{0,3}[:：=(]{1,2}[\"'\s]{0,3}"  # noqa: RUF001
_READINGS = (
    # A sentence of a GPS receiver (NMEA 0183).
    r"\$[A-Z]{4,6},[^\s$]*",
    # A date with a time.
    r"\d{4}[-./:]\d\d[-./:]\d\d[T\s,]{1,3}\d\d:\d\d(?::\d\d)?(?:[.,:]\d{1,9}){0,2}",
    # A sensor with a number.
    rf"(?<![^\W_])(?:(?:{_SENSOR})\b(?:{_COLON}|\s?)|home\s?\()(?:[fNSEW]:?\s?/?)?{_NUMBER}"
    rf"(?:\s?{_UNIT})?",
    # Any name, or an initial, with a number and a unit.
    rf"(?<![\w.])(?:[^\W\d][\w.]{{0,30}}{_COLON}|[A-Z](?:\.[A-Z])?\s?){_NUMBER}\s?{_UNIT}",
    # A speed, an aperture, coordinates.
    rf"(?<![\d.,]){_NUMBER}\s?{_SPEED}",
    r"\bf/\d+(?:\.\d+)?",
    r"[-+]?\d{1,3}[.,]\d{4,12}[^\w+-]{0,3}[-+]?\d{1,3}[.,]\d{4,12}",
    r"\b[NSEW]\s?\d{1,3}\.\d+",
    r"\d{1,3}\s?°\s?\d{1,2}(?:[.,]\d+)?\s?['′’]",  # noqa: RUF001
)
_READING = re.compile("|".join(_READINGS), re.IGNORECASE)
# A name with a number and no unit, which may also be a score, so fewer of these are no reading.
_PAIR = re.compile(rf"(?<![\w.])[^\W\d][\w.]{{0,30}}{_COLON}{_NUMBER}")
_MIN_PAIRS = 3
_WORD = re.compile(r"[^\W\d_]{3,}")


def is_device_name(name: str) -> bool:
    """Return whether a text track has a name that devices give to telemetry."""
    return _DEVICE_NAME.search(name) is not None


def is_telemetry(cues: Sequence[str]) -> bool:
    """Return whether most of these texts are readings of sensors; empty texts don't count."""
    step = len(cues) // _EXAMINED_CUES + 1
    plain = (_TAG.sub(" ", text[:_EXAMINED_CHARS]).strip() for text in cues[::step])
    are_readings = [_is_reading(text) for text in plain if text]
    return 2 * sum(are_readings) > len(are_readings)


def _is_reading(text: str) -> bool:
    """Return whether a text has readings, and no more words than these."""
    without_readings, readings = _READING.subn(" ", text)
    prose, pairs = _PAIR.subn(" ", without_readings)
    has_any = readings > 0 or pairs >= _MIN_PAIRS
    return has_any and len(_WORD.findall(prose)) <= readings + pairs
