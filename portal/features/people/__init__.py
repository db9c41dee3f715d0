"""People: signing in, their own account, and accounts that admins manage.

The rules are in `portal.accounts`.
"""

from portal.videos.feature import Feature

FEATURE = Feature(name="people", routes=("api", "account", "pages", "signing_in"))
