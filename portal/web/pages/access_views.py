"""What the templates see of who may see a video: words, badges, and the form that changes it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from werkzeug.datastructures import MultiDict

from portal.accounts.permissions import Principal
from portal.config import Config
from portal.config.values import ANY_SITE, NO_SITE
from portal.database.models import Video
from portal.database.states import Visibility
from portal.errors import FieldError
from portal.text import shown
from portal.videos.visibility import VideoAccess, recorded_access
from portal.web.access import principal
from portal.web.api.access_shapes import access_record
from portal.web.context import web_context

Body = dict[str, Any]

# Beside the title of a video that not everyone is shown.
BADGES = {Visibility.UNLISTED: "Unlisted", Visibility.PRIVATE: "Private"}


@dataclass(frozen=True, slots=True)
class VisibilityChoice:
    """A visibility, and who sees a video that has it."""

    value: str
    name: str
    words: str

    @property
    def brief(self) -> str:
        """The words as part of a line."""
        first, _, _ = self.words.partition(".")
        return first[0].lower() + first[1:]


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessForm:
    """The form; `state` says who may see the video now.

    `theirs` is what someone else has saved meanwhile, in words; empty unless there is a conflict.
    """

    video_id: str
    version: str
    state: str
    typed: Body
    choices: list[VisibilityChoice]
    portal_sites: str
    is_open_portal: bool
    faults: Mapping[str, str]
    theirs: str
    is_saved: bool


async def recorded_access_form(found: Video, *, is_saved: bool = False) -> AccessForm:
    """The form with what is recorded, for who asks."""
    return access_form(found, await principal(), web_context().config, is_saved=is_saved)


def badge_words(video: Video) -> str:
    """What tells a video from a public one; empty for those."""
    return BADGES.get(video.visibility, "")


def visibility_choices(who: Principal, *, is_own: bool) -> list[VisibilityChoice]:
    """The visibilities, each with who sees such a video."""
    return [
        VisibilityChoice("public", "Public", "Everyone. It is listed in the library."),
        VisibilityChoice("unlisted", "Unlisted", "Everyone who has the address."),
        VisibilityChoice("private", "Private", f"{_private_words(who, is_own=is_own)}."),
    ]


def typed_access(form: MultiDict[str, str]) -> Body:
    """Read a form, in the shape of the JSON API's body. The box counts for a private video only."""
    visibility = form.get("visibility", "")
    lines = form.get("embedOrigins", "").split()
    return {
        "visibility": visibility,
        "signedInOnly": visibility == Visibility.PRIVATE and "signedInOnly" in form,
        "embedOrigins": lines,
    }


def access_form(
    video: Video,
    who: Principal,
    config: Config,
    *,
    typed: Body | None = None,
    version: str | None = None,
    errors: Sequence[FieldError] = (),
    is_conflict: bool = False,
    is_saved: bool = False,
) -> AccessForm:
    """The form with what was typed, or with what is recorded.

    Without a version it bears the newest, so that whoever sends it has seen that.
    """
    access = recorded_access(video)
    is_own = who.account_id is not None and who.account_id == video.owner_id
    body = typed or access_record(access).model_dump()
    state = _audience_words(access, who, is_own=is_own)
    return AccessForm(
        video_id=str(video.id),
        version=access.version if version is None else version,
        state=state,
        typed=body,
        choices=visibility_choices(who, is_own=is_own),
        portal_sites=_sites(config.embed_origins),
        is_open_portal=_is_open(who),
        faults=_faults(errors, body),
        theirs=_theirs(access, state) if is_conflict else "",
        is_saved=is_saved,
    )


def _is_open(who: Principal) -> bool:
    return who.account_id is None and who.role is not None


def _private_words(who: Principal, *, is_own: bool) -> str:
    if _is_open(who):
        return "Who published it, admins and owners, once there are accounts"
    return f"{'You' if is_own else 'Who published it'}, admins and owners"


def _audience_words(access: VideoAccess, who: Principal, *, is_own: bool) -> str:
    if access.visibility is Visibility.PUBLIC:
        return "everyone"
    if access.visibility is Visibility.UNLISTED:
        return "everyone who has the address"
    if _is_open(who):
        return "everyone, until there are accounts"
    if access.signed_in_only:
        return "everyone with an account"
    words = _private_words(who, is_own=is_own)
    return words[0].lower() + words[1:]


def _sites(origins: Sequence[str]) -> str:
    names = {ANY_SITE: "any site", NO_SITE: "no other site"}
    return ", ".join(names.get(it, shown(it)) for it in origins)


def _theirs(access: VideoAccess, state: str) -> str:
    sites = _sites(access.embed_origins) or "as the portal is set up"
    return f"{access.visibility.value.capitalize()}: {state}. Sites that may show it: {sites}."


def _faults(errors: Sequence[FieldError], typed: Body) -> dict[str, str]:
    """The first message for each field; one of a line begins with the line."""
    faults: dict[str, str] = {}
    for error in errors:
        field, _, number = error.pointer.strip("/").partition("/")
        line = f"“{shown(typed[field][int(number)])}”: " if number else ""
        faults.setdefault(field, line + error.message)
    return faults
