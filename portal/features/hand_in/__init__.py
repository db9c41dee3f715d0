"""Hand-in links, by which people without an account upload videos. Begin with `service`.

A link has a secret address. Its maker owns the videos, which are private. The uploads API lets a
browser continue the uploads that it began by a link (`http.auth.require_own_upload`).
"""

from portal.videos.feature import Feature

FEATURE = Feature(name="hand_in", routes=("pages",), panels=("service",))
