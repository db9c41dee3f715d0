"""`portal queue`: look at a portal's jobs and workers."""

from pathlib import Path
from typing import Any

import click

from portal.cli.administration import describe_queue
from portal.cli.common import (
    MAX_LIMIT,
    age,
    ask,
    data_dir_option,
    json_option,
    print_json,
    print_table,
)

JOB_HEADS = ("JOB", "TASK", "STATUS", "QUEUED", "STARTED", "DUE", "TRIES", "LAST ERROR", "VIDEO")
LEASE_HEADS = ("WORKER", "STAGE", "PERCENT", "LEASE ENDS", "VIDEO")


@click.command()
@click.option("--limit", default=50, show_default=True, type=click.IntRange(1, MAX_LIMIT))
@json_option
@data_dir_option
def queue(limit: int, as_json: bool, data_dir: Path | None) -> None:
    """Show the jobs that wait, run and failed, the workers, and what is stalled."""
    found = ask(data_dir, describe_queue, limit=limit)
    if as_json:
        print_json(found)
        return
    _print_queue(found)


def _print_queue(found: dict[str, list[dict[str, Any]]]) -> None:
    counts, jobs = found["counts"], found["jobs"]
    alive = sum(not worker["is_dead"] for worker in found["workers"])
    total = sum(row["jobs"] for row in counts)
    click.echo(f"{total} jobs wait, run or failed; {alive} queue workers live.")
    if counts:
        print_table(("QUEUE", "STATUS", "JOBS", "OLDEST"), [_count_row(row) for row in counts])
    if jobs:
        click.echo()
        print_table(JOB_HEADS, [_job_row(job) for job in jobs])
    if found["leases"]:
        click.echo()
        print_table(LEASE_HEADS, [_lease_row(lease) for lease in found["leases"]])
    if total > len(jobs):
        click.echo(f"{len(jobs)} of {total} jobs shown; see --limit.")


def _count_row(row: dict[str, Any]) -> tuple[object, ...]:
    return row["queue"], row["status"], row["jobs"], age(row["oldest"])


def _job_row(job: dict[str, Any]) -> tuple[object, ...]:
    status = "stalled" if job["is_stalled"] else job["status"]
    times = (age(job["queued_at"]), age(job["started_at"]), age(job["scheduled_at"]))
    task, why = job["task"].removeprefix("portal:"), (job["attempts"], job["last_error"] or "-")
    return (job["id"], task, status, *times, *why, job["video_id"] or "-")


def _lease_row(lease: dict[str, Any]) -> tuple[object, ...]:
    ends = "lost" if lease["is_lost"] else age(lease["lease_expires_at"])
    return lease["worker"], lease["stage"], f"{lease['percent']:.0f}", ends, lease["video_id"]
