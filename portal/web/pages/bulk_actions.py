"""Bulk actions on the videos that were selected on a page: one form, each video by its own rules.

The answer leads back to that page, whose address says what came of it (`toasts`). Videos are
changed one by one: what is refused for one is done for the others.
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
from portal.videos.reading import audience_of, fetch_videos, parse_video_id
from portal.videos.visibility import recorded_access, save_access
from portal.web.auth import Policy, policy, principal
from portal.web.composition import web_context
from portal.web.pages.library import one_line
from portal.web.pages.library_views import LIBRARY, TABLE
from portal.web.pages.toasts import MAX_SELECTED, ActionResult, ToastKind, toast_arguments

blueprint = Blueprint("bulk_actions", __name__)

# Of the page that the form was on; what else stands in an address is not passed on.
LISTING_PARAMETERS = ("q", "category", "status", "tag", "whose", "sort", "after", "before")
RESULTS_BY_ERROR: Mapping[type[Exception], ActionResult] = {
    NotAllowed: ActionResult.FORBIDDEN,
    VideoNotFound: ActionResult.NOT_FOUND,
    AccessChanged: ActionResult.CONFLICT,
    MetadataChanged: ActionResult.CONFLICT,
    TagsTooLong: ActionResult.TAG_LIMIT,
}

Change = Callable[[Video], Awaitable[object]]


class IncompleteForm(Exception):
    """The form doesn't say what to set."""


@dataclass(frozen=True, slots=True)
class FormValues:
    """What the form's fields say; what says nothing that there is, is empty or None."""

    tags: str
    category_id: int | None
    visibility: Visibility | None


@dataclass(frozen=True, slots=True)
class BulkAction:
    """What a button of the form does: who may, and the change that it makes of the values."""

    toast: ToastKind
    permission: Action
    change: Callable[[FormValues], Change]


@blueprint.post("/videos/selected")
@policy(Policy.PUBLISH)
async def apply() -> ResponseReturnValue:
    """Do to each chosen video what the form asks for, or ask whether they are to be deleted."""
    sent = await request.form
    ids = list(dict.fromkeys(filter(None, map(parse_video_id, sent.getlist("id")))))[:MAX_SELECTED]
    action = BULK_ACTIONS.get(sent.get("action", ""))
    if not ids:
        return _redirect(ToastKind.NOTHING, {})
    if action is None:
        return await _confirmation(ids)
    try:
        change = action.change(await _form_values(sent))
    except IncompleteForm:
        return _redirect(ToastKind.INCOMPLETE, {})
    results = await _do(action, change, ids)
    done = [str(it) for it, result in results.items() if result is ActionResult.DONE]
    undo_ids = done if action.toast is ToastKind.DELETED else []
    return _redirect(action.toast, Counter(results.values()), undo_ids=undo_ids)


async def _form_values(sent: MultiDict[str, str]) -> FormValues:
    names = await web_context().categories.names()
    return FormValues(
        tags=one_line(sent.get("tags", "")).strip(", "),
        category_id=next((it for it in names if str(it) == sent.get("category")), None),
        visibility=next((it for it in Visibility if it.value == sent.get("visibility")), None),
    )


async def _do(action: BulkAction, change: Change, ids: list[UUID]) -> dict[UUID, ActionResult]:
    who = await principal()
    found = await (fetch_with_deleted if action.toast is ToastKind.RESTORED else fetch_videos)(ids)
    return {it: await _result(found.get(it), action.permission, change, by=who) for it in ids}


async def _result(
    found: Video | None, permission: Action, change: Change, *, by: Principal
) -> ActionResult:
    if found is None or not by.may_see(audience_of(found)):
        return ActionResult.NOT_FOUND
    try:
        by.require(permission, owner_id=found.owner_id)
        await change(found)
    except tuple(RESULTS_BY_ERROR) as exc:
        # One of its own kind, such as that of a token without the scope, is about all of them.
        if type(exc) not in RESULTS_BY_ERROR:
            raise
        return RESULTS_BY_ERROR[type(exc)]
    return ActionResult.DONE


async def _confirmation(ids: list[UUID]) -> ResponseReturnValue:
    """Whether these are to be deleted; with scripts the page asks so itself."""
    found, who = await fetch_videos(ids), await principal()
    asked = [it for it in found.values() if who.may_see(audience_of(it))]
    if not asked:
        return _redirect(ToastKind.DELETED, {ActionResult.NOT_FOUND: len(ids)})
    return await render_template(
        "videos/delete.html",
        ids=[str(it.id) for it in asked],
        titles=[shown(it.title) for it in asked],
        action=url_for("bulk_actions.apply", at=_listing_endpoint(), **_listing_arguments()),
        back=_listing_url({}),
    )


def _redirect(
    toast: ToastKind, results: Mapping[ActionResult, int], *, undo_ids: list[str] | None = None
) -> ResponseReturnValue:
    return redirect(_listing_url(toast_arguments(toast, results, undo_ids=undo_ids)), 303)


def _listing_url(toast: dict[str, Any]) -> str:
    """The page that the form was on, as it was asked for, with this toast."""
    return url_for(_listing_endpoint(), **_listing_arguments(), **toast)


def _listing_endpoint() -> str:
    return LIBRARY if request.args.get("at") == LIBRARY else TABLE


def _listing_arguments() -> dict[str, Any]:
    return {name: request.args[name] for name in LISTING_PARAMETERS if name in request.args}


def _delete(_values: FormValues) -> Change:
    return lambda video: delete_undoably(video.id)


def _undo(_values: FormValues) -> Change:
    return lambda video: undo_deletion(video.id)


def _edited(alter: Callable[[EditableMetadata], EditableMetadata]) -> Change:
    async def change(video: Video) -> None:
        version = str(video.metadata_version)
        await save_metadata(video.id, alter(recorded(video)), version=version)

    return change


def _add_tags(values: FormValues) -> Change:
    if not values.tags:
        raise IncompleteForm
    return _edited(lambda metadata: with_tags(metadata, values.tags))


def _remove_tags(values: FormValues) -> Change:
    if not values.tags:
        raise IncompleteForm
    return _edited(lambda metadata: without_tags(metadata, values.tags))


def _set_category(values: FormValues) -> Change:
    if values.category_id is None:
        raise IncompleteForm
    chosen = (values.category_id,)
    return _edited(lambda metadata: replace(metadata, category_ids=chosen))


def _set_visibility(values: FormValues) -> Change:
    visibility = values.visibility
    if visibility is None:
        raise IncompleteForm

    async def change(video: Video) -> None:
        present = recorded_access(video)
        is_for_all = present.signed_in_only and visibility is Visibility.PRIVATE
        wanted = replace(present, visibility=visibility, signed_in_only=is_for_all)
        await save_access(video.id, wanted, version=present.version)

    return change


BULK_ACTIONS = {
    "delete": BulkAction(ToastKind.DELETED, Action.DELETE, _delete),
    "undo": BulkAction(ToastKind.RESTORED, Action.DELETE, _undo),
    "add-tags": BulkAction(ToastKind.TAGS_ADDED, Action.EDIT, _add_tags),
    "remove-tags": BulkAction(ToastKind.TAGS_REMOVED, Action.EDIT, _remove_tags),
    "category": BulkAction(ToastKind.CATEGORY, Action.EDIT, _set_category),
    "visibility": BulkAction(ToastKind.VISIBILITY, Action.EDIT, _set_visibility),
}
