"""Guests, who confirm their personal links in a browser.

The rules are in `portal.accounts.guests`. Videos are shared with guests by `features.editing`.
"""

from portal.accounts import guests
from portal.videos.feature import Feature

FEATURE = Feature(name="guests", routes=("pages",), prune=guests.delete_unused)
