"""HLS from a private bucket: the portal serves playlists, and storage serves segments.

A video has one address for players, `/hls/<id>/master.m3u8`, which gives the master playlist of its
current version. All other files have the number of their attempt in their address, so viewers can
finish the version that they began.

Playlists have the portal's own addresses, and every segment address in them is signed. With
`PLAYBACK_BASE_URL` set, the master playlist names media playlists there (a CDN in front of the
bucket), whose segments are beside them. Videos that are cut have signed addresses even then,
because others of their films could be guessed. Private videos are always played from the portal,
segment by segment. Viewers get the output of a ready video's published attempt, and complete
renditions that later attempts added; before that, a growing preview.

The whole film of a cut video is for those who may edit the video, below `/videos/<id>/film/`. It is
played from the portal, segment by segment.

Addresses with a playback token have the token in their path: `/p/<token>/…`. Relative addresses in
a playlist keep it, so every player sends it.

With `start` and `end`, playlists are those of a clip, cut at segment bounds. They all come from
the portal.

A master playlist grows until the ladder is complete, and follows the current version, so it is
cached briefly. The files that it names never change.
"""

import re
from uuid import UUID

from quart import Blueprint, Response, current_app, redirect, render_template, request
from werkzeug.wrappers import Response as WerkzeugResponse

from portal.database.models import Video, VideoStatus
from portal.errors import NotFound, VideoNotFound
from portal.features.captions import service as captions
from portal.features.cuts import service as cuts
from portal.features.watching import preview
from portal.films.captions import captions_root
from portal.http.auth import Policy, declaration_of, policy
from portal.http.clips import PARAMETERS, Clip, parse_clip
from portal.http.composition import web_context
from portal.http.server.headers import OPEN_TO_ALL, conditional_response
from portal.http.videos import read_progress, read_served, read_video
from portal.storage.bucket import MASTER_MAX_AGE_S
from portal.storage.calls import ObjectMissing
from portal.storage.objects import output_prefix
from portal.transcoding.encoding.sound_samples import WAVEFORM_NAME
from portal.transcoding.packaging.hls import media_playlist_name
from portal.transcoding.packaging.master import MASTER_NAME, without_missing_captions
from portal.transcoding.planning.storyboard import STORYBOARD_NAME
from portal.videos.chapters import read_chapters
from portal.videos.poster import poster_key, poster_revision
from portal.videos.reading import Delivery, Served, delivery_of, fetch_served

blueprint = Blueprint("playback", __name__)

PLAYLIST_SUFFIX = ".m3u8"
OUTPUT_NAME = re.compile(r"(?:[a-z0-9_-]+/)?[a-z0-9_-]+\.(?:m3u8|m4s|mp4|vtt|jpg)")
PLAYLIST_TYPE = "application/vnd.apple.mpegurl"
VTT_TYPE = "text/vtt; charset=utf-8"
WAVEFORM_TYPE = "application/octet-stream"
# Time for which players may cache a playlist; its signatures live far longer.
PLAYLIST_MAX_AGE_S = 300
POSTER_MAX_AGE_S = 300


@blueprint.after_request
async def open_to_players(response: Response) -> Response:
    """Let players on any site, and in sandboxed frames, read responses and errors."""
    declared = declaration_of(current_app, str(request.endpoint))
    if declared and declared.policy is Policy.PLAY:
        response.headers.update(OPEN_TO_ALL)
    return response


@blueprint.get("/hls/<uuid:video_id>/master.m3u8")
@policy(Policy.PLAY)
async def stream(video_id: UUID) -> Response:
    """Return the master playlist of a video's current version, once there is one."""
    return await _master_response(await read_video(str(video_id)), base="")


@blueprint.get("/hls/<uuid:video_id>/<int:attempt>/master.m3u8")
@policy(Policy.PLAY)
async def attempt_master(video_id: UUID, attempt: int) -> WerkzeugResponse | Response:
    """Return the master playlist of the current version, or redirect to it.

    The address of a video's stream had this form up to version 0.5.
    """
    video = await read_video(str(video_id))
    if attempt == video.published_attempt:
        return await _master_response(video, base="../")
    # Relative, because the address may be below a playback token.
    query = request.query_string.decode()
    return redirect(f"../{MASTER_NAME}" + (query and f"?{query}"))


@blueprint.get("/hls/<uuid:video_id>/<int:attempt>/<path:name>")
@policy(Policy.PLAY)
async def output(video_id: UUID, attempt: int, name: str) -> WerkzeugResponse | Response:
    """Return a playlist of a ready video, or redirect to any other file of its output."""
    if not OUTPUT_NAME.fullmatch(name):
        raise NotFound
    # Files outside of a rendition's folder are served from the published attempt only.
    served = await read_served(video_id, attempt, rendition=name.rpartition("/")[0])
    key = output_prefix(video_id, attempt) + name
    if not served.is_open and not await _is_named(served, video_id, key):
        raise VideoNotFound
    return await _output_response(key, await _requested_clip(video_id, name), served.delivery)


@blueprint.get("/hls/<uuid:video_id>/captions/<path:name>")
@policy(Policy.PLAY)
async def stored_captions(video_id: UUID, name: str) -> WerkzeugResponse | Response:
    """Return captions in segments, as the master playlist names them."""
    video = await read_video(str(video_id))
    folder = name.partition("/")[0]
    if not OUTPUT_NAME.fullmatch(name) or folder not in await captions.list_served_folders(
        video_id
    ):
        raise NotFound
    key = captions_root(video_id) + name
    clip = await _requested_clip(video_id, name)
    return await _output_response(key, clip, delivery_of(video))


@blueprint.get("/hls/<uuid:video_id>/preview/<path:name>")
@policy(Policy.PLAY)
async def growing(video_id: UUID, name: str) -> WerkzeugResponse | Response:
    """Return a playlist of a growing preview, or redirect to the file of the ready video."""
    video = await read_video(str(video_id))
    if video.status is VideoStatus.PROCESSING:
        text = await preview.read_playlist(video_id, name, web_context().storage)
        return await _text_response(text, PLAYLIST_TYPE, 0)
    if video.status is not VideoStatus.READY or not OUTPUT_NAME.fullmatch(name):
        raise NotFound
    # Relative, because the address may be below a playback token.
    root = "../" * (name.count("/") + 1)
    response = redirect(root + await preview.finished_path(video, name))
    response.headers["Cache-Control"] = _cache_control(0)
    return response


@blueprint.get("/videos/<uuid:video_id>/poster.jpg")
@policy(Policy.PLAY)
async def poster(video_id: UUID) -> WerkzeugResponse:
    """Redirect to the poster image of a ready video, which belongs to its page."""
    video = await read_video(str(video_id), of_page=True)
    if video.published_attempt is None or not video.has_poster:
        raise NotFound
    key = poster_key(video)
    # A replaced poster is removed, so only addresses with its revision are cached.
    is_named = request.args.get("v") == poster_revision(video)
    return await _redirect_to_storage(
        key, delivery_of(video), most_age_s=POSTER_MAX_AGE_S if is_named else 0
    )


@blueprint.get("/videos/<uuid:video_id>/storyboard.vtt")
@policy(Policy.PLAY)
async def storyboard(video_id: UUID) -> Response:
    """Return the thumbnails for a seek bar as WebVTT."""
    video = await read_video(str(video_id))
    if video.published_attempt is None or not video.has_storyboard:
        raise NotFound
    folder = output_prefix(video.id, video.published_attempt)
    playlists = web_context().playlists
    delivery = delivery_of(video)
    max_age_s = await playlists.max_age_s(PLAYLIST_MAX_AGE_S, delivery)
    base = f"{request.root_path}/{folder}"
    text = await playlists.storyboard(folder + STORYBOARD_NAME, delivery, base=base)
    return await _text_response(text, VTT_TYPE, max_age_s)


@blueprint.get("/videos/<uuid:video_id>/film/<int:attempt>/<path:name>")
@policy(Policy.EDIT)
async def film_output(video_id: UUID, attempt: int, name: str) -> WerkzeugResponse | Response:
    """Return a playlist of the whole film of a video, or redirect to any other file of it."""
    served = await fetch_served(video_id, attempt, rendition=name.rpartition("/")[0])
    if served is None or not (served.is_film or served.is_open) or not OUTPUT_NAME.fullmatch(name):
        raise NotFound
    return await _output_response(output_prefix(video_id, attempt) + name, None, Delivery.PORTAL)


@blueprint.get("/videos/<uuid:video_id>/film/captions/<path:name>")
@policy(Policy.EDIT)
async def film_captions(video_id: UUID, name: str) -> WerkzeugResponse | Response:
    """Return captions in segments, as the master playlist of the whole film names them."""
    return await stored_captions(video_id, name)


@blueprint.get("/videos/<uuid:video_id>/film/storyboard.vtt")
@policy(Policy.EDIT)
async def film_storyboard(video_id: UUID) -> Response:
    """Return the thumbnails of the whole film of a video, for those who cut it."""
    present = await cuts.read(video_id)
    if present.film_attempt is None or not present.has_film_storyboard:
        raise NotFound
    key = output_prefix(video_id, present.film_attempt) + STORYBOARD_NAME
    playlists = web_context().playlists
    base = f"/videos/{video_id}/film/{present.film_attempt}/"
    text = await playlists.storyboard(key, Delivery.PORTAL, base=base)
    return await conditional_response(text, content_type=VTT_TYPE)


@blueprint.get("/videos/<uuid:video_id>/film/waveform.bin")
@policy(Policy.EDIT)
async def film_waveform(video_id: UUID) -> Response:
    """Return the loudness of the whole film of a video: a byte for each of many equal parts.

    Films of former versions have none (204).
    """
    present = await cuts.read(video_id)
    if present.film_attempt is None:
        raise NotFound
    try:
        # The file is small: some 70 KB at most.
        key = output_prefix(video_id, present.film_attempt) + WAVEFORM_NAME
        peaks = await web_context().storage.get(key)
    except ObjectMissing:
        return Response(status=204)
    return await conditional_response(peaks, content_type=WAVEFORM_TYPE)


@blueprint.get("/videos/<uuid:video_id>/captions/tracks")
@policy(Policy.PLAY)
async def caption_tracks(video_id: UUID) -> Response:
    """Render the fragment with the captions that a player offers."""
    video = await read_video(str(video_id))
    tracks = (await read_progress(video.id)).captions
    text = await render_template("captions/_tracks.html", video=video, captions=tracks)
    return await conditional_response(text, content_type="text/html; charset=utf-8")


@blueprint.get("/videos/<uuid:video_id>/captions/<language>.vtt")
@policy(Policy.PLAY)
async def captions_file(video_id: UUID, language: str) -> Response:
    """Return the latest saved captions, for the player of a page."""
    video = await read_video(str(video_id))
    row = await captions.read_captions_of(video.id, language)
    return await conditional_response(row.text or "", content_type=VTT_TYPE)


@blueprint.get("/videos/<uuid:video_id>/chapters.vtt")
@policy(Policy.PLAY)
async def chapters_file(video_id: UUID) -> Response:
    """Return the present chapters, for the time bar of a player."""
    video = await read_video(str(video_id))
    text = (await read_chapters(video.id)).webvtt(video.duration_s)
    return await conditional_response(text, content_type=VTT_TYPE)


async def _requested_clip(video_id: UUID, name: str) -> Clip | None:
    """Return the clip that the request of a playlist is for. Raises `InvalidClip`."""
    if not name.endswith(PLAYLIST_SUFFIX) or not set(PARAMETERS) & set(request.args):
        return None
    return parse_clip(request.args, (await read_video(str(video_id))).duration_s)


async def _is_named(served: Served, video_id: UUID, key: str) -> bool:
    """Return whether a playlist that viewers get names this object."""
    folder = key.split("/")[-2]
    for attempt in served.naming_attempts:
        playlist = output_prefix(video_id, attempt) + media_playlist_name(folder)
        if await web_context().playlists.names(playlist, key):
            return True
    return False


async def _master_response(video: Video, *, base: str) -> Response:
    """Return the master playlist of a video, with addresses below `base`.

    After an undone cut or replacement the stored one names captions of before, until the present
    ones are stored. They are left out.
    """
    if video.published_attempt is None:
        raise NotFound
    key = output_prefix(video.id, video.published_attempt) + MASTER_NAME
    clip = await _requested_clip(video.id, MASTER_NAME)
    delivery = delivery_of(video)
    text = await web_context().playlists.master(key, clip, delivery, base=base)
    folders = await captions.list_served_folders(video.id)
    max_age_s = 0 if delivery is Delivery.PORTAL else MASTER_MAX_AGE_S
    return await _text_response(without_missing_captions(text, folders), PLAYLIST_TYPE, max_age_s)


async def _output_response(
    key: str, clip: Clip | None, delivery: Delivery
) -> WerkzeugResponse | Response:
    """Return a playlist, or redirect to any other object."""
    if not key.endswith(PLAYLIST_SUFFIX):
        return await _redirect_to_storage(key, delivery)
    playlists = web_context().playlists
    if delivery is Delivery.PORTAL:
        return await _text_response(await playlists.text(key, clip), PLAYLIST_TYPE, 0)
    max_age_s = await playlists.max_age_s(PLAYLIST_MAX_AGE_S, delivery)
    text = await playlists.media(key, clip, delivery)
    return await _text_response(text, PLAYLIST_TYPE, max_age_s)


async def _redirect_to_storage(
    key: str, delivery: Delivery, *, most_age_s: int = 0
) -> WerkzeugResponse:
    """Redirect to an object; the redirect may be cached for `most_age_s` at most."""
    playlists = web_context().playlists
    response = redirect(await playlists.address(key, delivery))
    max_age_s = await playlists.max_age_s(most_age_s, delivery)
    response.headers["Cache-Control"] = _cache_control(max_age_s)
    return response


async def _text_response(text: str, content_type: str, max_age_s: int) -> Response:
    cache_control = _cache_control(max_age_s)
    return await conditional_response(text, content_type=content_type, cache_control=cache_control)


def _cache_control(max_age_s: int) -> str:
    """Return a header for the viewer's cache alone, which revalidates each time without an age."""
    return f"private, max-age={max_age_s}" if max_age_s else "private, no-cache"
