"""The commands `portal videos` and `portal queue`."""

from datetime import UTC, datetime
from uuid import uuid4

from aged_videos import ended_attempt
from api_client import Client, published, run_sql
from command_line import document, portal
from page_rows import READY, change_video, make_attempt, make_rendition, make_row, make_segment

from portal.database.models import Deletion, Outcome, Rendition, RenditionState, Video, VideoStatus
from portal.database.work_models import PassInProgress, PassPart
from portal.http.composition import WebContext


async def test_list_filters_and_prints_a_table_or_json(
    client: Client, environ: dict[str, str]
) -> None:
    await make_row(1, title="Harbour at dawn", **READY)
    await make_row(2, title="Harbour at night", status=VideoStatus.FAILED)
    working = await make_row(3, title="Mountains")
    await make_attempt(working, percent=41.6)

    code, out, _ = await portal(environ, "videos", "list")
    assert code == 0
    lines = out.splitlines()
    assert lines[0].split() == ["ID", "STATUS", "AGE", "LENGTH", "MB", "TITLE"]
    assert "Mountains" in lines[1]
    assert "42%" in lines[1]
    assert len(lines) == 4

    page = await document(environ, "videos", "list", "--search", "harb", "--status", "failed")
    assert [video["title"] for video in page["videos"]] == ["Harbour at night"]
    assert page["total"] == 1
    _, out, _ = await portal(environ, "videos", "list", "--limit", "2")
    assert "2 of 3" in out


async def test_show_prints_the_whole_record(client: Client, environ: dict[str, str]) -> None:
    record = await published(client)
    video = await Video.get(id=record["id"])
    await change_video(
        video.id,
        status=VideoStatus.FAILED,
        failure_code="damaged",
        failure_message="It can't be decoded.",
    )
    await ended_attempt(video, 1, Outcome.FAILED, error_code="ffmpeg_failed", error_detail="moov")
    await make_rendition(video, "360p", state=RenditionState.FAILED)

    details = await document(environ, "videos", "show", record["id"])
    assert details["failure_code"] == "damaged"
    assert details["storage_key"] == record["storageKey"]
    assert details["attempts"][0]["error_detail"] == "moov"
    assert details["renditions"][0]["name"] == "360p"
    assert [job["task"] for job in details["jobs"]] == ["portal:transcode"]

    code, out, _ = await portal(environ, "videos", "show", record["id"])
    assert code == 0
    for text in ("It can't be decoded.", "1 attempts", "1 renditions", "1 jobs", "ffmpeg_failed"):
        assert text in out


async def test_retry_names_videos_without_failed_parts_and_retries_the_others(
    client: Client, environ: dict[str, str]
) -> None:
    failed = await make_row(10_001, status=VideoStatus.FAILED, failure_code="transcode_failed")
    lacking = await make_row(10_002, **READY)
    await make_rendition(lacking, "720p", state=RenditionState.FAILED)
    whole = await make_row(10_003, **READY)

    ids = [str(video.id) for video in (failed, lacking, whole)]
    code, out, err = await portal(environ, "videos", "retry", *ids)

    assert code == 1
    assert out.count("is queued again") == 2
    assert f"{whole.id}: No part of this video has failed" in err
    assert (await Video.get(id=failed.id)).status is VideoStatus.PROCESSING
    assert await Rendition.filter(version_id=lacking.id, state=RenditionState.PLANNED).exists()
    queue = await document(environ, "queue")
    assert sorted(job["task"] for job in queue["jobs"]) == ["portal:complete", "portal:transcode"]


async def test_delete_asks_for_confirmation(client: Client, environ: dict[str, str]) -> None:
    video = await make_row(**READY)
    code, _, err = await portal(environ, "videos", "delete", str(video.id), typed="n\n")
    assert code == 1
    assert "Aborted" in err
    assert await Video.exists(id=video.id)
    code, out, _ = await portal(environ, "videos", "delete", str(video.id), "--yes")
    assert code == 0
    assert "is deleted" in out
    assert not await Video.exists(id=video.id)
    assert await Deletion.exists(video_id=video.id)


async def test_unknown_ids_are_named(client: Client, environ: dict[str, str]) -> None:
    unknown = str(uuid4())
    for arguments in (("show", "nonsense"), ("retry", unknown), ("delete", unknown, "--yes")):
        code, _, err = await portal(environ, "videos", *arguments)
        assert code == 1
        assert "There is no video with this id" in err


async def test_queue_shows_waiting_stalled_and_leases(
    client: Client, resources: WebContext, environ: dict[str, str]
) -> None:
    first = await published(client)
    second = await published(client)
    await make_attempt(await Video.get(id=first["id"]), worker="here:42", percent=12)
    await PassInProgress.create(
        version_id=first["id"], folder=1, renditions=["360p"], segment_count=10, segment_s=1.0
    )
    await PassPart.create(
        version_id=first["id"],
        start=5,
        until=10,
        worker="there:7",
        lease_expires_at=datetime.now(UTC),
    )
    for number in (5, 6):
        await make_segment(await Video.get(id=first["id"]), "360p", number)
    await run_sql(
        environ["DATABASE_URL"],
        "UPDATE procrastinate_jobs SET status = 'doing'"
        f" WHERE args->>'version_id' = '{first['id']}'",
    )
    code, out, _ = await portal(environ, "queue")
    assert code == 0
    assert "2 unfinished or failed jobs, 0 live queue workers." in out
    [stalled] = [line for line in out.splitlines() if "stalled" in line]
    assert first["id"] in stalled
    [waiting] = [line for line in out.splitlines() if second["id"] in line]
    assert "todo" in waiting
    [lease] = [line for line in out.splitlines() if "here:42" in line]
    assert lease.split()[:4] == ["here:42", "transcoding", "-", "12"]
    [lease] = [line for line in out.splitlines() if "there:7" in line]
    assert lease.split()[:5] == ["there:7", "transcoding", "5-9", "40", "lost"]
    state = await document(environ, "queue")
    assert {row["status"]: row["jobs"] for row in state["counts"]} == {"doing": 1, "todo": 1}
    _, out, _ = await portal(environ, "queue", "--limit", "1")
    assert "Showing 1 of 2 jobs." in out
