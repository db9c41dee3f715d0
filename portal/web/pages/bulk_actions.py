"""Changing and deleting videos from a page that lists them, and what that page then says of it.

One form sends the videos that were selected, and each is changed by its own rules: what is refused
for one is done for the others. The answer leads back to the page, whose address has counts and ids
of what came of it, of which `toast_of` makes a message.
"""

from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from enum import StrEnum
from typing import Any
from uuid import UUID

from quart import Blueprint, redirect, render_template, request, url_for
from quart.typing import ResponseReturnValue
from werkzeug.datastructures import MultiDict

from portal.accounts.permissions import Action, Principal
from portal.database.models import Video, Visibility
from portal.errors import AccessChanged, MetadataChanged, NotAllowed, VideoNotFound
from portal.text import shown, whole_number
from portal.videos import deletion, metadata
from portal.videos.reading import audience_of, fetch_videos, parse_video_id
from portal.videos.visibility import recorded_access, save_access
from portal.web.auth import Policy, policy, principal
from portal.web.composition import web_context
from portal.web.videos import read_video

blueprint = Blueprint("bulk_actions", __name__)

# Of the page that the form was on; what else stands in an address is not passed on.
LISTING_PARAMETERS = ("q", "category", "status", "tag", "whose", "sort", "after", "before")
LIBRARY, TABLE = "library.index", "library.table"
# Of one action; as many as a page of the table has.
MAX_SELECTED = 50
TIMEOUT_S = 8


class ActionResult(StrEnum):
    """What came of an action for one video."""

    DONE = "done"
    FORBIDDEN = "others"
    NOT_FOUND = "gone"
    CONFLICT = "busy"
    TAG_LIMIT = "full"


# By the action that the form's button names, and by why nothing was done.
MESSAGES = {
    "delete": "{} deleted.",
    "undo": "{} restored.",
    "add-tags": "Tags added to {}.",
    "remove-tags": "Tags removed from {}.",
    "category": "Category set for {}.",
    "visibility": "Visibility set for {}.",
    "nothing": "No changes made. Select videos first.",
    "incomplete": "No changes made. Choose a value first.",
}
# Of one video, of several, and what is said of them.
FAILURE_MESSAGES = {
    ActionResult.FORBIDDEN: ("was", "were", "not changed. You can only change your own videos."),
    ActionResult.NOT_FOUND: ("is", "are", "no longer available."),
    ActionResult.CONFLICT: ("was", "were", "changed by someone else. Try again."),
    ActionResult.TAG_LIMIT: ("has", "have", "reached the limit for tags."),
}
RESULTS_BY_ERROR: Mapping[type[Exception], ActionResult] = {
    NotAllowed: ActionResult.FORBIDDEN,
    VideoNotFound: ActionResult.NOT_FOUND,
    AccessChanged: ActionResult.CONFLICT,
    MetadataChanged: ActionResult.CONFLICT,
    metadata.TagsTooLong: ActionResult.TAG_LIMIT,
}

Change = Callable[[Video], Awaitable[object]]


@blueprint.post("/videos/selected")
@policy(Policy.PUBLISH)
async def apply() -> ResponseReturnValue:
    """Do to each chosen video what the form asks for, or ask whether they are to be deleted."""
    sent = await request.form
    ids = list(dict.fromkeys(filter(None, map(parse_video_id, sent.getlist("id")))))[:MAX_SELECTED]
    action = sent.get("action", "")
    if not ids:
        return _redirect("nothing", {})
    if action == "ask":
        return await _confirmation(ids)
    change = await _change(action, sent)
    if change is None:
        return _redirect("incomplete", {})
    who = await principal()
    found = await (deletion.fetch_with_deleted if action == "undo" else fetch_videos)(ids)
    permission = Action.DELETE if action in ("delete", "undo") else Action.EDIT
    results = {it: await _result(found.get(it), permission, change, by=who) for it in ids}
    done = [str(it) for it, result in results.items() if result is ActionResult.DONE]
    return _redirect(action, Counter(results.values()), undo_ids=done)


@blueprint.get("/videos/selected")
@policy(Policy.WATCH)
async def selected() -> ResponseReturnValue:
    """Lead to the page whose form is sent here, for people who open this address."""
    return redirect(_listing_url(), 303)


@blueprint.get("/videos/<video_id>/delete")
@policy(Policy.DELETE)
async def confirm_deletion(video_id: str) -> str:
    """Asks whether the video is really to be deleted; with scripts its page does so itself."""
    found = await read_video(video_id)
    return await render_template(
        "videos/delete.html",
        ids=[video_id],
        titles=[shown(found.title)],
        action=url_for("bulk_actions.delete", video_id=video_id),
        back=url_for("video.page", video_id=video_id),
    )


@blueprint.post("/videos/<video_id>/delete")
@policy(Policy.DELETE)
async def delete(video_id: str) -> ResponseReturnValue:
    """Delete the video, and say so; also when it was deleted a moment ago."""
    parsed = parse_video_id(video_id)
    if parsed is None:
        raise VideoNotFound
    try:
        await deletion.delete_undoably(parsed)
    except VideoNotFound:
        # Pressed twice, or pressed by two.
        if not await deletion.was_deleted(parsed):
            raise
    toast = _toast_arguments("delete", {ActionResult.DONE: 1}, undo_ids=[video_id])
    return redirect(url_for(TABLE, **toast), 303)


def toast_of(args: MultiDict[str, str]) -> dict[str, Any] | None:
    """The toast that an address asks for, if it does: a sentence or two, for `timeout_s`.

    `undo_ids` are of videos that can still be brought back. Anyone may have written the address.
    """
    action = args.get("did", "")
    counts = {it: _count(args.get(it.value, "")) for it in ActionResult}
    ids = args.getlist("undo")[:MAX_SELECTED] if action == "delete" else []
    undo_ids = [text for text in ids if parse_video_id(text)]
    message = " ".join(_sentences(action, counts)) if action in MESSAGES else ""
    if not message:
        return None
    timeout_s = deletion.UNDO_S if undo_ids else TIMEOUT_S
    return {"message": message, "undo_ids": undo_ids, "timeout_s": timeout_s}


def one_line(text: str) -> str:
    """What was typed as one line, without what the database can't store."""
    return " ".join(text.replace("\0", " ").split())


async def _change(action: str, sent: MultiDict[str, str]) -> Change | None:
    """What an action does to each video; None if the form doesn't say what to set."""
    tags = one_line(sent.get("tags", "")).strip(", ")
    names = await web_context().categories.names()
    category_id = next((it for it in names if str(it) == sent.get("category")), None)
    visibility = next((it for it in Visibility if it.value == sent.get("visibility")), None)
    match action:
        case "delete":
            return lambda video: deletion.delete_undoably(video.id)
        case "undo":
            return lambda video: deletion.undo_deletion(video.id)
        case "add-tags" if tags:
            return _edited(lambda it: metadata.with_tags(it, tags))
        case "remove-tags" if tags:
            return _edited(lambda it: metadata.without_tags(it, tags))
        case "category" if category_id is not None:
            return _edited(lambda it: replace(it, category_ids=(category_id,)))
        case "visibility" if visibility:
            return lambda video: _set_visibility(video, visibility)
    return None


def _edited(alter: Callable[[metadata.EditableMetadata], metadata.EditableMetadata]) -> Change:
    return lambda video: metadata.patch_video(
        video.id,
        versions=[str(video.metadata_version)],
        **asdict(alter(metadata.recorded(video))),
    )


async def _set_visibility(video: Video, visibility: Visibility) -> None:
    present = recorded_access(video)
    is_for_all = present.signed_in_only and visibility is Visibility.PRIVATE
    wanted = replace(present, visibility=visibility, signed_in_only=is_for_all)
    await save_access(video.id, wanted, versions=[present.version])


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
        return _redirect("delete", {ActionResult.NOT_FOUND: len(ids)})
    return await render_template(
        "videos/delete.html",
        ids=[str(it.id) for it in asked],
        titles=[shown(it.title) for it in asked],
        # With what the page was asked for.
        action=request.full_path.rstrip("?"),
        back=_listing_url(),
    )


def _redirect(
    action: str, results: Mapping[ActionResult, int], *, undo_ids: Sequence[str] = ()
) -> ResponseReturnValue:
    return redirect(_listing_url(**_toast_arguments(action, results, undo_ids=undo_ids)), 303)


def _listing_url(**toast: Any) -> str:
    """The page that the form was on, as it was asked for, with this toast."""
    endpoint = LIBRARY if request.args.get("at") == LIBRARY else TABLE
    named = [name for name in LISTING_PARAMETERS if name in request.args]
    return url_for(endpoint, **{name: request.args[name] for name in named} | toast)


def _toast_arguments(
    action: str, results: Mapping[ActionResult, int], *, undo_ids: Sequence[str]
) -> dict[str, Any]:
    """The arguments of an address that `toast_of` reads."""
    counts = {result.value: count for result, count in results.items() if count}
    return {"did": action, **counts, "undo": undo_ids if action == "delete" else ()}


def _sentences(action: str, counts: Mapping[ActionResult, int]) -> Iterator[str]:
    if action in ("nothing", "incomplete"):
        yield MESSAGES[action]
        return
    if done := counts[ActionResult.DONE]:
        yield MESSAGES[action].format(_videos(done))
    for result, (one, several, words) in FAILURE_MESSAGES.items():
        count = counts[result]
        if count and action == "undo" and result is ActionResult.NOT_FOUND:
            was = "was" if count == 1 else "were"
            yield f"Too late to undo: {_videos(count)} {was} permanently deleted."
        elif count:
            yield f"{count} {one if count == 1 else several} {words}"


def _videos(count: int) -> str:
    return "1 video" if count == 1 else f"{count} videos"


def _count(text: str) -> int:
    return min(whole_number(text, max_digits=9) or 0, MAX_SELECTED)
