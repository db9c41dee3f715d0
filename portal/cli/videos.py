"""`portal videos`: look at a portal's videos, and act on them."""

from pathlib import Path
from typing import Any

import click

from portal.cli.administration import delete_video, describe_video, list_videos, retry_video
from portal.cli.common import (
    MAX_LIMIT,
    age,
    ask,
    data_dir_option,
    json_option,
    one_line,
    print_json,
    print_table,
)

STATUSES = ("processing", "ready", "failed")


@click.group()
def videos() -> None:
    """List, show, retry and delete videos."""


@videos.command("list")
@click.option("--status", type=click.Choice(STATUSES), help="Only videos with this status.")
@click.option("--search", default="", help="Words in title, tags or description.")
@click.option("--limit", default=50, show_default=True, type=click.IntRange(1, MAX_LIMIT))
@json_option
@data_dir_option
def list_command(
    status: str | None, search: str, limit: int, as_json: bool, data_dir: Path | None
) -> None:
    """List videos, the newest first."""
    found, total = ask(data_dir, list_videos, status=status, search=search, limit=limit)
    if as_json:
        print_json({"videos": found, "total": total})
        return
    heads = ("ID", "STATUS", "AGE", "LENGTH", "MB", "TITLE")
    print_table(heads, [_row_of(video) for video in found])
    if total > len(found):
        click.echo(f"{len(found)} of {total}; see --limit.")


@videos.command("show")
@click.argument("video_id", metavar="ID")
@json_option
@data_dir_option
def show_command(video_id: str, as_json: bool, data_dir: Path | None) -> None:
    """Show the whole record of a video: renditions, attempts, jobs, and why it failed."""
    found = ask(data_dir, describe_video, video_id=video_id)
    if as_json:
        print_json(found)
        return
    tables = {name: found.pop(name) for name in ("renditions", "attempts", "jobs")}
    width = max(map(len, found))
    for name, value in found.items():
        click.echo(f"{name.ljust(width)}  {'-' if value is None else one_line(value)}")
    for name, rows in tables.items():
        click.echo()
        click.echo(click.style(f"{len(rows)} {name}", bold=True))
        if rows:
            print_table([head.upper() for head in rows[0]], [_cells(row) for row in rows])


@videos.command("retry")
@click.argument("video_ids", metavar="ID...", nargs=-1, required=True)
@data_dir_option
def retry_command(video_ids: tuple[str, ...], data_dir: Path | None) -> None:
    """Try again what failed: a failed video, or the renditions that a ready one lacks."""
    _each(video_ids, data_dir, retry_video, done="is tried again")


@videos.command("delete")
@click.argument("video_ids", metavar="ID...", nargs=-1, required=True)
@click.option("--yes", is_flag=True, help="Don't ask.")
@data_dir_option
def delete_command(video_ids: tuple[str, ...], yes: bool, data_dir: Path | None) -> None:
    """Delete videos with everything they own. There is no way back."""
    if not yes:
        what = video_ids[0] if len(video_ids) == 1 else f"{len(video_ids)} videos"
        click.confirm(f"Delete {what} and all files?", abort=True)
    _each(video_ids, data_dir, delete_video, done="is deleted; its files follow")


def _row_of(video: dict[str, Any]) -> tuple[object, ...]:
    length = "-" if video["duration_s"] is None else f"{video['duration_s']:.0f} s"
    status = video["status"] if video["stage"] is None else f"{video['percent']:.0f}%"
    megabytes = f"{video['size_bytes'] / 1e6:.1f}"
    return video["id"], status, age(video["created_at"]), length, megabytes, video["title"]


def _cells(row: dict[str, Any]) -> list[object]:
    return ["-" if value is None else value for value in row.values()]


def _each(video_ids: tuple[str, ...], data_dir: Path | None, act: Any, *, done: str) -> None:
    """Act on each, and print what came of it; a refusal does not stop the rest."""
    refused = ask(data_dir, act, video_ids=video_ids)
    for video_id in video_ids:
        if video_id in refused:
            click.echo(f"Error: {video_id}: {refused[video_id]}", err=True)
        else:
            click.echo(f"{video_id} {done}.")
    if refused:
        raise SystemExit(1)
