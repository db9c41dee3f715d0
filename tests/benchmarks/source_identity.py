"""Creations of videos per second, by the number of files in the folder of uploads.

The embedded store tells no ETags, and reads the whole folder for every listing; a creation must
take as long among 100,000 files as among 1,000. Both are measured in one run, each in turn with a
bare one-route Quart app on the same Hypercorn settings, by the same load tool (wrk).

    python tests/benchmarks/source_identity.py [--files 1000 100000] [--seconds 4] [--rounds 3]

Needs `wrk` (Debian: apt-get install wrk). Starts and stops everything else itself.
"""

import argparse
import asyncio
import json
import tempfile
from itertools import islice
from pathlib import Path
from uuid import uuid4

import psycopg
from api import LIMITS, PRESIGN, UPLOADS_PER_SECOND, bare_app, measured, print_row, write_lines
from benchmark_portal import measured_portal, require

from portal.bundled.data_folder import open_data_folder
from portal.bundled.object_store import BUCKET
from portal.storage.objects import UPLOAD_FOLDER, upload_key

AIM = 0.12
# Larger than both ends that are read of a source, and sparse.
SOURCE_BYTES = 200_000
ISSUE = "INSERT INTO uploads (key, file_name, content_type, created_at) VALUES (%s, %s, %s, now())"


async def main() -> None:
    """Measure among each number of files, and print the table."""
    options = _options()
    require("wrk")
    print(f"{'files':>8} {'req/s':>8} {'bare':>8} {'ratio':>6} {'aim':>5}  {'p50':>8} {'p99':>8}")
    rates = [await _rate(files, options) for files in options.files]
    print(f"{options.files[-1]:,} files against {options.files[0]:,}: {rates[-1] / rates[0]:.2f}")


async def _rate(files: int, options: argparse.Namespace) -> float:
    """Creations per second, measured in turn with the bare app; prints a row."""
    pairs = []
    with tempfile.TemporaryDirectory(prefix="portal-benchmark-") as name:
        each = options.seconds * UPLOADS_PER_SECOND
        keys = _put_files(Path(name), files, sources=options.rounds * each)
        todo, bodies = iter(keys), Path(name, "create.txt")
        async with (
            measured_portal(Path(name), **LIMITS, LOG_LEVEL="WARNING") as portal,
            bare_app() as bare_url,
        ):
            await _issue(portal.environ["DATABASE_URL"], keys)
            for _ in range(options.rounds):
                write_lines(bodies, map(_body, islice(todo, each)))
                bare = await measured(bare_url, seconds=options.seconds)
                url = f"{portal.base_url}/api/videos"
                pairs.append((await measured(url, seconds=options.seconds, bodies=bodies), bare))
    return print_row(f"{files:8}", pairs, aim=AIM)


def _put_files(data_dir: Path, files: int, *, sources: int) -> list[str]:
    """Fill the folder up to this number of files, at least those to create videos from."""
    bucket = open_data_folder(data_dir).objects / BUCKET
    (bucket / UPLOAD_FOLDER).mkdir(mode=0o700, parents=True)
    keys = [upload_key(uuid4(), "mp4") for _ in range(max(files, sources))]
    for number, key in enumerate(keys):
        with (bucket / key).open("wb") as file:
            file.truncate(SOURCE_BYTES if number < sources else 0)
    return keys[:sources]


async def _issue(database_url: str, keys: list[str]) -> None:
    connection = await psycopg.AsyncConnection.connect(database_url)
    async with connection, connection.cursor() as cursor:
        rows = [(key, PRESIGN["fileName"], PRESIGN["contentType"]) for key in keys]
        await cursor.executemany(ISSUE, rows)


def _body(key: str) -> str:
    members = {"title": "Benchmark", "description": "", "categoryIds": [1], "tags": ""}
    return json.dumps({**members, "fileName": PRESIGN["fileName"], "key": key})


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--files", type=int, nargs="+", default=[1_000, 100_000])
    parser.add_argument("--seconds", type=int, default=4, help="length of each measurement")
    parser.add_argument("--rounds", type=int, default=3, help="measurements of each kind")
    return parser.parse_args()


if __name__ == "__main__":
    asyncio.run(main())
