"""Captions in the API and in storage: complete at any time, with conflicts of edits reported."""

import asyncio
import tracemalloc
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from api_client import Client, answered, faults, problem, run_sql
from page_rows import READY, change_video, make_rendition, make_row
from passes import make_playable, published_file, tools_for
from quart import Response
from running_portal import run_ffmpeg
from stored_objects import stored

from portal.database.connection import execute
from portal.database.event_models import Event
from portal.database.models import Caption, Video
from portal.errors import StorageUnavailable
from portal.features.captions import service as captions
from portal.features.captions.service import CaptionChange
from portal.films.captions import CAPTIONS, CaptionText
from portal.http.composition import WebContext
from portal.maintenance.recovery import recover
from portal.storage.bucket import Storage, objects_below

pytestmark = [pytest.mark.shared_app, pytest.mark.usefixtures("app")]

SRT = "1\n00:00:01,000 --> 00:00:02,500\nGood morning.\n"
LATER = SRT + "\n2\n00:01:00,000 --> 00:01:02,000\nA minute later.\n"
WEBVTT = "WEBVTT\n\n00:00:01.000 --> 00:00:02.500\nGood morning.\n"
SUBRIP = "application/x-subrip"
MIB = 1024**2
COPY_TRACK = """
INSERT INTO captions (
  video_id, language, label, is_default, source, text, cue_count, version, changed_at
)
SELECT video_id, 'x-' || number, number, is_default, source, text, cue_count, version, changed_at
FROM captions, generate_series(1, 99) AS number WHERE id = %s
"""


async def send(
    client: Client, method: str, path: str, text: str | bytes, *, etag: str = "", kind: str = SUBRIP
) -> Response:
    """Send a caption file, with an ETag in If-Match."""
    data = text.encode() if isinstance(text, str) else text
    headers = {"Content-Type": kind} | ({"If-Match": etag} if etag else {})
    return await client.open(f"/api/videos/{path}", method=method, data=data, headers=headers)


async def add(client: Client, video: Video, text: str = SRT, **options: str) -> dict[str, Any]:
    query = "&".join(f"{name}={value}" for name, value in {"language": "en", **options}.items())
    answer = await send(client, "POST", f"{video.id}/captions?{query}", text)
    return await answered(answer, 201)


async def store(video: Video, resources: WebContext) -> str:
    """Run the job that stores captions, and return the master playlist."""
    await captions.store(video.id, tools_for(resources))
    return (await resources.storage.get(f"hls/{video.id}/1/master.m3u8")).decode()


async def playable() -> Video:
    """Return a ready video without files."""
    video = await make_row(**{**READY, "duration_s": 90.0})
    measured = {"codecs": "avc1", "bandwidth_bps": 1, "average_bandwidth_bps": 1}
    await make_rendition(video, "360p", frame_rate="25", size_bytes=1, segment_count=1, **measured)
    return video


async def test_captions_are_added_replaced_listed_and_deleted(
    client: Client, resources: WebContext
) -> None:
    video = await playable()
    added = await add(client, video, language="EN-gb", isDefault="true")
    expected = {"language": "en-GB", "label": "English (United Kingdom)", "isDefault": True}
    assert added.items() >= {**expected, "source": "upload", "cueCount": 1}.items()
    track = f"{video.id}/captions/en-GB"

    master = await store(video, resources)
    named = f"captions/{added['version']}/playlist.m3u8"
    assert 'NAME="English (United Kingdom)",LANGUAGE="en-GB",DEFAULT=YES' in master
    assert f'URI="../{named}"' in master
    assert 'SUBTITLES="subtitles"' in master
    playlist = await client.get(f"/hls/{video.id}/{named}")
    assert (await playlist.get_data(as_text=True)).count(".vtt?") == 2
    # Players on other sites may write the language in any case.
    read = await client.get(f"/api/videos/{video.id}/captions/EN-GB")
    assert await read.get_data(as_text=True) == WEBVTT
    assert read.headers["ETag"] == f'"{added["version"]}"'
    track_file = await client.get(f"/videos/{video.id}/captions/en-GB.vtt")
    assert await track_file.get_data(as_text=True) == WEBVTT

    for number, text in enumerate((LATER, SRT, LATER), start=2):
        replaced = await answered(await send(client, "PUT", track, text))
        assert replaced["version"].endswith(f"-{number}")
        assert f"captions/{replaced['version']}/" in await store(video, resources)
    folders = {
        key.split("/")[3] for key in await stored(resources.storage, video.id) if "captions" in key
    }
    assert {name.rpartition("-")[2] for name in folders} == {"3", "4"}, "viewers may watch 3"
    listed = await answered(await client.get(f"/api/videos/{video.id}/captions"))
    assert [track["cueCount"] for track in listed["captions"]] == [2]

    patched = await client.patch(f"/api/videos/{track}", json={"label": "British"})
    assert (await answered(patched))["label"] == "British"
    assert (await client.delete(f"/api/videos/{track}")).status_code == 204
    assert "captions/" not in await store(video, resources)
    assert await stored(resources.storage, video.id) == [f"hls/{video.id}/1/master.m3u8"]
    await problem(await client.get(f"/api/videos/{track}"), 404, "captions_not_found")
    events = await Event.filter(video_id=video.id, type="video.captions_changed").count()
    assert events == 6


async def test_conflicting_save_is_refused_with_the_recorded_captions(client: Client) -> None:
    video = await make_row()
    read = f'"{(await add(client, video))["version"]}"'
    track = f"{video.id}/captions/en"
    first = await send(client, "PUT", track, LATER, etag=read)
    newest = (await answered(first))["version"]

    second = await send(client, "PUT", track, SRT.replace("Good", "Fine"), etag=read)
    conflict = await problem(second, 412, "captions_changed")
    assert second.headers["ETag"] == f'"{newest}"'
    assert "A minute later." in conflict["present"]["text"]
    # A repetition is no conflict: its first response may have been lost.
    again = await answered(await send(client, "PUT", track, LATER, etag=read))
    assert again["version"] == newest
    for method in ("DELETE", "PATCH"):
        body = {"json": {"label": "Other"}} if method == "PATCH" else {}
        late = await client.open(
            f"/api/videos/{track}", method=method, headers={"If-Match": read}, **body
        )
        await problem(late, 412, "captions_changed")


async def test_invalid_captions_are_refused_with_the_remedy(client: Client) -> None:
    video = await make_row()
    address = f"{video.id}/captions?language=en"
    unreadable = await send(client, "POST", address, SRT.replace("00:00:02,500", "later"))
    assert (await faults(unreadable))[""].startswith("Line 2: the times of this cue can't be read.")
    unknown = await send(client, "POST", f"{video.id}/captions?language=xx", SRT)
    assert (await faults(unknown))["/language"].startswith("Give a language by its BCP 47 tag")
    await problem(await send(client, "POST", address, SRT, kind="text/plain"), 415, "not_captions")
    huge = await send(client, "POST", address, b"x" * 50_000_000)
    assert huge.status_code == 413
    for many in ("00:00.000 --> 00:01.000\nx\n\n" * 36_001, "x" * 4_200_000):
        refused = await faults(await send(client, "POST", address, f"WEBVTT\n\n{many}"))
        assert refused[""] == "Send at most 36,000 cues, in a file of at most 4 MiB."
    assert not await Caption.exists()

    await add(client, video)
    await problem(await send(client, "POST", address, LATER), 409, "captions_exist")
    same_label = await send(client, "POST", f"{video.id}/captions?language=de&label=English", SRT)
    assert "/label" in await faults(same_label)
    quoted = await send(client, "PUT", f"{video.id}/captions/de?label=%22a%22", SRT)
    assert "/label" in await faults(quoted)


async def test_saved_files_have_warnings_encoding_and_shift(client: Client) -> None:
    video = await make_row(**{**READY, "duration_s": 90.0})
    track = f"{video.id}/captions/ru"
    russian = SRT.replace("Good morning.", "Доброе утро, друзья.").encode("cp1251")
    added = await answered(await send(client, "PUT", track, russian), 201)
    assert (added["charset"], added["suggestedShiftSeconds"]) == ("windows-1251", None)
    [warning] = added["warnings"]
    assert (warning["code"], warning["line"]) == ("encoding_detected", None)
    for query, kind in (("?charset=CP1251", SUBRIP), ("", "text/vtt; charset=windows-1251")):
        named = await answered(await send(client, "PUT", f"{track}{query}", russian, kind=kind))
        assert (named["version"], named["warnings"]) == (added["version"], [])
    english = await send(client, "POST", f"{video.id}/captions?language=en", russian)
    refused = await faults(english)
    assert "windows-1251" in refused["/charset"]
    assert "?charset=" in refused["/charset"]
    unknown = await faults(await send(client, "PUT", f"{track}?charset=punycode", russian))
    assert unknown["/charset"].startswith("Choose one of utf-8, ")

    late = SRT.replace("00:00:0", "01:00:0")
    saved = await answered(await send(client, "PUT", f"{video.id}/captions/en", late), 201)
    assert saved["suggestedShiftSeconds"] == -3600
    saved = await answered(
        await send(client, "PUT", f"{video.id}/captions/en?shiftSeconds=-3600", late)
    )
    assert [warning["code"] for warning in saved["warnings"]] == ["shifted"]
    text = await client.get(f"/api/videos/{video.id}/captions/en")
    assert await text.get_data() == WEBVTT.encode()


async def test_captions_with_too_many_words_lose_only_search(client: Client) -> None:
    video = await make_row()
    words = " ".join(f"{number:030}w" for number in range(40_000))
    text = SRT.replace("Good morning.", f"beginning\n{words}")
    await answered(await send(client, "PUT", f"{video.id}/captions/zh", text), 201)
    heard = await answered(await client.get("/api/videos?q=beginning"))
    assert [tracks["id"] for tracks in heard["videos"]] == [str(video.id)]


async def test_concurrent_puts_are_all_saved(client: Client) -> None:
    video = await make_row(**READY)
    languages = ["en"] * 6 + ["de", "fr", "it", "es", "nl", "pl", "pt", "sv"]
    async with asyncio.TaskGroup() as tasks:
        puts = [
            tasks.create_task(send(client, "PUT", f"{video.id}/captions/{language}", text))
            for text, language in zip([SRT, LATER] * len(languages), languages, strict=False)
        ]
    answers = [put.result().status_code for put in puts]
    assert sorted(answers) == [200] * 5 + [201] * 9
    assert await Caption.filter(video_id=video.id).count() == 9


async def test_a_save_holds_no_text_but_its_own() -> None:
    video = await make_row()
    largest = "x" * 4 * MIB
    row = await Caption.create(
        video=video, language="en", label="English", source="upload", text=largest
    )
    await execute(COPY_TRACK, row.id)
    assert await Caption.filter(video_id=video.id).count() == 100
    text = CaptionText(text=largest[:-1] + "y", search="", cue_count=1)
    change = CaptionChange(content=text)
    tracemalloc.start()
    try:
        await captions.put(video.id, "en", change)
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert await Caption.filter(text=text.text).count() == 1
    # The new text itself is held, too.
    assert peak_bytes + 4 * MIB <= 3 * 4 * MIB


async def test_only_one_track_is_the_default(client: Client) -> None:
    video = await make_row()
    await add(client, video, isDefault="true")
    await add(client, video, language="de", isDefault="true")
    listed = await answered(await client.get(f"/api/videos/{video.id}/captions"))
    assert [(track["language"], track["isDefault"]) for track in listed["captions"]] == [
        ("de", True),
        ("en", False),
    ]


class Ends(Exception):
    """End of a killed worker."""


class MortalStorage(Storage):
    """Storage of a worker that is killed after `writes_left` writes."""

    writes_left = 0

    async def put(self, key: str, *args: Any, **kwargs: Any) -> None:
        if not self.writes_left:
            raise Ends
        self.writes_left -= 1
        await super().put(key, *args, **kwargs)


async def test_a_worker_may_be_killed_at_any_step(client: Client, resources: WebContext) -> None:
    video = await playable()
    await add(client, video)
    before = await store(video, resources)
    mortal = MortalStorage.__new__(MortalStorage)
    mortal.__dict__.update(resources.storage.__dict__)
    replaced = await send(client, "PUT", f"{video.id}/captions/en", LATER)
    version = (await answered(replaced))["version"]
    # Each try resumes after the files of the previous one: two segments, a playlist, the master.
    for mortal.writes_left in (0, 1, 1, 1):
        with pytest.raises(Ends):
            await captions.store(video.id, tools_for(resources, storage=mortal))
        master = await resources.storage.get(f"hls/{video.id}/1/master.m3u8")
        assert master.decode() == before, "one version or the other"
    assert (await Video.get(id=video.id)).captions_job_id is not None
    assert f"captions/{version}/" in await store(video, resources)
    assert (await Video.get(id=video.id)).captions_job_id is None
    [row] = await Caption.all()
    folder = f"hls/{video.id}/captions/{version}/"
    sizes = [entry.size_bytes async for entry in objects_below(folder, resources.storage)]
    assert (row.tries, row.size_bytes) == (0, sum(sizes))


async def test_job_that_stores_no_segment_is_abandoned(
    client: Client, resources: WebContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    video = await playable()
    added = await add(client, video)
    assert f"captions/{added['version']}/" in await store(video, resources)
    for text in (LATER, SRT.replace("Good", "Fine")):
        await send(client, "PUT", f"{video.id}/captions/en", text)

    async def fail(*_: Any, **__: Any) -> None:
        raise Ends

    listed = await client.get(f"/api/videos/{video.id}/captions")
    with monkeypatch.context() as patched:
        patched.setattr(captions, "put_captions", fail)
        for _ in range(CAPTIONS.max_tries):
            with pytest.raises(Ends):
                await store(video, resources)
    # Players have the last version that was stored.
    assert f"captions/{added['version']}/" in await store(video, resources)
    assert f"/captions/{added['version']}/" in "".join(await stored(resources.storage, video.id))
    track = f"{video.id}/captions"
    [abandoned] = (await answered(await client.get(f"/api/videos/{track}")))["captions"]
    assert abandoned["errorCode"] == captions.NOT_STORED
    etag = {"If-None-Match": listed.headers["ETag"]}
    assert (await client.get(f"/api/videos/{track}", headers=etag)).status_code == 200
    assert (await Video.get(id=video.id)).captions_job_id is None
    saved = await answered(await send(client, "PUT", f"{track}/en", LATER))
    assert saved["errorCode"] is None
    assert f"captions/{saved['version']}/" in await store(video, resources)


async def test_a_lost_job_is_replaced(client: Client, resources: WebContext) -> None:
    video = await playable()
    await add(client, video)
    lost = (await Video.get(id=video.id)).captions_job_id
    await run_sql(
        resources.config.database_url, f"DELETE FROM procrastinate_jobs WHERE id = {lost}"
    )
    assert await recover() == 1
    assert (await Video.get(id=video.id)).captions_job_id not in (None, lost)


async def test_the_tracks_and_chapters_of_a_file_are_kept(
    client: Client, resources: WebContext, short_video: Path, tmp_path: Path
) -> None:
    """The file has two tracks in English, one without a language, and two chapters."""
    text = tmp_path / "text.srt"
    text.write_text("1\n00:00:00,250 --> 00:00:01,750\nFish & <b>chips</b>\n", encoding="utf-8")
    chapters = tmp_path / "chapters.txt"
    chapter = "[CHAPTER]\nTIMEBASE=1/1000\nSTART={}\nEND={}\ntitle={}\n"
    named = chapter.format(0, 1000, "Dawn") + chapter.format(1000, 2000, "Noon")
    chapters.write_text(f";FFMETADATA1\n{named}", encoding="utf-8")
    inputs = [word for path in (short_video, text, chapters) for word in ("-i", str(path))]
    maps = ["-map", "0", *["-map", "1"] * 3, "-map_metadata", "2", "-c", "copy"]
    languages = ["-metadata:s:s:0", "language=eng", "-metadata:s:s:1", "language=eng"]
    film = run_ffmpeg(tmp_path / "film.mp4", *inputs, *maps, "-c:s", "mov_text", *languages)
    video = await published_file(client, resources, film)
    await change_video(video.id, description="")
    await add(client, video, "1\n00:00:00,000 --> 00:00:01,000\nSent before.\n", language="de")
    video = await make_playable(video, resources, tmp_path)
    listed = (await answered(await client.get(f"/api/videos/{video.id}/captions")))["captions"]
    sources = {track["language"]: track["source"] for track in listed}
    assert sources == {"en": "file", "en-x-2": "file", "und": "file", "de": "upload"}
    track = await client.get(f"/api/videos/{video.id}/captions/und")
    assert "Fish &amp; <b>chips</b>" in await track.get_data(as_text=True)
    master = await store(video, resources)
    assert master.count("TYPE=SUBTITLES") == 4
    assert "LANGUAGE" not in next(line for line in master.split("\n") if "Subtitles 3" in line)
    body = await answered(await client.get(f"/api/videos/{video.id}/chapters"))
    assert body["source"] == "file"
    assert [(row["title"], row["startSeconds"]) for row in body["chapters"]] == [
        ("Dawn", 0),
        ("Noon", 1),
    ]


async def test_outage_of_storage_is_waited_for(
    client: Client, resources: WebContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    video = await playable()
    await add(client, video)
    monkeypatch.setattr(captions, "CAPTIONS", replace(CAPTIONS, longest_s=0))
    with pytest.raises(StorageUnavailable):
        await store(video, resources)
    monkeypatch.undo()
    assert "captions/" in await store(video, resources)
