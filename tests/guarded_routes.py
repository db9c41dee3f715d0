"""The routes of an app with their policies, and things to ask them about."""

import re
from dataclasses import dataclass
from uuid import uuid4

from quart import Quart
from signed_in import make_upload, make_video

from portal.database.account_models import Account
from portal.web.auth import Policy, declared_policy

# Of paths: what is not an id.
VALUES = {"number": "1", "attempt": "1", "name": "master.m3u8", "secret": "none"}


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

    @property
    def ends_things(self) -> bool:
        """Whether the video or the upload is gone afterwards."""
        is_deletion = self.policy is Policy.DELETE and self.method == "POST"
        return is_deletion or (self.is_about_upload and self.method == "DELETE")


def routes(app: Quart) -> list[Route]:
    """All of them; the one that ends the session that asks comes last."""
    found = [
        Route(method, rule.rule, declared_policy(app, rule.endpoint))
        for rule in app.url_map.iter_rules()
        for method in sorted((rule.methods or set()) - {"OPTIONS"})
    ]
    return sorted(found, key=lambda it: (it.rule == "/sign-out", it.rule, it.method))


class Things:
    """A video and an upload of an account, made anew when they are gone."""

    def __init__(self, owner: Account | None) -> None:
        self.owner_id = owner and owner.id
        self._owner = owner
        self._video_id = self._upload_id = ""

    async def id_for(self, route: Route) -> str:
        """The id that an address of this route takes."""
        if route.is_about_upload:
            found = self._upload_id or await make_upload(self._owner)
            self._upload_id = "" if route.ends_things else found
        else:
            found = self._video_id or str((await make_video(self._owner)).id)
            self._video_id = "" if route.ends_things else found
        return found
