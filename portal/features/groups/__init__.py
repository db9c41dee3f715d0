"""Groups of accounts, which admins manage on pages and programs by the API.

The rules are in `portal.accounts.groups`.
"""

from portal.videos.feature import Feature

FEATURE = Feature(name="groups", routes=("api", "pages"))
