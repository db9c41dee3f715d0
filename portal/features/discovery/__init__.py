"""Discovery: facts about public videos for search engines, in the watch page and in a sitemap.

Only videos that anyone finds in the library are described. Begin with `pages`.
"""

from portal.videos.feature import Feature

FEATURE = Feature(name="discovery", routes=("pages",))
