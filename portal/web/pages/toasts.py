"""Toasts: the message about an action on videos, on the page that follows it.

The address of that page holds counts and ids, and the messages are here.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from werkzeug.datastructures import MultiDict

from portal.videos.deletion import UNDO_S
from portal.videos.reading import parse_video_id

# Of one action; as many as a page of the table has.
MAX_SELECTED = 50
TIMEOUT_S = 8


class ToastKind(StrEnum):
    """What was done, or why nothing was."""

    DELETED = "deleted"
    RESTORED = "restored"
    TAGS_ADDED = "tags-added"
    TAGS_REMOVED = "tags-removed"
    CATEGORY = "category"
    VISIBILITY = "visibility"
    NOTHING = "nothing"
    INCOMPLETE = "incomplete"


class ActionResult(StrEnum):
    """What came of an action for one video."""

    DONE = "done"
    FORBIDDEN = "others"
    NOT_FOUND = "gone"
    CONFLICT = "busy"
    TAG_LIMIT = "full"


MESSAGES = {
    ToastKind.DELETED: "{} deleted.",
    ToastKind.RESTORED: "{} restored.",
    ToastKind.TAGS_ADDED: "Tags added to {}.",
    ToastKind.TAGS_REMOVED: "Tags removed from {}.",
    ToastKind.CATEGORY: "Category set for {}.",
    ToastKind.VISIBILITY: "Visibility set for {}.",
    ToastKind.NOTHING: "Nothing was changed: choose videos first.",
    ToastKind.INCOMPLETE: "Nothing was changed: choose a value first.",
}
# Of one video, and of several.
FAILURE_MESSAGES = {
    ActionResult.FORBIDDEN: (
        "{} was not changed: you can change only your own videos.",
        "{} were not changed: you can change only your own videos.",
    ),
    ActionResult.NOT_FOUND: ("{} is not there any more.", "{} are not there any more."),
    ActionResult.CONFLICT: (
        "{} was changed by someone else meanwhile: try again.",
        "{} were changed by someone else meanwhile: try again.",
    ),
    ActionResult.TAG_LIMIT: ("{} has no room for more tags.", "{} have no room for more tags."),
}
TOO_LATE = "Too late to undo: {} removed for good."


@dataclass(frozen=True, slots=True, kw_only=True)
class Toast:
    """A sentence or two; with ids of videos that can still be brought back, for `timeout_s`."""

    message: str
    undo_ids: list[str]
    timeout_s: int


def toast_arguments(
    kind: ToastKind, results: Mapping[ActionResult, int], *, undo_ids: list[str] | None = None
) -> dict[str, Any]:
    """The arguments of an address that `toast_of` reads."""
    counts = {result.value: count for result, count in results.items() if count}
    return {"did": kind.value, **counts, "undo": undo_ids or []}


def toast_of(args: MultiDict[str, str]) -> Toast | None:
    """The toast that an address asks for, if it does."""
    kind = next((it for it in ToastKind if it.value == args.get("did")), None)
    if kind is None:
        return None
    counts = {it: _count(args.get(it.value, "")) for it in ActionResult}
    ids = args.getlist("undo")[:MAX_SELECTED] if kind is ToastKind.DELETED else []
    undo_ids = [text for text in ids if parse_video_id(text)]
    message = " ".join(_sentences(kind, counts))
    if not message:
        return None
    return Toast(message=message, undo_ids=undo_ids, timeout_s=UNDO_S if undo_ids else TIMEOUT_S)


def _sentences(kind: ToastKind, counts: Mapping[ActionResult, int]) -> list[str]:
    if kind in (ToastKind.NOTHING, ToastKind.INCOMPLETE):
        return [MESSAGES[kind]]
    done = counts[ActionResult.DONE]
    sentences = [MESSAGES[kind].format(_videos(done))] if done else []
    if kind is ToastKind.RESTORED and counts[ActionResult.NOT_FOUND]:
        gone = counts[ActionResult.NOT_FOUND]
        sentences.append(TOO_LATE.format(f"{_videos(gone)} {'was' if gone == 1 else 'were'}"))
        counts = {**counts, ActionResult.NOT_FOUND: 0}
    for result, (one, several) in FAILURE_MESSAGES.items():
        if count := counts[result]:
            sentences.append((one if count == 1 else several).format(count))
    return sentences


def _videos(count: int) -> str:
    return "1 video" if count == 1 else f"{count} videos"


def _count(text: str) -> int:
    # Anyone may have written the address.
    return min(int(text), MAX_SELECTED) if text.isascii() and text.isdigit() else 0
