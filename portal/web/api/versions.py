"""The version of something that a change was made to, as If-Match names it (RFC 9110, 13.1.1)."""

from quart import request

from portal.errors import VersionRequired

# No version has this name.
OUTDATED = "outdated"


def version_read(newest: str) -> str | None:
    """The version that the request names: the newest, `OUTDATED`, or None for whatever is there.

    Another version than the newest is no conflict yet: perhaps only an answer was lost, and what is
    sent, once it is known to be right, is what is recorded. Raises `VersionRequired`.
    """
    if "If-Match" not in request.headers:
        raise VersionRequired
    tags = request.if_match
    if tags.star_tag:
        return None
    return newest if tags.contains(newest) else OUTDATED
