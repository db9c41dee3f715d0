"""Page on which editors cut a video: its whole film with a strip, its transcript, and its cuts.

The page's script reads and saves the cuts by the API (`api_cuts`). Until the film can be cut, the
page says so, and polls for the editor.
"""

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from quart import Blueprint, render_template, request, url_for
from quart.typing import ResponseReturnValue

from portal.database.models import Video
from portal.features.captions import service as captions
from portal.features.cuts import service as cuts
from portal.http.auth import VIDEO_UNAVAILABLE, Policy, policy
from portal.http.composition import web_context
from portal.http.server.context import expect_player
from portal.http.videos import read_progress, read_video
from portal.transcoding.captions.sentences import join_sentences
from portal.transcoding.packaging.master import Kind
from portal.transcoding.packaging.webvtt import Cue, read_webvtt
from portal.transcoding.planning.ladder import plan_renditions
from portal.transcoding.probing.facts import interpret
from portal.videos.reading import film_below

blueprint = Blueprint("cuts", __name__)

# Frame rate of a film without one.
FRAMES_PER_S = 30.0
# Films with fewer frames are cut between them, too.
LEAST_FRAMES_PER_S = 10.0
# A sentence that takes longer is shown as several.
LONGEST_SENTENCE_S = 15.0


@dataclass(frozen=True, slots=True)
class Film:
    """Whole film of a video: the addresses of its parts, its length, and its frame rate.

    `address` is its stream as the API names it, which tells it from the film of another file. The
    picture ends at `picture_s`, and the sound may be longer.
    """

    address: str
    source: str
    storyboard: str
    waveform: str
    duration_s: float
    picture_s: float
    frames_per_s: float


@blueprint.get("/videos/<video_id>/cuts")
@policy(Policy.EDIT)
async def editor(video_id: str) -> str:
    """Render the page."""
    expect_player(request.scope)
    return await render_template("cuts/page.html", **await _values(video_id))


@blueprint.get("/videos/<video_id>/cuts/editor")
@policy(Policy.EDIT, unavailable_template=VIDEO_UNAVAILABLE)
async def editor_fragment(video_id: str) -> str:
    """Render the editor, or why the video can't be cut yet, which polls itself."""
    return await render_template("cuts/_editor.html", **await _values(video_id))


@blueprint.get("/videos/<video_id>/cuts/state")
@policy(Policy.EDIT, unavailable_template=VIDEO_UNAVAILABLE)
async def state(video_id: str) -> ResponseReturnValue:
    """Render the state of the cuts, which polls itself while a cut is made."""
    video = await read_video(video_id)
    recorded = await cuts.read(video.id)
    return await render_template("cuts/_state.html", video=video, cuts=recorded)


@blueprint.app_template_global()
async def whole_length_s(video: Video) -> float | None:
    """Return the length of the whole film of a cut video; None for a video that isn't cut."""
    return (await cuts.read(video.id)).film_s if video.keep else None


async def _values(video_id: str) -> dict[str, Any]:
    """Return the values of the editor's template. `film` is None until the film can be cut.

    A CDN gives the files of the whole film to anyone who knows their names, so the editor warns.
    """
    video = await read_video(video_id)
    recorded = await cuts.read(video.id)
    return {
        "video": video,
        "cuts": recorded,
        "film": await _read_film(video, recorded),
        "transcript": await _read_transcript(video, recorded.film_s or 0.0),
        "transcoding": await read_progress(video.id),
        "has_cdn": bool(web_context().config.playback_base_url),
    }


async def _read_film(video: Video, recorded: cuts.Cuts) -> Film | None:
    """Return the whole film of a video; None until it and its previews are made."""
    if recorded.film_attempt is None or recorded.film_s is None or not recorded.has_all_previews:
        return None
    renditions = (await read_progress(video.id)).renditions
    rates = [rendition.frame_rate for rendition in renditions if rendition.frame_rate]
    has_sound = any(rendition.kind is Kind.AUDIO for rendition in renditions)
    has_storyboard = recorded.has_film_storyboard
    return Film(
        address=film_below(web_context().config.public_url, video.id, recorded.film_attempt),
        source=film_below("", video.id, recorded.film_attempt),
        storyboard=url_for("playback.film_storyboard", video_id=video.id) if has_storyboard else "",
        waveform=url_for("playback.film_waveform", video_id=video.id) if has_sound else "",
        duration_s=recorded.film_s,
        picture_s=_picture_s(video, recorded.film_s),
        frames_per_s=max(LEAST_FRAMES_PER_S, *rates) if rates else FRAMES_PER_S,
    )


def _picture_s(video: Video, film_s: float) -> float:
    """Return when the picture of a film ends, from the probe of its file."""
    if not video.probe_answer:
        return film_s
    plan = plan_renditions(interpret(json.loads(video.probe_answer)))
    return min(plan.picture_s or film_s, film_s)


async def _read_transcript(video: Video, film_s: float) -> tuple[str, Sequence[Cue]] | None:
    """Return the language and the sentences of the default captions, or of others.

    They have the times of the whole film, and begin before its end. The result is None for a video
    without captions.
    """
    track = await captions.read_default_captions(video.id)
    if track is None:
        return None
    text = (track.text if video.keep is None else track.whole_text) or ""
    # A thread, because a text may have megabytes.
    sentences = await asyncio.to_thread(_sentences_in, text)
    return track.language, [sentence for sentence in sentences if sentence.start_s < film_s]


def _sentences_in(text: str) -> Sequence[Cue]:
    return join_sentences(read_webvtt(text), least_s=0.0, longest_s=LONGEST_SENTENCE_S)
