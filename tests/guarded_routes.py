"""The routes of an app with their policies."""

import re
from dataclasses import dataclass
from uuid import uuid4

from quart import Quart

from portal.web.auth import Policy, declaration_of

# Of paths: what is not an id.
NUMBERS = dict.fromkeys(("number", "attempt", "delivery_id"), "1")
VALUES = {**NUMBERS, "name": "master.m3u8", "secret": "none", "language": "en"}


@dataclass(frozen=True)
class Route:
    """A method of an address."""

    method: str
    rule: str
    policy: Policy | None

    def path(self, thing_id: str = "", **ids: str) -> str:
        """Its address: of this video or upload, with these other ids, and unknown ones else."""
        values = {**VALUES, "video_id": thing_id, "id": thing_id, **ids}
        part = re.compile(r"<(?:[^<:]+:)?(\w+)>")
        return part.sub(lambda it: values.get(it[1]) or str(uuid4()), self.rule)

    @property
    def is_about_upload(self) -> bool:
        """Whether its id is an upload's."""
        return self.policy is Policy.OWN_UPLOAD


def routes(app: Quart) -> list[Route]:
    """All of them; the one that ends the session that asks comes last."""
    found = [
        Route(method, rule.rule, declaration.policy if declaration else None)
        for rule in app.url_map.iter_rules()
        for declaration in [declaration_of(app, rule.endpoint)]
        for method in sorted((rule.methods or set()) - {"OPTIONS"})
    ]
    return sorted(found, key=lambda it: (it.rule == "/sign-out", it.rule, it.method))
