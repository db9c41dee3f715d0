"""Chapters, captions, posters and statistics of a video move with its cuts, and come back."""

import re
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import pytest
from api_client import Client, answered
from page_rows import READY, cut_video, make_live, make_rendition, make_row, make_upload_row
from page_texts import page, words_of
from passes import tools_for
from psycopg.sql import SQL

from portal.database.connection import transaction
from portal.database.event_models import Event
from portal.database.models import (
    Caption,
    CaptionSource,
    PosterRequest,
    Publication,
    Version,
    Video,
    VideoStatus,
)
from portal.database.work_models import Transcription
from portal.features.captions import service as captions
from portal.features.captions.service import CaptionChange
from portal.features.posters import service as posters
from portal.features.statistics.cmcd import Device, Place, Record, SessionReport, State
from portal.features.statistics.folding import fold_inbox
from portal.features.statistics.intake import InboxReport, Visitor, write_reports
from portal.films.captions import TRANSCRIPTION, CaptionText
from portal.http.composition import WebContext
from portal.transcoding.packaging.webvtt import Cue, read_webvtt
from portal.videos.poster import poster_key, poster_revision
from portal.videos.words import find_said, videos_that_say

pytestmark = [pytest.mark.shared_app, pytest.mark.usefixtures("app")]

FILM_S = 100.0
KEEP = [[10.0, 20.0], [50.0, 80.0]]
CUES = [
    (5.0, 8.0, "a secret name"),
    (14.0, 56.0, "Over the secret join"),
    (70.0, 75.0, "the harbour"),
]
CHAPTERS = [("Intro", 0), ("Secret", 25), ("Harbour", 45), ("Home", 90)]


async def film(**columns: Any) -> Video:
    """Return a ready video of a hundred seconds without files."""
    video = await make_row(**{**READY, "duration_s": FILM_S, **columns})
    measured = {"codecs": "avc1", "bandwidth_bps": 1, "average_bandwidth_bps": 1}
    await make_rendition(video, "360p", frame_rate="25", size_bytes=1, segment_count=1, **measured)
    return video


async def save_captions(video: Video, *cues: tuple[float, float, str]) -> None:
    """Save captions as an editor does."""
    content = CaptionText.of(
        [Cue(start_s=start, end_s=end, text=text) for start, end, text in cues]
    )
    change = CaptionChange(content=content)
    await captions.put(video.id, "en", change)


async def shown_cues(video: Video) -> list[tuple[float, float, str]]:
    """Return the cues that viewers get."""
    track = await captions.read_captions_of(video.id, "en")
    cues = read_webvtt(track.text or "")
    assert track.cue_count == len(cues)
    return [(cue.start_s, cue.end_s, cue.text) for cue in cues]


async def test_captions_move_with_cuts_and_come_back() -> None:
    video = await film()
    await save_captions(video, *CUES)
    await cut_video(video, KEEP)
    cut = [(4.0, 16.0, "Over join"), (30.0, 35.0, "the harbour")]
    assert await shown_cues(video) == cut
    assert await videos_that_say(["secret"], among=SQL("true")) == []
    assert (await find_said(["harbour"], [video.id]))[video.id].seconds == 30
    # An editor corrects the captions of the cut film, with words after its end.
    corrected = [cut[0], (31.0, 36.0, "our harbour"), (50.0, 55.0, "beyond")]
    await save_captions(video, *corrected)
    video = await cut_video(video, [[0.0, 10.0], [60.0, 100.0]])
    assert await shown_cues(video) == [(5.0, 8.0, "a secret name"), (21.0, 26.0, "our harbour")]
    await cut_video(video, None)
    assert await shown_cues(video) == [*CUES[:2], (71.0, 76.0, "our harbour")]
    assert (await Caption.get(video_id=video.id)).whole_text is None


async def test_no_playlist_names_captions_that_are_not_stored(
    client: Client, resources: WebContext
) -> None:
    video = await film()
    await save_captions(video, *CUES)
    former = await video.current_version()
    await captions.store(video.id, tools_for(resources))
    address = f"/hls/{video.id}/{video.published_attempt}/master.m3u8"

    async def named() -> list[str]:
        """Return the captions that the master playlist of the first file names."""
        master = await (await client.get(address)).get_data(as_text=True)
        uris = re.findall(r"captions/.*playlist.m3u8", master)
        assert bool(uris) == ("SUBTITLES=" in master)
        return uris

    [stored_captions] = await named()
    await cut_video(video, KEEP)
    video = await cut_video(video, None)
    assert await named() == []
    await captions.store(video.id, tools_for(resources))
    await replace_file(video)
    await go_to(former)
    assert await named() == []
    await captions.store(video.id, tools_for(resources))
    [present] = await named()
    assert present != stored_captions
    assert (await client.get(f"/hls/{video.id}/{present}")).status_code == 200


async def test_captions_after_the_end_are_for_editors_alone(client: Client) -> None:
    video = await film()
    late = (
        "WEBVTT\n\n00:01:35.000 --> 00:01:45.000\nLast.\n\n00:01:40.000 --> 00:01:42.000\nSecret.\n"
    )
    address = f"/api/videos/{video.id}/captions/en"
    kind = {"Content-Type": "text/vtt"}
    put = await answered(await client.put(address, data=late, headers=kind), 201)
    assert put["cueCount"] == 1
    # A repetition is the same version, and editors read what was saved.
    assert (await answered(await client.put(address, data=late, headers=kind))) == put
    assert await (await client.get(address)).get_data(as_text=True) == late
    assert await shown_cues(video) == [(95.0, 105.0, "Last.")]
    assert await videos_that_say(["secret"], among=SQL("true")) == []
    # The part after the end takes nothing from the last cue.
    video = await cut_video(video, [[90.0, 100.0]])
    assert await shown_cues(video) == [(5.0, 10.0, "Last.")]
    await cut_video(video, None)
    assert await (await client.get(address)).get_data(as_text=True) == late


async def test_a_transcription_begins_anew_with_the_cut_film() -> None:
    video = await film()
    async with transaction():
        job_id = await TRANSCRIPTION.enqueue(video_id=video.id)
    await Transcription.create(video_id=video.id, job_id=job_id, text="WEBVTT\n", until_s=50.0)
    await cut_video(video, KEEP)
    request = await Transcription.get(video_id=video.id)
    assert (request.until_s, request.text) == (0.0, "")
    assert request.job_id != job_id


async def chapters_of(client: Client, video: Video) -> list[tuple[str, float]]:
    body = await answered(await client.get(f"/api/videos/{video.id}/chapters"))
    return [(chapter["title"], chapter["startSeconds"]) for chapter in body["chapters"]]


async def save_chapters(client: Client, video: Video, chapters: list[tuple[str, float]]) -> None:
    body = {"chapters": [{"title": title, "startSeconds": at_s} for title, at_s in chapters]}
    await answered(await client.put(f"/api/videos/{video.id}/chapters", json=body))


async def test_chapters_move_with_cuts_and_come_back(client: Client) -> None:
    video = await film()
    await save_chapters(client, video, CHAPTERS)
    await cut_video(video, KEEP)
    cut = [("Intro", 0), ("Harbour", 10)]
    assert await chapters_of(client, video) == cut
    # Saving them again changes nothing in the whole film.
    await save_chapters(client, video, [*cut, ("Crane", 30)])
    await save_chapters(client, video, cut)
    assert await chapters_of(client, video) == cut
    video = await cut_video(video, None)
    assert await chapters_of(client, video) == CHAPTERS
    # A chapter that takes the place of one at a join does not show those of the removed part.
    video = await cut_video(video, KEEP)
    await save_chapters(client, video, [("Opening", 0), ("Ships", 20)])
    assert await chapters_of(client, video) == [("Opening", 0), ("Ships", 20)]
    await cut_video(video, None)
    whole = [("Intro", 0), ("Opening", 10), ("Intro", 20), ("Secret", 25), ("Harbour", 45)]
    whole += [("Opening", 50), ("Ships", 60), ("Harbour", 80), ("Home", 90)]
    assert await chapters_of(client, video) == whole


DESCRIPTION = "0:00 A\n0:12 B\n0:25 C\n0:55 D"


async def described(client: Client, video: Video) -> list[tuple[str, float]]:
    """Return the linked times of a video's description: their text, and where they lead."""
    text = await page(client, f"/videos/{video.id}")
    [description] = re.findall(r"video-page__description.*?</p>", text, re.DOTALL)
    links = re.findall(r'data-seek="([^"]*)">([^<]*)', description)
    return [(words, float(at_s)) for at_s, words in links]


async def test_times_of_a_description_move_with_cuts_and_the_text_stays(client: Client) -> None:
    video = await film(description=DESCRIPTION)
    whole = [("0:00", 0), ("0:12", 12), ("0:25", 25), ("0:55", 55)]
    assert await described(client, video) == whole
    await cut_video(video, KEEP)
    assert await chapters_of(client, video) == [("A", 0), ("B", 2), ("C", 10), ("D", 15)]
    # The moments of A and C were removed.
    assert await described(client, video) == [("0:02", 2), ("0:15", 15)]
    text = await page(client, f"/videos/{video.id}")
    assert re.search(r'og:description"\s+content="0:00 A\s0:02 B\s0:25 C\s0:15 D', text)
    record = await answered(await client.get(f"/api/videos/{video.id}"))
    assert record["description"] == DESCRIPTION
    assert "0:12 B" in await page(client, f"/videos/{video.id}/edit")
    await cut_video(video, [[0.0, 30.0]])
    assert await chapters_of(client, video) == [("A", 0), ("B", 12), ("C", 25)]
    await cut_video(video, None)
    assert await described(client, video) == whole


async def test_times_that_are_written_for_a_cut_film_are_its_own(client: Client) -> None:
    video = await film(description=DESCRIPTION)
    await cut_video(video, KEEP)
    # A correction leaves the times that were there.
    edited = DESCRIPTION.replace("B", "Bridge") + "\n0:30 E"
    await answered(await client.patch(f"/api/videos/{video.id}", json={"description": edited}))
    assert await described(client, video) == [("0:02", 2), ("0:15", 15), ("0:30", 30)]
    expected = [("A", 0), ("Bridge", 2), ("C", 10), ("D", 15), ("E", 30)]
    assert await chapters_of(client, video) == expected
    video = await cut_video(video, None)
    assert (await described(client, video))[-1] == ("1:10", 70)
    assert (await chapters_of(client, video))[-1] == ("E", 70)


async def test_another_file_begins_with_the_times_that_viewers_got(client: Client) -> None:
    video = await film(description=DESCRIPTION)
    video = await cut_video(video, KEEP)
    former = await video.current_version()
    await replace_file(video)
    assert await described(client, video) == [("0:02", 2), ("0:15", 15)]
    await go_to(former)
    video = await cut_video(video, None)
    assert len(await described(client, video)) == 4


async def replace_file(video: Video, **columns: Any) -> Version:
    """Make a version of another file, which is not cut, the current one."""
    upload = await make_upload_row()
    version = await video.current_version()
    version.update_from_dict({"id": uuid4(), "storage_key": upload.key, "keep": None})
    version.update_from_dict({"base_id": None, "transcode_job_id": -3_000_000, **columns})
    await version.save(force_create=True)
    await go_to(version)
    return version


async def go_to(version: Version) -> Video:
    """Make a version the current one of its video."""
    await make_live(version)
    return await Video.get(id=version.video_id)


async def test_what_begins_after_the_end_of_a_shorter_file_is_for_editors_alone(
    client: Client,
) -> None:
    video = await film()
    await save_captions(video, *CUES)
    await save_chapters(client, video, CHAPTERS)
    former = await video.current_version()
    await replace_file(video, duration_s=60.0)
    assert await shown_cues(video) == CUES[:2]
    assert await videos_that_say(["harbour"], among=SQL("true")) == []
    assert await chapters_of(client, video) == CHAPTERS[:3]
    editable = await client.get(f"/api/videos/{video.id}/captions/en")
    assert "the harbour" in await editable.get_data(as_text=True)
    words = words_of(await page(client, f"/videos/{video.id}/replacement"))
    assert "viewers don\u2019t get them: English" in words
    assert "Chapters: 3. 1 more begins after the end" in words
    await go_to(former)
    assert await shown_cues(video) == CUES
    assert await chapters_of(client, video) == CHAPTERS


async def test_machine_captions_are_written_anew_for_another_file() -> None:
    video = await film()
    await save_captions(video, *CUES)
    await captions.add(
        video.id, "pt-BR", CaptionChange(content=CaptionText.of([]), source=CaptionSource.MACHINE)
    )
    former = await video.current_version()
    await replace_file(video)
    assert [track.language for track in await captions.list_captions(video.id)] == ["en"]
    request = await Transcription.get(video_id=video.id)
    assert (request.language, request.text, request.error_code) == ("pt-BR", "", None)
    await go_to(former)
    assert len(await captions.list_captions(video.id)) == 2


async def test_file_that_makes_a_failed_video_ready_is_announced() -> None:
    video = await film(status=VideoStatus.FAILED, published_attempt=None)
    await replace_file(video, status=VideoStatus.READY, published_attempt=2)
    events = Event.filter(video_id=video.id, number__isnull=False).order_by("number")
    types = await events.values_list("type", flat=True)
    assert types[-2:] == ["video.replaced", "video.ready"]
    video = await Video.get(id=video.id)
    await replace_file(video, transcode_job_id=-3_000_001)
    assert await events.filter(type="video.ready").count() == 1


async def watch(video: Video, start_s: float, end_s: float, viewer: bytes) -> None:
    """Count a part that a viewer played."""
    moments = [(start_s, State.PLAYING), (end_s, State.PAUSED)]
    records = tuple(Record(int(at_s * 1000), 0, state, int(at_s * 1000)) for at_s, state in moments)
    session = SessionReport(
        str(video.id), viewer.hex(), Device.OTHER, Place.PAGE, site="", records=records
    )
    visitor = Visitor(datetime.now(UTC).date(), viewer, networks=[])
    await write_reports([InboxReport.of(session, visitor, video.id)])
    await fold_inbox()


async def test_retention_follows_the_cuts(client: Client) -> None:
    video = await film()
    await watch(video, 0, 60, b"one")
    await cut_video(video, KEEP)
    path = f"/api/videos/{video.id}/statistics"
    statistics = await answered(await client.get(path))
    # The first 20 of the 40 s were watched in the whole film.
    assert statistics["retention"] == [1.0] * 50 + [0.0] * 50
    await watch(video, 10, 40, b"two")
    statistics = await answered(await client.get(path))
    assert statistics["retention"] == [0.5] * 25 + [1.0] * 25 + [0.5] * 50
    assert statistics["averageShare"] == pytest.approx((0.6 + 0.75) / 2)
    await cut_video(video, None)
    statistics = await answered(await client.get(path))
    assert statistics["retention"] == [0.5] * 50 + [1.0] * 10 + [0.5] * 20 + [0.0] * 20


async def test_a_poster_that_shows_a_removed_frame_is_hidden() -> None:
    video = await film()
    chosen_path = posters.requested_path(1)
    await Publication.filter(id=video.id).update(
        poster_version=1, poster_path=chosen_path, poster_time_s=30.0
    )
    chosen = f"hls/{video.id}/posters/poster-1.jpg"
    video = await Video.get(id=video.id)
    of_film = poster_revision(video)
    video = await cut_video(video, KEEP)
    # Browsers that have the removed frame don't show it any more.
    assert poster_revision(video) != of_film
    assert poster_key(video) == f"hls/{video.id}/{video.published_attempt}/poster.jpg"
    video = await cut_video(video, [[25.0, 60.0]])
    assert poster_key(video) == chosen
    video = await cut_video(video, KEEP)
    # A request is for a time of the cut film.
    await posters.request_poster(video.id, time_s=12.0)
    assert (await PosterRequest.get(video_id=video.id)).time_s == 52.0
    video = await cut_video(video, None)
    assert poster_key(video) == chosen


async def test_another_file_shows_nothing_that_was_cut_before(client: Client) -> None:
    video = await film(poster_version=1, poster_path=posters.requested_path(1), poster_time_s=30.0)
    await save_captions(video, *CUES)
    await save_chapters(client, video, CHAPTERS)
    video = await cut_video(video, KEEP)
    cues = await shown_cues(video)
    chapters = await chapters_of(client, video)
    former = await video.current_version()
    other = await replace_file(video)
    for version in (other, former, other):
        present = await go_to(version)
        assert await shown_cues(present) == cues
        assert await chapters_of(client, present) == chapters
        assert poster_key(present).endswith(f"/{present.published_attempt}/poster.jpg")


async def test_captions_and_chapters_come_back_with_the_former_file(client: Client) -> None:
    video = await film()
    await save_captions(video, *CUES)
    await save_chapters(client, video, CHAPTERS)
    video = await cut_video(video, KEEP)
    former = await video.current_version()
    track = await Caption.get(video_id=video.id)
    other = await replace_file(video)
    # An editor changes both for the new file, and adds a language.
    edited = [(1.0, 2.0, "a new voice")]
    await save_captions(video, *edited)
    await captions.add(video.id, "de", CaptionChange(content=CaptionText.of([])))
    await save_chapters(client, video, [("Take two", 0)])

    video = await go_to(former)
    back = await Caption.get(video_id=video.id)
    assert (back.id, back.written_version) == (track.id, None)
    # Folders never change, so the name of the new folder was never used.
    assert back.version > track.version + 1
    video = await cut_video(video, None)
    assert await shown_cues(video) == CUES
    assert await chapters_of(client, video) == CHAPTERS
    assert await videos_that_say(["secret"], among=SQL("true")) == [video.id]

    video = await go_to(other)
    assert await shown_cues(video) == edited
    assert await chapters_of(client, video) == [("Take two", 0)]
    assert await Caption.filter(video_id=video.id).count() == 2
    video = await go_to(await Version.get(id=video.id))
    assert await shown_cues(video) == CUES
    assert await chapters_of(client, video) == CHAPTERS
