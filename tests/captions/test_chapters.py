"""Chapters: saved, else by the times of the description, else those of the file."""

from typing import Any

import pytest
from api_client import Client, answered, faults, problem
from page_rows import READY, change_video, make_row

from portal.database.event_models import Event
from portal.database.models import Video

pytestmark = pytest.mark.shared_app

TIMES = """About this walk.

0:00 Harbour
• [1:30] – The old crane
(1:02:03) Home & tea
Not at 2:00.
"""  # noqa: RUF001
OF_TIMES = [("Harbour", 0), ("The old crane", 90), ("Home & tea", 3723)]


async def read(client: Client, video: Video) -> tuple[list[tuple[str, float]], str, str]:
    """Titles and starts, where they come from, and their ETag."""
    answer = await client.get(f"/api/videos/{video.id}/chapters")
    body = await answered(answer)
    chapters = [(chapter["title"], chapter["startSeconds"]) for chapter in body["chapters"]]
    return chapters, body["source"], answer.headers["ETag"]


async def save(client: Client, video: Video, *chapters: tuple[str, float], etag: str = "") -> Any:
    body = {"chapters": [{"title": title, "startSeconds": at} for title, at in chapters]}
    headers = {"If-Match": etag} if etag else {}
    return await client.put(f"/api/videos/{video.id}/chapters", json=body, headers=headers)


async def test_times_of_a_description_are_chapters_until_others_are_saved(client: Client) -> None:
    video = await make_row(**READY, description=TIMES)
    listed, source, etag = await read(client, video)
    assert (listed, source) == (OF_TIMES, "description")
    track = await client.get(f"/videos/{video.id}/chapters.vtt")
    text = await track.get_data(as_text=True)
    assert "00:01:30.000 --> 01:02:03.000\nThe old crane\n" in text
    assert "Home &amp; tea" in text

    assert (await save(client, video, ("One", 0), ("Two", 9.5), etag=etag)).status_code == 200
    assert (await read(client, video))[:2] == ([("One", 0), ("Two", 9.5)], "saved")
    conflict = await problem(
        await save(client, video, ("X", 0), etag=etag), 412, "chapters_changed"
    )
    assert conflict["present"]["chapters"][1]["title"] == "Two"
    # The editor sends chapters as WebVTT.
    vtt = b"WEBVTT\n\n00:00.000 --> 00:10.000\nA &amp; B\n\n00:10.000 --> 00:11.000\nC\n"
    kind = {"Content-Type": "text/vtt"}
    put = await client.put(f"/api/videos/{video.id}/chapters", data=vtt, headers=kind)
    assert [chapter["title"] for chapter in (await answered(put))["chapters"]] == ["A & B", "C"]
    got = await client.get(f"/api/videos/{video.id}/chapters", headers={"Accept": "text/vtt"})
    assert "A &amp; B" in await got.get_data(as_text=True)
    # Without any, the description counts again.
    assert (await save(client, video)).status_code == 200
    assert (await read(client, video))[1] == "description"
    events = Event.filter(video_id=video.id, type="video.chapters_changed")
    assert await events.count() == 3


async def test_chapters_after_the_end_are_not_listed_and_stay(client: Client) -> None:
    video = await make_row(**{**READY, "duration_s": 100.0})
    await save(client, video, ("One", 0), ("Two", 99), ("Three", 100))
    assert (await read(client, video))[0] == [("One", 0), ("Two", 99)]
    track = await client.get(f"/videos/{video.id}/chapters.vtt")
    assert "Three" not in await track.get_data(as_text=True)
    await save(client, video, ("Uno", 0), ("Dos", 50))
    await change_video(video.id, duration_s=101.0)
    assert (await read(client, video))[0] == [("Uno", 0), ("Dos", 50), ("Three", 100)]

    await save(client, video)
    await change_video(video.id, description="0:00 A\n1:00 B\n99:00 C")
    assert (await read(client, video))[0] == [("A", 0), ("B", 60)]


@pytest.mark.parametrize(
    "description",
    [
        "0:00 One\n1:00 Two",
        "0:01 One\n1:00 Two\n2:00 Three",
        "0:00 A\n2:00 B\n1:00 C",
        "0:00:00:01 A\n1:00 B\n2:00 C",
        "",
    ],
)
async def test_other_times_are_no_chapters(client: Client, description: str) -> None:
    video = await make_row(**READY, description=description)
    assert (await read(client, video))[0] == []
    track = await client.get(f"/videos/{video.id}/chapters.vtt")
    assert await track.get_data(as_text=True) == "WEBVTT\n"


async def test_faults_are_told_with_the_remedy(client: Client) -> None:
    video = await make_row(**READY)
    for chapters, words in (
        ([("A", 1)], "begin at 0"),
        ([("A", 0), ("B", 5), ("C", 5)], "after the one before"),
        ([(" ", 0)], "a title"),
    ):
        assert words in (await faults(await save(client, video, *chapters)))["/chapters"]
    many = [(f"{number}", number) for number in range(501)]
    assert "/chapters" in await faults(await save(client, video, *many))
    assert (await read(client, video))[0] == []


async def test_pages_list_them(client: Client) -> None:
    video = await make_row(**READY, description=TIMES)
    page = await (await client.get(f"/videos/{video.id}")).get_data(as_text=True)
    assert page.count("data-seek=") == 3 + 4, "in the description, too"
    assert f'src="/videos/{video.id}/chapters.vtt?v=' in page
    workshop = await (await client.get(f"/videos/{video.id}/edit")).get_data(as_text=True)
    assert "3 chapters, from the times in the description" in " ".join(workshop.split())
    embed = await (await client.get(f"/embed/{video.id}")).get_data(as_text=True)
    assert "chapters.vtt" in embed
