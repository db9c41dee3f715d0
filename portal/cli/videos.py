"""`portal videos` and `portal queue`: show and manage videos and jobs."""

from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import click

from portal.accounts.permissions import EVERYONES
from portal.cli import common
from portal.database.connection import Row, fetch_rows
from portal.database.models import Attempt, Rendition, Video, VideoStatus
from portal.errors import PortalError
from portal.features.deletion import service as deletion
from portal.queue.rows import JOBS_OF_VIDEO, read_queue
from portal.videos import library, publishing, reading
from portal.videos.library_queries import LibraryQuery

STATUSES = ("processing", "ready", "failed")
HIDDEN = frozenset({"search", "sort_title", "submitted_digest"})
MEASURED = ("failure_code", "duration_s", "size_bytes", "created_at")
RENDITION = ("name", "kind", "state", "attempt_number", "tries", "size_bytes", "error_code")
ATTEMPT = ("number", "worker", "stage", "percent", "started_at", "finished_at")
OUTCOME = ("outcome", "error_code", "error_detail")

limit_option: Callable[[Callable[..., None]], Callable[..., None]] = click.option(
    "--limit",
    default=50,
    show_default=True,
    type=click.IntRange(1, common.MAX_LIMIT),
    help="Maximum number of rows to show.",
)


@click.group()
def videos() -> None:
    """List, show, retry and delete videos."""


@videos.command("list")
@click.option("--status", type=click.Choice(STATUSES), help="Only videos with this status.")
@click.option(
    "--search", default="", help="Only videos with these words in title, tags or description."
)
@limit_option
@common.json_option
@common.with_database
async def list_command(status: str | None, search: str, limit: int, as_json: bool) -> None:
    """List videos, newest first."""
    state = VideoStatus(status) if status else None
    query = LibraryQuery(text=search, status=state, seen_by=EVERYONES)
    page = await library.list_videos(query, limit=limit)
    work = await library.read_work(page.video_ids)
    listed = await reading.fetch_in_order(page.video_ids)
    records = [_summary(video, work.get(video.id)) for video in listed]
    if as_json:
        common.print_json({"videos": records, "total": page.total})
        return
    common.print_table(
        [
            {
                "id": video["id"],
                "status": f"{video['percent']:.0f}%" if video["stage"] else video["status"],
                "age": video["created_at"],
                "length": f"{video['duration_s']:.0f} s" if video["duration_s"] else None,
                "mb": f"{video['size_bytes'] / 1e6:.1f}",
                "title": video["title"],
            }
            for video in records
        ]
    )
    if page.total > len(records):
        click.echo(f"Showing {len(records)} of {page.total} videos. Use --limit to show more.")


@videos.command("show")
@click.argument("video_id", metavar="ID")
@common.json_option
@common.with_database
async def show_command(video_id: str, as_json: bool) -> None:
    """Show all details of a video.

    Prints its record with renditions, attempts and jobs, and the reason if it failed.
    """
    video = await reading.get_video(video_id)
    [record] = await Video.filter(id=video.id).values()
    record = {name: value for name, value in record.items() if name not in HIDDEN}
    attempts = Attempt.filter(video_id=video.id).order_by("number")
    tables = {
        "renditions": await Rendition.filter(version_id=video.version_id).values(*RENDITION),
        "attempts": await attempts.values(*ATTEMPT, *OUTCOME),
        "jobs": await fetch_rows(JOBS_OF_VIDEO, str(video.id)),
    }
    if as_json:
        common.print_json({**record, **tables})
        return
    width = max(map(len, record))
    for name, value in record.items():
        click.echo(f"{name.ljust(width)}  {common.one_line(value)}")
    for name, rows in tables.items():
        click.echo()
        click.echo(click.style(f"{len(rows)} {name}", bold=True))
        if rows:
            common.print_table(rows)


@videos.command("retry")
@click.argument("video_ids", metavar="ID...", nargs=-1, required=True)
@common.with_database
async def retry_command(video_ids: tuple[str, ...]) -> None:
    """Retry failed videos, and failed renditions of ready videos, by their ids."""
    await _change_each(video_ids, publishing.retry_transcode, done="is queued again")


@videos.command("delete")
@click.argument("video_ids", metavar="ID...", nargs=-1, required=True)
@click.option("--yes", is_flag=True, help="Skip the confirmation prompt.")
@common.data_dir_option
def delete_command(video_ids: tuple[str, ...], yes: bool, data_dir: Path | None) -> None:
    """Delete videos and all their files. This can't be undone."""
    if not yes:
        videos = video_ids[0] if len(video_ids) == 1 else f"{len(video_ids)} videos"
        click.confirm(f"Delete {videos} and all files?", abort=True)
    common.ask(data_dir, _delete, video_ids=video_ids)


async def _delete(video_ids: tuple[str, ...]) -> None:
    await _change_each(
        video_ids,
        lambda video: deletion.delete_video(video.id),
        done="is deleted; its files follow",
    )


async def _change_each(
    video_ids: Sequence[str], change: Callable[..., Awaitable[object]], *, done: str
) -> None:
    """Change each video and print the outcome; an error of one does not stop the others."""
    has_failed = False
    for video_id in video_ids:
        try:
            await change(await reading.get_video(video_id))
            click.echo(f"{video_id} {done}.")
        except PortalError as exc:
            has_failed = True
            click.echo(f"Error: {video_id}: {exc.detail}", err=True)
    if has_failed:
        raise click.exceptions.Exit(1)


@click.command()
@limit_option
@common.json_option
@common.with_database
async def queue(limit: int, as_json: bool) -> None:
    """Show the job queue and its workers.

    Lists waiting, running, failed and stalled jobs, and the leases of workers on videos.
    """
    state = await read_queue(limit=limit)
    if as_json:
        common.print_json(state)
        return
    counts = state["counts"]
    jobs = state["jobs"]
    alive = sum(not worker["is_dead"] for worker in state["workers"])
    total = sum(row["jobs"] for row in counts)
    click.echo(f"{total} unfinished or failed jobs, {alive} live queue workers.")
    leases = [_lease_row(lease) for lease in state["leases"]]
    for table in filter(None, (counts, [_job_row(job) for job in jobs], leases)):
        click.echo()
        common.print_table(table)
    if total > len(jobs):
        click.echo(f"Showing {len(jobs)} of {total} jobs. Use --limit to show more.")


def _summary(video: Video, work: library.Work | None) -> Row:
    return {
        "id": str(video.id),
        "title": video.title,
        "status": video.status,
        "stage": work.stage if work else None,
        "percent": work.percent if work else None,
        **{name: getattr(video, name) for name in MEASURED},
    }


def _job_row(job: Row) -> Row:
    return {
        "job": job["id"],
        "task": job["task"].removeprefix("portal:"),
        "status": "stalled" if job["is_stalled"] else job["status"],
        "queued": job["queued_at"],
        "started": job["started_at"],
        "due": job["scheduled_at"],
        "tries": job["attempts"],
        "last error": job["last_error"],
        "video": job["video_id"],
    }


def _lease_row(lease: Row) -> Row:
    return {
        "worker": lease["worker"],
        "stage": lease["stage"],
        "segments": lease["segments"],
        "percent": f"{lease['percent']:.0f}",
        "lease ends": "lost" if lease["is_lost"] else common.age(lease["lease_expires_at"]),
        "video": lease["video_id"],
    }
