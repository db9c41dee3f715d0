"""Machine captions, by the real speech libraries; they never replace captions of people."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import AsyncMock
from uuid import uuid4

import psutil
import pytest
from api_client import Client, answered, app_client, faults, problem
from page_rows import READY, make_rendition, make_row
from page_texts import page, words_of
from passes import make_playable, published_file, tools_for
from serving import children_naming, eventually
from speech import SENTENCE, Speech

from portal.config import Config
from portal.database.connection import execute
from portal.database.models import Caption, CaptionSource, Rendition, Version, Video
from portal.database.work_models import Transcription
from portal.features.captions import transcription
from portal.films.captions import TRANSCRIPTION
from portal.http.composition import WebContext
from portal.maintenance.recovery import recover
from portal.transcoding.packaging.caption_lines import CLAUSE_ENDS, wrapped
from portal.transcoding.packaging.hls import media_playlist, parse_media_playlist
from portal.transcoding.packaging.master import Kind
from portal.transcoding.packaging.webvtt import Cue, read_webvtt
from portal.transcoding.speech.transcribe import Transcript, Word, cues_of


@pytest.fixture(scope="session")
def model(speech: Speech) -> Path:
    return speech.model


@pytest.fixture(scope="session")
def spoken(speech: Speech, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a video in which speech begins at 2 s and at 10 s."""
    path = tmp_path_factory.mktemp("speech") / "spoken.mp4"
    return speech.video(path, {2: SENTENCE, 10: "The boats come back."}, seconds=13)


@pytest.fixture
def environ(environ: dict[str, str], model: Path) -> dict[str, str]:
    return {**environ, "CAPTIONS_MODEL": str(model)}


@pytest.fixture
async def video(client: Client, resources: WebContext, spoken: Path, tmp_path: Path) -> Video:
    video = await published_file(client, resources, spoken)
    return await make_playable(video, resources, tmp_path)


async def make_sounding() -> Video:
    """Create a ready video with sound, without files."""
    video = await make_row(**READY)
    await make_rendition(video, "0p", kind=Kind.AUDIO)
    return video


async def write(video: Video, resources: WebContext, model: Path, work_dir: Path) -> None:
    """Carry out the request as a worker without encodes does."""
    config = replace(resources.config, captions_model=model)
    await transcription.make_captions(video.id, tools_for(resources, work_dir, config=config))


async def test_speech_becomes_captions_that_a_person_can_replace(
    client: Client, resources: WebContext, video: Video, model: Path, tmp_path: Path
) -> None:
    address = f"/api/videos/{video.id}/captions/transcription"
    await problem(await client.get(address), 404, "transcription_not_found")
    accepted = await answered(await client.post(address), 202)
    assert accepted == {"state": "waiting", "percent": 0, "language": None, "errorCode": None}
    workshop = words_of(await page(client, f"/videos/{video.id}/edit"))
    assert "Waiting for a worker to generate captions" in workshop
    await write(video, resources, model, tmp_path)

    captions = f"/api/videos/{video.id}/captions"
    [track] = (await answered(await client.get(captions)))["captions"]
    assert track.items() >= {"language": "en", "label": "English", "source": "machine"}.items()
    cues = read_webvtt(await (await client.get(f"{captions}/en")).get_data(as_text=True))
    first = cues[0]
    last = cues[-1]
    assert "welcome to the" in " ".join(cue.plain_text for cue in cues).lower()
    assert 1.5 < first.start_s < 2.5
    assert last.plain_text.endswith("back.")
    assert 9.5 < last.start_s < last.end_s < 13
    assert "generated automatically" in words_of(await page(client, f"/videos/{video.id}/edit"))
    assert 'label="English (by a machine)"' in await page(client, f"/videos/{video.id}")
    await problem(await client.get(address), 404, "transcription_not_found")


@asynccontextmanager
async def transcribed(*_: Any, **__: Any) -> AsyncIterator[AsyncIterator[Transcript]]:
    """Return a transcript at once, without a model."""

    async def transcripts() -> AsyncIterator[Transcript]:
        yield Transcript((Cue(start_s=1.0, end_s=2.0, text="By a machine."),), 13.0, "en")

    yield transcripts()


async def test_machine_captions_replace_no_captions_of_a_person(
    client: Client, resources: WebContext, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transcription, "open_rendition", AsyncMock())
    monkeypatch.setattr(transcription, "transcribing", transcribed)
    video = await make_sounding()
    address = f"/api/videos/{video.id}/captions"

    async def machine_language() -> str:
        """Generate captions, and return their language."""
        await answered(await client.post(f"{address}/transcription"), 202)
        await write(video, resources, model, Path())
        return (await Caption.get(video_id=video.id, source=CaptionSource.MACHINE)).language

    assert [await machine_language() for _ in range(2)] == ["en", "en"]
    text = "WEBVTT\n\n00:01.000 --> 00:02.000\nAhoy.\n"
    head = {"Content-Type": "text/vtt"}
    await answered(await client.put(f"{address}/en", data=text, headers=head))
    assert await machine_language() == "en-x-2"
    assert "Ahoy." in ((await Caption.get(video_id=video.id, language="en")).text or "")


async def test_another_worker_resumes_a_transcript(
    client: Client, resources: WebContext, video: Video, model: Path, tmp_path: Path
) -> None:
    await client.post(f"/api/videos/{video.id}/captions/transcription?language=en-GB")
    text = "WEBVTT\n\n00:02.000 --> 00:05.000\nFrom before.\n"
    await Transcription.filter(video_id=video.id).update(text=text, until_s=8.0, tries=1)
    await write(video, resources, model, tmp_path)
    track = await Caption.get(video_id=video.id)
    assert track.language == "en-GB"
    before, *after = read_webvtt(track.text or "")
    assert before.text == "From before."
    assert min(cue.start_s for cue in after) > 9


async def test_speech_of_a_cut_film_has_its_times(
    resources: WebContext, video: Video, model: Path, tmp_path: Path
) -> None:
    sound = await Rendition.get(version_id=video.version_id, kind=Kind.AUDIO)
    key = f"hls/{video.id}/{sound.attempt_number}/{sound.name}/playlist.m3u8"
    segments = parse_media_playlist((await resources.storage.get(key)).decode()).segments
    # The first sentence has ended in the first segment, and the second one begins in the third.
    removed_s = segments[1].duration_s
    join_s = segments[0].duration_s
    stored = [segments[0], replace(segments[2], is_discontinuous=True), *segments[3:]]
    text = media_playlist(stored, target_duration_s=6).encode()
    await resources.storage.put(key, text, content_type="application/vnd.apple.mpegurl")
    keep = [[0.0, join_s], [join_s + removed_s, 13.0]]
    await Version.filter(id=video.version_id).update(keep=keep)
    await transcription.request(video.id, "en")
    await write(video, resources, model, tmp_path)
    track = await Caption.get(video_id=video.id)
    last = read_webvtt(track.text or "")[-1]
    assert last.plain_text.endswith("back.")
    assert 9.5 - removed_s < last.start_s < last.end_s < 13 - removed_s
    assert read_webvtt(track.whole_text or "")[-1].start_s == pytest.approx(
        last.start_s + removed_s, abs=0.002
    )


@pytest.mark.soak
async def test_long_films_are_transcribed_in_windows(
    client: Client, resources: WebContext, speech: Speech, model: Path, tmp_path: Path
) -> None:
    """A sentence across the end of a window of five minutes is transcribed once and whole.

    This holds even if the model joins it with a sentence before a long silence.
    """
    sentences = {1: "The boats", 299: "come back before noon."}
    film = speech.video(tmp_path / "film.mp4", sentences, seconds=310, rate=1)
    video = await make_playable(await published_file(client, resources, film), resources, tmp_path)
    await client.post(f"/api/videos/{video.id}/captions/transcription")
    await write(video, resources, model, tmp_path)
    first, last = read_webvtt((await Caption.get(video_id=video.id)).text or "")
    assert first.text.strip(".") == "The boats"
    # The smallest model understands "noon" in other ways now and then.
    assert "back before" in last.text
    assert 0.5 < first.start_s < first.end_s < 3
    assert 298 < last.start_s < 300 < last.end_s < 302


async def test_transcription_stands_still_for_encodes_and_can_be_cancelled(
    client: Client, resources: WebContext, video: Video, model: Path, tmp_path: Path
) -> None:
    address = f"/api/videos/{video.id}/captions/transcription"
    await client.post(address)
    tools = tools_for(resources, tmp_path)
    tools.busy.set()
    work = transcription.make_captions(video.id, tools)
    working = asyncio.create_task(work)

    def is_suspended() -> bool:
        children = children_naming("portal.transcoding.speech")
        return any(child.status() == psutil.STATUS_STOPPED for child in children)

    await eventually(is_suspended)
    assert (await answered(await client.get(address)))["state"] == "working"
    assert (await Transcription.get(video_id=video.id)).until_s == 0
    assert (await client.delete(address)).status_code == 204
    await asyncio.wait_for(working, 60)
    assert not await Caption.exists()
    await problem(await client.delete(address), 404, "transcription_not_found")


async def test_failed_request_has_an_error_code(
    client: Client, resources: WebContext, video: Video, model: Path, tmp_path: Path
) -> None:
    address = f"/api/videos/{video.id}/captions/transcription"
    assert "/language" in await faults(await client.post(f"{address}?language=xx"))
    await answered(await client.post(f"{address}?language=tlh"), 202)
    await write(video, resources, model, tmp_path)
    failed = await answered(await client.get(address))
    assert (failed["state"], failed["errorCode"]) == ("failed", "language_unknown")
    assert "supported. Choose another one" in words_of(
        await page(client, f"/videos/{video.id}/edit")
    )

    await answered(await client.post(address), 202)
    (tmp_path / "empty").mkdir()
    await write(video, resources, tmp_path / "empty", tmp_path)
    assert (await answered(await client.get(address)))["errorCode"] == "transcription_failed"


async def test_request_without_tries_or_sound_has_an_error_code(
    client: Client, resources: WebContext, model: Path
) -> None:
    video = await make_sounding()
    address = f"/api/videos/{video.id}/captions/transcription"
    await answered(await client.post(address), 202)
    await Transcription.filter(video_id=video.id).update(tries=TRANSCRIPTION.max_tries)
    await write(video, resources, model, Path())
    assert (await answered(await client.get(address)))["errorCode"] == "worker_lost"
    await answered(await client.post(address), 202)
    # A replacement by a file without sound leaves the video without sound renditions.
    await Rendition.filter(version_id=video.version_id, kind=Kind.AUDIO).delete()
    await write(video, resources, model, Path())
    assert (await answered(await client.get(address)))["errorCode"] == "no_sound"


async def test_only_ready_videos_with_sound_are_transcribed(client: Client) -> None:
    allowed = await client.options(f"/api/videos/{uuid4()}/captions/transcription")
    methods = {"GET", "HEAD", "OPTIONS", "POST", "DELETE"}
    assert set(allowed.headers["Allow"].split(", ")) == methods
    silent = await make_row(**READY)
    other = f"/api/videos/{silent.id}/captions/transcription"
    await problem(await client.post(other), 409, "no_sound")
    coming = await make_row(2)
    other = f"/api/videos/{coming.id}/captions/transcription"
    await problem(await client.post(other), 409, "not_playable")


async def test_a_lost_job_is_replaced_and_a_running_one_is_not(
    client: Client, video: Video
) -> None:
    await client.post(f"/api/videos/{video.id}/captions/transcription")
    row = await Transcription.get(video_id=video.id)
    await execute("DELETE FROM procrastinate_jobs WHERE id = %s", row.job_id)
    assert await recover() == 1
    replaced = (await Transcription.get(video_id=video.id)).job_id
    assert replaced != row.job_id
    assert await recover() == 0


async def test_without_a_model_the_feature_is_hidden(config: Config) -> None:
    async with app_client(config, captions_model=None) as client:
        video = await make_sounding()
        assert "machine" not in words_of(await page(client, f"/videos/{video.id}/edit"))
        for method in ("GET", "POST", "DELETE"):
            response = await client.open(
                f"/api/videos/{video.id}/captions/transcription", method=method
            )
            missing = await problem(response, 404, "transcription_not_installed")
            assert "portal[captions]" in missing["detail"]


def test_cues_have_a_readable_length() -> None:
    def spoken_words(*texts: str, start_s: float = 0.0, each_s: float = 0.3) -> list[Word]:
        times = [start_s + each_s * number for number in range(len(texts))]
        return [
            Word(at_s, at_s + each_s, f" {text}") for at_s, text in zip(times, texts, strict=True)
        ]

    def texts(words: list[Word]) -> list[str]:
        return [cue.text for cue in cues_of(words)]

    assert texts([]) == []
    assert texts(spoken_words("<b>", "&")) == ["&lt;b&gt; &amp;"]
    # Limits: two lines of 42 characters, seven seconds, a pause, a sentence that fills a line.
    for cue in texts(spoken_words(*["harbour"] * 40)):
        assert all(len(line) <= 42 for line in cue.split("\n"))
        assert cue.count("\n") <= 1
    assert [cue.end_s - cue.start_s for cue in cues_of(spoken_words(*"abcd", each_s=4.0))] == [
        4.0
    ] * 4
    assert texts(spoken_words("Ahoy") + spoken_words("there", start_s=2.0)) == ["Ahoy", "there"]
    sentence = spoken_words(*["harbour"] * 5, "harbour.", "And", "then?")
    assert texts(sentence)[1:] == ["And then?"]


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("今天我们来谈谈视频发布，各位朋友都好。", ["今天我们来谈谈视频发布，", "各位朋友都好。"]),  # noqa: RUF001
        ("あ" * 20, ["あ" * 16, "あ" * 4]),
        ("あ" * 16 + "。い", ["あ" * 15, "あ。い"]),
        ("오늘은 동영상 게시에 대해 이야기합니다", ["오늘은 동영상 게시에 대해", "이야기합니다"]),
        ("x" * 50, ["x" * 42, "x" * 8]),
        ("the harbour " * 4, ["the harbour the harbour the harbour the", "harbour"]),
    ],
)
def test_lines_have_a_readable_width(text: str, lines: list[str]) -> None:
    assert wrapped(text) == lines


def test_cues_of_scripts_without_spaces_end_with_a_clause() -> None:
    spoken = (
        "今天我们来谈谈视频发布，各位好。我们先看看怎么上传，然后再看看怎么编辑字幕，最后发布。"  # noqa: RUF001
    )
    words = [Word(n / 10, (n + 1) / 10, letter) for n, letter in enumerate(spoken)]
    cues = list(cues_of(words))
    assert "".join(cue.text.replace("\n", "") for cue in cues) == spoken
    assert all(len(line) <= 17 for cue in cues for line in cue.text.split("\n"))
    assert all(cue.text.endswith(CLAUSE_ENDS) for cue in cues)
    assert all(cue.text.count("\n") <= 1 for cue in cues)
