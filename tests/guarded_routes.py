"""The routes of an app with their policies."""

import re
from dataclasses import dataclass
from uuid import UUID, uuid4

from quart import Quart

from portal.http.auth import Policy, declaration_of

# Values for parameters of paths other than ids.
NUMBERS = dict.fromkeys(("number", "attempt", "delivery_id"), "1")
VALUES = {
    **NUMBERS,
    "name": "master.m3u8",
    "secret": "none",
    "language": "en",
    "file": "en.vtt",
    "suffix": "mp4",
}


def caption_id(video_id: str) -> int:
    """Return the id of a video's captions, of which addresses of their files are made.

    All ids have the same length, as those of videos do.
    """
    return 10**14 + int(UUID(video_id).hex[:11], 16)


@dataclass(frozen=True)
class Route:
    """HTTP method and rule of a route, with its policy."""

    method: str
    rule: str
    policy: Policy | None

    def path(self, thing_id: str = "", **ids: str) -> str:
        """Return the path for this video or upload and these ids; other ids are unknown ones."""
        values = {**VALUES, "video_id": thing_id, "id": thing_id, **ids}
        if "/captions/<path:name>" in self.rule and thing_id:
            values["name"] = f"{caption_id(thing_id)}-1/playlist.m3u8"
        part = re.compile(r"<(?:[^<:]+:)?(\w+)>")
        return part.sub(lambda match: values.get(match[1]) or str(uuid4()), self.rule)

    @property
    def is_about_upload(self) -> bool:
        """Return whether the route's id is an upload's."""
        return self.policy is Policy.OWN_UPLOAD and "<id>" in self.rule


def routes(app: Quart) -> list[Route]:
    """Return all routes; the one that ends the sender's session comes last."""
    listed = [
        Route(method, rule.rule, declaration.policy if declaration else None)
        for rule in app.url_map.iter_rules()
        for declaration in [declaration_of(app, rule.endpoint)]
        for method in sorted((rule.methods or set()) - {"OPTIONS"})
    ]
    return sorted(listed, key=lambda route: (route.rule == "/sign-out", route.rule, route.method))
