"""What the templates see of who may see a video: words, badges, and the form that changes it."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from werkzeug.datastructures import MultiDict

from portal.accounts.permissions import Principal
from portal.config import Config
from portal.config.values import ANY_SITE, NO_SITE
from portal.database.models import Video
from portal.database.states import Visibility
from portal.errors import FieldError
from portal.text import shown
from portal.videos.merging import Merged, Values
from portal.videos.visibility import VideoAccess, mergeable, merged_access, recorded_access
from portal.web.api.visibility import AccessRecord, access_record
from portal.web.auth import principal
from portal.web.composition import web_context
from portal.web.pages.conflicts import Conflict, in_words

Body = dict[str, Any]

# What sentences call the fields.
FIELD_WORDS = {"visibility": "who can see it", "embed_origins": "the sites that may embed it"}
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
    """The form, made from `base`; `state` says who may see the video now.

    `conflicts` has what someone else has changed, too, and otherwise. `kept` names what someone
    else alone has changed since the form was made; that is in it by now.
    """

    video_id: str
    base: Body
    state: str
    typed: Body
    choices: list[VisibilityChoice]
    portal_sites: str
    is_open_portal: bool
    faults: Mapping[str, str]
    conflicts: Mapping[str, Conflict]
    in_conflict: str
    kept: str
    is_saved: bool


async def recorded_access_form(
    found: Video, *, kept: Iterable[str] = (), is_saved: bool = False
) -> AccessForm:
    """The form, made from what is recorded, for who asks."""
    who, config = await principal(), web_context().config
    return access_form(found, who, config, kept=kept, is_saved=is_saved)


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
    """Read what was typed; the base, for what of someone else's was chosen."""
    typed, base = read_access(form), read_access(form, prefix="base.")
    if form.get("choice.visibility") == "theirs":
        typed |= {name: base[name] for name in ("visibility", "signedInOnly")}
    if form.get("choice.embedOrigins") == "theirs":
        typed["embedOrigins"] = base["embedOrigins"]
    return typed


def read_access(form: MultiDict[str, str], *, prefix: str = "") -> Body:
    """Read the fields of these names, in the shape of the JSON API's body.

    The box counts for a private video only.
    """
    visibility = form.get(f"{prefix}visibility", "")
    is_ticked = f"{prefix}signedInOnly" in form
    return {
        "visibility": visibility,
        "signedInOnly": visibility == Visibility.PRIVATE and is_ticked,
        "embedOrigins": form.get(f"{prefix}embedOrigins", "").split(),
    }


def base_access(base: Body) -> Values:
    """What a form was made from, to be merged with; of one that does not say, nothing is."""
    return mergeable(base["visibility"], base["embedOrigins"], signed_in_only=base["signedInOnly"])


def access_form(
    video: Video,
    who: Principal,
    config: Config,
    *,
    base: Body | None = None,
    typed: Body | None = None,
    errors: Sequence[FieldError] = (),
    kept: Iterable[str] = (),
    is_saved: bool = False,
) -> AccessForm:
    """The form with what was typed, or with what it is made from: by itself what is recorded."""
    access = recorded_access(video)
    made_from = base or access_record(access).model_dump()
    body = typed or made_from
    is_own = _is_own(video, who)
    return AccessForm(
        video_id=str(video.id),
        base=made_from,
        state=_audience_words(access, who, is_own=is_own),
        typed=body,
        choices=visibility_choices(who, is_own=is_own),
        portal_sites=_sites(config.embed_origins),
        is_open_portal=_is_open(who),
        faults=_faults(errors, body),
        conflicts={},
        in_conflict="",
        kept=in_words(kept, FIELD_WORDS),
        is_saved=is_saved,
    )


def access_conflict_form(
    video: Video, who: Principal, config: Config, *, base: Body, merged: Merged
) -> AccessForm:
    """The form with what could be merged, made from what is recorded by now.

    Who sends it has seen that, and says of each conflict whose value is to stay.
    """
    mine = access_record(merged_access(merged)).model_dump()
    form = access_form(video, who, config, typed=mine, kept=merged.kept)
    texts = [_texts(it, who, is_own=_is_own(video, who)) for it in (base, mine, form.base)]
    return replace(
        form,
        conflicts={
            AccessRecord.model_fields[name].alias or name: Conflict.between(
                *(it[name] for it in texts)
            )
            for name in merged.conflicts
        },
        in_conflict=in_words(merged.conflicts, FIELD_WORDS),
    )


def _is_own(video: Video, who: Principal) -> bool:
    return who.account_id is not None and who.account_id == video.owner_id


def _is_open(who: Principal) -> bool:
    return who.account_id is None and who.role is not None


def _private_words(who: Principal, *, is_own: bool) -> str:
    if _is_open(who):
        return "Only you and admins (needs accounts)"
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


def _texts(body: Body, who: Principal, *, is_own: bool) -> dict[str, str]:
    """Each field as people read it; that of a base which says nothing is empty."""
    audience = ""
    with suppress(ValueError):
        visibility = Visibility(body["visibility"])
        access = VideoAccess(visibility=visibility, signed_in_only=body["signedInOnly"])
        audience = f"{visibility.capitalize()}: {_audience_words(access, who, is_own=is_own)}"
    return {
        "visibility": audience,
        "embed_origins": "\n".join(map(shown, body["embedOrigins"])) or "As the portal is set up",
    }


def _faults(errors: Sequence[FieldError], typed: Body) -> dict[str, str]:
    """The first message for each field; one of a line begins with the line."""
    faults: dict[str, str] = {}
    for error in errors:
        field, _, number = error.pointer.strip("/").partition("/")
        line = f"“{shown(typed[field][int(number)])}”: " if number else ""
        faults.setdefault(field, line + error.message)
    return faults
