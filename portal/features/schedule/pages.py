"""Panel of the workshop for the schedule of a video.

With scripts, the form sends instants in UTC beside the local times that were typed. Without, the
typed times are UTC.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from quart import Blueprint, render_template, request
from quart.typing import ResponseReturnValue
from werkzeug.datastructures import MultiDict

from portal.accounts.permissions import Action, audience_of
from portal.database.models import Video
from portal.errors import InvalidRequest
from portal.features.schedule.api import ScheduleRecord
from portal.features.schedule.service import ScheduleChanged, Times, read_times, save_times
from portal.features.workshop.pages import announces_save, redirect_to_panel, render_workshop
from portal.http.auth import VIDEO_UNAVAILABLE, Policy, policy, principal
from portal.http.schemas.validation import recorded_shape, validated
from portal.http.videos import read_video

blueprint = Blueprint("schedule", __name__)

# Value of a field for a local time.
TYPED_MINUTE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d")


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleForm:
    """Form with `typed` times in UTC or invalid texts, by the members of `ScheduleRecord`.

    `times` are recorded. The form replaces the schedule of this `version`.
    """

    video: Video
    times: Times
    typed: Mapping[str, str]
    version: str
    may_delete: bool
    status: int = 200
    faults: Mapping[str, str] = field(default_factory=dict)
    is_saved: bool = False

    @property
    def is_conflict(self) -> bool:
        """Return whether someone else has changed the schedule."""
        return self.status == 409

    @property
    def is_deletion_near(self) -> bool:
        """Return whether the page warns of the deletion."""
        return self.times.is_deletion_near(datetime.now(UTC))


@blueprint.post("/videos/<video_id>/schedule")
@policy(Policy.EDIT)
async def save_schedule(video_id: str) -> ResponseReturnValue:
    """Save the schedule, and show the result in the workshop."""
    form = await _save_form(video_id)
    if not form.is_saved:
        return await render_workshop(form.video, {"schedule": form}), form.status
    return redirect_to_panel(form.video.id, "schedule", saved="schedule")


@blueprint.post("/videos/<video_id>/schedule/panel")
@policy(Policy.EDIT, unavailable_template=VIDEO_UNAVAILABLE)
async def save_panel(video_id: str) -> ResponseReturnValue:
    """Save the schedule, and return the form with the result and the notice of the page."""
    form = await _save_form(video_id)
    text = await render_template("schedule/_panel.html", form=form)
    notice = await render_template("schedule/_notice.html", form=form, is_news=True)
    return text + notice, form.status


async def read_panel(video: Video) -> dict[str, object]:
    """Return the form, and whether the page announces that it was saved."""
    return {"schedule": await _recorded_form(video, is_saved=announces_save("schedule"))}


async def _recorded_form(video: Video, *, is_saved: bool = False) -> ScheduleForm:
    """Return the form with the recorded times."""
    times = await read_times(video.id)
    return ScheduleForm(
        video=video,
        times=times,
        typed=_texts_of(times),
        version=times.version,
        may_delete=(await principal()).may(Action.DELETE, on=audience_of(video)),
        is_saved=is_saved,
    )


async def _save_form(video_id: str) -> ScheduleForm:
    """Save the request's form; return the form with the result."""
    video = await read_video(video_id)
    fields = await request.form
    recorded = await _recorded_form(video)
    typed = {name: _typed_time(fields, name, text) for name, text in recorded.typed.items()}
    version = fields.get("version", "")
    try:
        body = {name: text or None for name, text in typed.items()}
        times = validated(ScheduleRecord, body).value()
        await save_times(video.id, times, versions={version}, by=await principal())
    except InvalidRequest as exc:
        unsaved = replace(recorded, typed=typed, version=version)
        return replace(unsaved, faults=exc.by_field, status=exc.status)
    except ScheduleChanged:
        # The next request replaces the schedule that the form shows now.
        return replace(await _recorded_form(video), typed=typed, status=409)
    return await _recorded_form(video, is_saved=True)


def _typed_time(fields: MultiDict[str, str], name: str, recorded: str) -> str:
    """Return a typed time, in UTC if it is valid.

    A form without the field keeps the recorded time.
    """
    text = fields.get(f"{name}.instant", fields.get(name, recorded)).strip()
    return f"{text}:00Z" if TYPED_MINUTE.fullmatch(text) else text


def _texts_of(times: Times) -> dict[str, str]:
    """Return times as fields take them, without fractions of seconds."""
    record = recorded_shape(ScheduleRecord, times).model_dump()
    return {name: (at or "").replace(".000000Z", "Z") for name, at in record.items()}
