"""Statistics: who watched, how far, and whether it played well.

Players report what they play in the format CMCD version 2 (CTA-5004-B), which `cmcd` reads.
`api` decides which reports count, and `intake` writes these to an inbox. A worker folds the inbox
every few seconds (`folding`): the reports of one page view, video and day become a
`viewers.ViewerDay`, and its change is added to the sums of the video and of the library (`figures`,
`periods`). `reading` returns the sums to pages and the API.

A viewer is a keyed hash of address and user agent, whose key is replaced daily, and the hash of a
session id. With `VIEWER_NAMES=on` editors also see how much each viewer has watched whose name is
known (`named_viewers`). Viewers' days are deleted after `folding.KEEP_VIEWERS_DAYS`, as are names.
Sums stay until their video is deleted; those of the library stay for good. Days are days of UTC.
Only `api`, `pages` and `library_page` know requests and permissions.
"""

from portal.features.statistics import folding, metrics
from portal.videos.feature import Feature

FEATURE = Feature(
    name="statistics",
    routes=("api", "pages", "library_page"),
    prune=folding.delete_old_viewers,
    enforce_settings=folding.delete_names,
    work_beside=folding.fold_forever,
    read_metrics=metrics.read_metrics,
)
