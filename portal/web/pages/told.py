"""What has come of an action on videos, told in the address of the page that follows it.

The address holds counts and ids, no words: what is said is said here.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from werkzeug.datastructures import MultiDict

from portal.videos.deletion import UNDO_S
from portal.videos.publishing import parse_video_id

# Of one action; as many as a page of the table has.
MAX_SELECTED = 50
SHOWN_S = 8


class Did(StrEnum):
    """What was asked for."""

    DELETED = "deleted"
    RESTORED = "restored"
    TAGS_ADDED = "tags-added"
    TAGS_REMOVED = "tags-removed"
    CATEGORY = "category"
    VISIBILITY = "visibility"
    NOTHING = "nothing"
    INCOMPLETE = "incomplete"


class Outcome(StrEnum):
    """What came of it for one video."""

    DONE = "done"
    OTHERS = "others"
    GONE = "gone"
    BUSY = "busy"
    FULL = "full"


WORDS = {
    Did.DELETED: "{} deleted.",
    Did.RESTORED: "{} brought back.",
    Did.TAGS_ADDED: "Tags added to {}.",
    Did.TAGS_REMOVED: "Tags removed from {}.",
    Did.CATEGORY: "Category set for {}.",
    Did.VISIBILITY: "Visibility set for {}.",
    Did.NOTHING: "Nothing was changed: choose videos first.",
    Did.INCOMPLETE: "Nothing was changed: say first what to set.",
}
# Of one video, and of several.
WHY_NOT = {
    Outcome.OTHERS: ("{} belongs to someone else.", "{} belong to someone else."),
    Outcome.GONE: ("{} is not there any more.", "{} are not there any more."),
    Outcome.BUSY: (
        "{} was changed by someone else meanwhile: try again.",
        "{} were changed by someone else meanwhile: try again.",
    ),
    Outcome.FULL: ("{} has no room for more tags.", "{} have no room for more tags."),
}
TOO_LATE = "Too late to undo: {} removed for good."


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """A sentence or two; with ids of videos that can still be brought back, for `shown_s`."""

    words: str
    undo_ids: list[str]
    shown_s: int


def told_arguments(
    did: Did, outcomes: Mapping[Outcome, int], *, undo_ids: list[str] | None = None
) -> dict[str, Any]:
    """The arguments of an address that `told_view` reads."""
    counts = {outcome.value: count for outcome, count in outcomes.items() if count}
    return {"did": did.value, **counts, "undo": undo_ids or []}


def told_view(args: MultiDict[str, str]) -> Told | None:
    """What an address tells; None if nothing."""
    did = next((it for it in Did if it.value == args.get("did")), None)
    if did is None:
        return None
    counts = {it: _count(args.get(it.value, "")) for it in Outcome}
    ids = args.getlist("undo")[:MAX_SELECTED] if did is Did.DELETED else []
    undo_ids = [text for text in ids if parse_video_id(text)]
    words = " ".join(_sentences(did, counts))
    if not words:
        return None
    return Told(words=words, undo_ids=undo_ids, shown_s=UNDO_S if undo_ids else SHOWN_S)


def _sentences(did: Did, counts: Mapping[Outcome, int]) -> list[str]:
    if did in (Did.NOTHING, Did.INCOMPLETE):
        return [WORDS[did]]
    done = counts[Outcome.DONE]
    said = [WORDS[did].format(_videos(done))] if done else []
    if did is Did.RESTORED and counts[Outcome.GONE]:
        gone = counts[Outcome.GONE]
        said.append(TOO_LATE.format(f"{_videos(gone)} {'was' if gone == 1 else 'were'}"))
        counts = {**counts, Outcome.GONE: 0}
    for outcome, (one, several) in WHY_NOT.items():
        if count := counts[outcome]:
            said.append((one if count == 1 else several).format(count))
    return said


def _videos(count: int) -> str:
    return "1 video" if count == 1 else f"{count} videos"


def _count(text: str) -> int:
    # Anyone may have written the address.
    return min(int(text), MAX_SELECTED) if text.isascii() and text.isdigit() else 0
