"""What is done to the videos that were chosen on a page: one form, each video under its own rules.

The answer leads back to that page, whose address tells what came of it (`told`). Videos are changed
one by one: what is refused for one is done for the others.
"""

from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from quart import Blueprint, redirect, render_template, request, url_for
from quart.typing import ResponseReturnValue
from werkzeug.datastructures import MultiDict

from portal.accounts.permissions import Action, Principal
from portal.database.models import Video
from portal.database.states import Visibility
from portal.errors import AccessChanged, MetadataChanged, NotAllowed, VideoNotFound
from portal.text import shown
from portal.videos.deletion import delete_undoably, fetch_with_deleted, undo_deletion
from portal.videos.editing import recorded, save_metadata
from portal.videos.metadata import EditableMetadata, TagsTooLong, with_tags, without_tags
from portal.videos.publishing import fetch_videos, parse_video_id
from portal.videos.rows import audience_of
from portal.videos.visibility import recorded_access, save_access
from portal.web.access import Policy, policy, principal
from portal.web.context import web_context
from portal.web.pages.library import one_line
from portal.web.pages.library_views import LIBRARY, TABLE
from portal.web.pages.told import MAX_SELECTED, Did, Outcome, told_arguments
from portal.web.server.response_cache import forget_shared

blueprint = Blueprint("selection", __name__)

# Of the page that the form was on; what else stands in an address is not passed on.
KEPT = ("q", "category", "status", "tag", "whose", "sort", "after", "before")
REFUSALS: Mapping[type[Exception], Outcome] = {
    NotAllowed: Outcome.OTHERS,
    VideoNotFound: Outcome.GONE,
    AccessChanged: Outcome.BUSY,
    MetadataChanged: Outcome.BUSY,
    TagsTooLong: Outcome.FULL,
}

Change = Callable[[Video], Awaitable[object]]


class Incomplete(Exception):
    """The form doesn't say what to set."""


@dataclass(frozen=True, slots=True)
class Typed:
    """What the form's fields say; what says nothing that there is, is empty or None."""

    tags: str
    category_id: int | None
    visibility: Visibility | None


@dataclass(frozen=True, slots=True)
class Operation:
    """What a button of the form does: who may, and the change that it makes of what was typed."""

    did: Did
    action: Action
    change: Callable[[Typed], Change]


@blueprint.post("/videos/selected")
@policy(Policy.PUBLISH)
async def act() -> ResponseReturnValue:
    """Do to each chosen video what the form asks for, or ask whether they are to be deleted."""
    sent = await request.form
    ids = list(dict.fromkeys(filter(None, map(parse_video_id, sent.getlist("id")))))[:MAX_SELECTED]
    operation = OPERATIONS.get(sent.get("action", ""))
    if not ids:
        return _back(Did.NOTHING, {})
    if operation is None:
        return await _question(ids)
    try:
        change = operation.change(await _typed(sent))
    except Incomplete:
        return _back(Did.INCOMPLETE, {})
    # Before, so that it holds if this ends halfway. Only a change of who may see what waits for
    # what other processes keep.
    forget_shared(request.scope, is_less_seen=operation.did is Did.VISIBILITY)
    outcomes = await _do(operation, change, ids)
    done = [str(it) for it, outcome in outcomes.items() if outcome is Outcome.DONE]
    undo_ids = done if operation.did is Did.DELETED else []
    return _back(operation.did, Counter(outcomes.values()), undo_ids=undo_ids)


async def _typed(sent: MultiDict[str, str]) -> Typed:
    names = await web_context().categories.names()
    return Typed(
        tags=one_line(sent.get("tags", "")).strip(", "),
        category_id=next((it for it in names if str(it) == sent.get("category")), None),
        visibility=next((it for it in Visibility if it.value == sent.get("visibility")), None),
    )


async def _do(operation: Operation, change: Change, ids: list[UUID]) -> dict[UUID, Outcome]:
    who = await principal()
    found = await (fetch_with_deleted if operation.did is Did.RESTORED else fetch_videos)(ids)
    return {it: await _outcome(found.get(it), operation.action, change, by=who) for it in ids}


async def _outcome(
    found: Video | None, action: Action, change: Change, *, by: Principal
) -> Outcome:
    if found is None or not by.may_see(audience_of(found)):
        return Outcome.GONE
    try:
        by.require(action, owner_id=found.owner_id)
        await change(found)
    except tuple(REFUSALS) as exc:
        # One of its own kind, such as that of a token without the scope, is about all of them.
        if type(exc) not in REFUSALS:
            raise
        return REFUSALS[type(exc)]
    return Outcome.DONE


async def _question(ids: list[UUID]) -> ResponseReturnValue:
    """Whether these are to be deleted; with scripts the page asks so itself."""
    found, who = await fetch_videos(ids), await principal()
    asked = [it for it in found.values() if who.may_see(audience_of(it))]
    if not asked:
        return _back(Did.DELETED, {Outcome.GONE: len(ids)})
    return await render_template(
        "videos/delete.html",
        ids=[str(it.id) for it in asked],
        titles=[shown(it.title) for it in asked],
        action=url_for("selection.act", at=_origin(), **_kept()),
        back=_address({}),
    )


def _back(
    did: Did, outcomes: Mapping[Outcome, int], *, undo_ids: list[str] | None = None
) -> ResponseReturnValue:
    return redirect(_address(told_arguments(did, outcomes, undo_ids=undo_ids)), 303)


def _address(told: dict[str, Any]) -> str:
    """The page that the form was on, as it was asked for, and what it is to tell."""
    return url_for(_origin(), **_kept(), **told)


def _origin() -> str:
    return LIBRARY if request.args.get("at") == LIBRARY else TABLE


def _kept() -> dict[str, Any]:
    return {name: request.args[name] for name in KEPT if name in request.args}


def _edited(alter: Callable[[EditableMetadata], EditableMetadata]) -> Change:
    async def change(video: Video) -> None:
        version = str(video.metadata_version)
        await save_metadata(video.id, alter(recorded(video)), version=version)

    return change


def _add_tags(typed: Typed) -> Change:
    if not typed.tags:
        raise Incomplete
    return _edited(lambda said: with_tags(said, typed.tags))


def _remove_tags(typed: Typed) -> Change:
    if not typed.tags:
        raise Incomplete
    return _edited(lambda said: without_tags(said, typed.tags))


def _set_category(typed: Typed) -> Change:
    if typed.category_id is None:
        raise Incomplete
    chosen = (typed.category_id,)
    return _edited(lambda said: replace(said, category_ids=chosen))


def _set_visibility(typed: Typed) -> Change:
    visibility = typed.visibility
    if visibility is None:
        raise Incomplete

    async def change(video: Video) -> None:
        present, queue = recorded_access(video), web_context().queue
        is_for_all = present.signed_in_only and visibility is Visibility.PRIVATE
        wanted = replace(present, visibility=visibility, signed_in_only=is_for_all)
        await save_access(video.id, wanted, version=present.version, queue=queue)

    return change


OPERATIONS = {
    "delete": Operation(Did.DELETED, Action.DELETE, lambda _: lambda it: delete_undoably(it.id)),
    "undo": Operation(Did.RESTORED, Action.DELETE, lambda _: lambda it: undo_deletion(it.id)),
    "add-tags": Operation(Did.TAGS_ADDED, Action.EDIT, _add_tags),
    "remove-tags": Operation(Did.TAGS_REMOVED, Action.EDIT, _remove_tags),
    "category": Operation(Did.CATEGORY, Action.EDIT, _set_category),
    "visibility": Operation(Did.VISIBILITY, Action.EDIT, _set_visibility),
}
