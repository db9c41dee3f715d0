"""Bulk actions: changes and deletions of selected videos, and the toast with their results.

A form sends the selected videos, and each is changed on its own: a refusal of one does not stop the
others. The answer redirects to the page, whose address has counts and ids of the results;
`toast_of` makes a message of them.
"""

from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from enum import StrEnum
from typing import Any
from uuid import UUID

from quart import Blueprint, redirect, render_template, request, url_for
from quart.typing import ResponseReturnValue
from werkzeug.datastructures import MultiDict

from portal.accounts import directory
from portal.accounts.permissions import Action, Principal, audience_of
from portal.database.models import Video
from portal.errors import (
    AccessChanged,
    InvalidRequest,
    MetadataChanged,
    NotAllowed,
    VideoNotFound,
)
from portal.features.deletion import service as deletion
from portal.http.auth import Policy, policy, principal
from portal.http.composition import web_context
from portal.http.languages import gettext, ngettext, translated
from portal.http.videos import read_video
from portal.text import shown, whole_number
from portal.videos import metadata
from portal.videos.reading import fetch_videos, parse_video_id, was_deleted
from portal.videos.visibility import (
    CHOICES,
    TooManyShares,
    VideoAccess,
    recorded_access,
    save_access,
    with_choice,
    with_viewers,
)

blueprint = Blueprint("bulk_actions", __name__)

# Parameters of the listing page. Other parameters are not passed on.
LISTING_PARAMETERS = ("q", "category", "status", "tag", "whose", "sort", "after", "before")
LIBRARY = "library.index"
TABLE = "library.table"
# Videos on a page of the table.
MAX_SELECTED = 50
TIMEOUT_S = 8
# A toast shows the beginning of a longer name.
MAX_NAME_LENGTH = 100


class ActionResult(StrEnum):
    """Result of an action for one video; values are parameters of the address."""

    DONE = "done"
    FORBIDDEN = "others"
    NOT_FOUND = "gone"
    CONFLICT = "busy"
    TAG_LIMIT = "full"
    SHARE_LIMIT = "crowded"
    SERIES_LIMIT = "long"


# In the order of their sentences.
FAILURES = tuple(result for result in ActionResult if result is not ActionResult.DONE)
RESULTS_BY_ERROR: Mapping[type[Exception], ActionResult] = {
    NotAllowed: ActionResult.FORBIDDEN,
    VideoNotFound: ActionResult.NOT_FOUND,
    AccessChanged: ActionResult.CONFLICT,
    MetadataChanged: ActionResult.CONFLICT,
    metadata.TagsTooLong: ActionResult.TAG_LIMIT,
    TooManyShares: ActionResult.SHARE_LIMIT,
    InvalidRequest: ActionResult.SERIES_LIMIT,
}

Change = Callable[[Video], Awaitable[object]]


@blueprint.post("/videos/selected")
@policy(Policy.PUBLISH)
async def apply() -> ResponseReturnValue:
    """Apply the form's action to the selected videos, or ask to confirm their deletion."""
    fields = await request.form
    action = fields.get("action", "")
    if action == "ask":
        return await _ask_for_confirmation(_selected_ids(fields))
    names = directory.split_names(one_line(fields.get("shareWith", "")))
    holder_ids, unknown = await directory.match_names(names if action == "share" else ())
    if unknown:
        return _redirect_with_toast("unknown", {}, name=unknown[0][:MAX_NAME_LENGTH])
    change = await _change_of_action(action, fields, holder_ids)
    return await change_selected(action, fields, change)


async def change_selected(
    action: str, fields: MultiDict[str, str], change: Change | None
) -> ResponseReturnValue:
    """Change the videos that a form selects; redirect to the form's page with a toast about it.

    The permission that is needed and the words of the toast depend on the action. If the form lacks
    the action's value, `change` is None: nothing is changed, and the toast says so.
    """
    ids = _selected_ids(fields)
    if not ids:
        return _redirect_with_toast("nothing", {})
    if change is None:
        return _redirect_with_toast("incomplete", {})
    person = await principal()
    videos = await (deletion.fetch_with_deleted if action == "undo" else fetch_videos)(ids)
    permission = Action.DELETE if action in ("delete", "undo") else Action.EDIT
    results = {
        video_id: await _apply_to_video(videos.get(video_id), permission, change, by=person)
        for video_id in ids
    }
    done = [str(video_id) for video_id, result in results.items() if result is ActionResult.DONE]
    return _redirect_with_toast(action, Counter(results.values()), undo_ids=done)


@blueprint.get("/videos/selected")
@policy(Policy.WATCH)
async def selected() -> ResponseReturnValue:
    """Redirect to the listing page: this address only takes its form."""
    return redirect(_listing_url(), 303)


@blueprint.get("/videos/<video_id>/delete")
@policy(Policy.DELETE)
async def confirm_deletion(video_id: str) -> str:
    """Ask to confirm the deletion of a video; with scripts its page does so itself."""
    video = await read_video(video_id)
    return await render_template(
        "library/delete.html",
        ids=[video_id],
        titles=[shown(video.title)],
        is_file_shared=await deletion.is_file_shared(video),
        action=url_for("bulk_actions.delete", video_id=video_id),
        back=url_for("video.page", video_id=video_id),
    )


@blueprint.post("/videos/<video_id>/delete")
@policy(Policy.DELETE)
async def delete(video_id: str) -> ResponseReturnValue:
    """Delete a video and show the table with a toast, also if the video is deleted already."""
    parsed_id = parse_video_id(video_id)
    if parsed_id is None:
        raise VideoNotFound
    try:
        await deletion.delete_undoably(parsed_id)
    except VideoNotFound:
        # The button was pressed twice, or by two people.
        if not await was_deleted(parsed_id):
            raise
    toast = _toast_arguments("delete", {ActionResult.DONE: 1}, undo_ids=[video_id])
    return redirect(url_for(TABLE, **toast), 303)


async def read_panel(video: Video) -> dict[str, object]:
    """Return what the workshop says of a deletion."""
    return {"is_file_shared": await deletion.is_file_shared(video)}


def toast_of(args: MultiDict[str, str]) -> dict[str, Any] | None:
    """Return the toast of an address: its message, `timeout_s`, and the ids of an undo button.

    Nothing in the address is trusted, because anyone may have written it.
    """
    action = args.get("did", "")
    counts = {
        result: min(whole_number(args.get(result.value, ""), max_digits=9) or 0, MAX_SELECTED)
        for result in ActionResult
    }
    ids = args.getlist("undo")[:MAX_SELECTED] if action == "delete" else []
    undo_ids = [text for text in ids if parse_video_id(text)]
    name = one_line(args.get("name", ""))[:MAX_NAME_LENGTH]
    message = " ".join(_result_sentences(action, counts, name))
    if not message:
        return None
    timeout_s = deletion.UNDO_S if undo_ids else TIMEOUT_S
    return {"message": message, "undo_ids": undo_ids, "timeout_s": timeout_s}


def one_line(text: str) -> str:
    """Return typed text as one line, without NUL, which the database can't store."""
    return " ".join(text.replace("\0", " ").split())


def _selected_ids(fields: MultiDict[str, str]) -> list[UUID]:
    ids = map(parse_video_id, fields.getlist("id"))
    return list(dict.fromkeys(filter(None, ids)))[:MAX_SELECTED]


async def _change_of_action(
    action: str, fields: MultiDict[str, str], holder_ids: Collection[UUID]
) -> Change | None:
    """Return the change of an action; None if the form lacks its value.

    `holder_ids` are the accounts and groups to share with.
    """
    tags = one_line(fields.get("tags", "")).strip(", ")
    names = await web_context().categories.names()
    category_id = next((number for number in names if str(number) == fields.get("category")), None)
    choice = fields.get("visibility", "")
    match action:
        case "delete":
            return lambda video: deletion.delete_undoably(video.id)
        case "undo":
            return lambda video: deletion.undo_deletion(video.id)
        case "add-tags" if tags:
            return _metadata_change(lambda recorded: metadata.with_tags(recorded, tags))
        case "remove-tags" if tags:
            return _metadata_change(lambda recorded: metadata.without_tags(recorded, tags))
        case "category" if category_id is not None:
            return _metadata_change(lambda recorded: replace(recorded, category_ids=(category_id,)))
        case "visibility" if choice in CHOICES:
            return _access_change(lambda recorded: with_choice(recorded, choice))
        case "share" if holder_ids:
            return _access_change(lambda recorded: with_viewers(recorded, holder_ids))
    return None


def _metadata_change(
    alter: Callable[[metadata.EditableMetadata], metadata.EditableMetadata],
) -> Change:
    return lambda video: metadata.patch_video(
        video.id,
        versions=[str(video.metadata_version)],
        **asdict(alter(metadata.recorded(video))),
    )


def _access_change(alter: Callable[[VideoAccess], VideoAccess]) -> Change:
    async def change(video: Video) -> None:
        present = recorded_access(video)
        await save_access(video.id, alter(present), versions=[present.version])

    return change


async def _apply_to_video(
    video: Video | None, permission: Action, change: Change, *, by: Principal
) -> ActionResult:
    if video is None or not by.may_see(audience_of(video)):
        return ActionResult.NOT_FOUND
    try:
        by.require(permission, on=audience_of(video))
        await change(video)
    except tuple(RESULTS_BY_ERROR) as exc:
        # A subclass, such as the error of a token without the scope, concerns all videos.
        if type(exc) not in RESULTS_BY_ERROR:
            raise
        return RESULTS_BY_ERROR[type(exc)]
    return ActionResult.DONE


async def _ask_for_confirmation(ids: list[UUID]) -> ResponseReturnValue:
    """Ask to confirm the deletion of videos; with scripts the page does so itself."""
    person = await principal()
    if not ids:
        return _redirect_with_toast("nothing", {})
    fetched = await fetch_videos(ids)
    videos = [video for video in fetched.values() if person.may_see(audience_of(video))]
    if not videos:
        return _redirect_with_toast("delete", {ActionResult.NOT_FOUND: len(ids)})
    return await render_template(
        "library/delete.html",
        ids=[str(video.id) for video in videos],
        titles=[shown(video.title) for video in videos],
        # The parameters of the listing page lead back to it.
        action=request.full_path.rstrip("?"),
        back=_listing_url(),
    )


def _redirect_with_toast(
    action: str,
    results: Mapping[ActionResult, int],
    *,
    undo_ids: Sequence[str] = (),
    **parameters: str,
) -> ResponseReturnValue:
    toast = _toast_arguments(action, results, undo_ids=undo_ids)
    return redirect(_listing_url(**toast, **parameters), 303)


def _listing_url(**toast: Any) -> str:
    """Return the address of the listing page with its parameters and this toast."""
    endpoint = LIBRARY if request.args.get("at") == LIBRARY else TABLE
    parameters = {name: request.args[name] for name in LISTING_PARAMETERS if name in request.args}
    return url_for(endpoint, **parameters | toast)


def _toast_arguments(
    action: str, results: Mapping[ActionResult, int], *, undo_ids: Sequence[str]
) -> dict[str, Any]:
    """Return the parameters of an address that `toast_of` reads."""
    counts = {result.value: count for result, count in results.items() if count}
    return {"did": action, **counts, "undo": undo_ids if action == "delete" else ()}


def _result_sentences(action: str, counts: Mapping[ActionResult, int], name: str) -> Iterator[str]:
    """Yield nothing for an unknown action. `name` is one that nobody has, to share with."""
    done = counts[ActionResult.DONE]
    if action == "nothing":
        yield gettext("No changes made. Select videos first.")
    elif action == "incomplete":
        yield gettext("No changes made. Choose a value first.")
    elif action == "unknown":
        yield gettext("No changes made.")
        yield translated(directory.unknown_name_fault(name))
    elif sentence := _done_words(action, done):
        if done:
            yield sentence
        for result in FAILURES:
            if count := counts[result]:
                yield _failure_words(action, result, count)


def _done_words(action: str, count: int) -> str:
    """Return the sentence about videos that an action has changed; empty if there is no such."""
    match action:
        case "delete":
            return ngettext(
                "%(count)s video deleted.", "%(count)s videos deleted.", count, count=count
            )
        case "undo":
            return ngettext(
                "%(count)s video restored.", "%(count)s videos restored.", count, count=count
            )
        case "add-tags":
            return ngettext(
                "Tags added to %(count)s video.",
                "Tags added to %(count)s videos.",
                count,
                count=count,
            )
        case "remove-tags":
            return ngettext(
                "Tags removed from %(count)s video.",
                "Tags removed from %(count)s videos.",
                count,
                count=count,
            )
        case "category":
            return ngettext(
                "Category set for %(count)s video.",
                "Category set for %(count)s videos.",
                count,
                count=count,
            )
        case "visibility":
            return ngettext(
                "Visibility set for %(count)s video.",
                "Visibility set for %(count)s videos.",
                count,
                count=count,
            )
        case "share":
            return ngettext(
                "%(count)s video shared.", "%(count)s videos shared.", count, count=count
            )
        case "series":
            return ngettext(
                "%(count)s video added to the series.",
                "%(count)s videos added to the series.",
                count,
                count=count,
            )
    return ""


def _failure_words(action: str, result: ActionResult, count: int) -> str:
    """Return the sentence about videos that an action has not changed."""
    if action == "undo" and result is ActionResult.NOT_FOUND:
        return ngettext(
            "Too late to undo: %(count)s video was permanently deleted.",
            "Too late to undo: %(count)s videos were permanently deleted.",
            count,
            count=count,
        )
    # Translators: the number is one of videos, after a sentence such as "3 videos deleted."
    match result:
        case ActionResult.FORBIDDEN:
            return ngettext(
                "%(count)s was not changed. You can only change your own videos.",
                "%(count)s were not changed. You can only change your own videos.",
                count,
                count=count,
            )
        case ActionResult.CONFLICT:
            return ngettext(
                "%(count)s was changed by someone else. Try again.",
                "%(count)s were changed by someone else. Try again.",
                count,
                count=count,
            )
        case ActionResult.TAG_LIMIT:
            return ngettext(
                "%(count)s has reached the limit for tags.",
                "%(count)s have reached the limit for tags.",
                count,
                count=count,
            )
        case ActionResult.SHARE_LIMIT:
            return ngettext(
                "%(count)s would be shared with too many people. Use a group.",
                "%(count)s would be shared with too many people. Use a group.",
                count,
                count=count,
            )
        case ActionResult.SERIES_LIMIT:
            return ngettext(
                "%(count)s was not added. The series has as many videos as it can have.",
                "%(count)s were not added. The series has as many videos as it can have.",
                count,
                count=count,
            )
    return ngettext(
        "%(count)s is no longer available.",
        "%(count)s are no longer available.",
        count,
        count=count,
    )
