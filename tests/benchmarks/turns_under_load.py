"""How long others wait while the only slot for encodes is taken by a long film, in one run.

    python tests/benchmarks/turns_under_load.py [--short 12] [--film FILE] [--film-seconds 360]

One worker, WORKER_CONCURRENCY=1. First a file that is refused, a clip that is copied, and a clip
of a phone are published alone, then all three in the middle of a film's first pass. Then so many
short clips are published at once, alone and together with three films. Times are from a video's
creation to the end of its first pass, by the database's clock; files are uploaded before. Choose
a quiet machine.
"""

import argparse
import asyncio
import statistics
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmark_portal import measured_portal  # isort: skip  # finds those below

from api_client import ENCODING, rows, until_found
from running_portal import LivePortal, call, make_video, run_ffmpeg, until, upload

FILMS = 3
REFUSED_AIM_S, COPIED_AIM_S, PHONE_AIM_S, SHORT_AIM = 5.0, 6.0, 30.0, 1.5
POLL_S = 0.5
LIMIT_S = 3600
PENDING = "SELECT 1 FROM videos WHERE status = 'processing' LIMIT 1"
IDS = "SELECT id::text FROM videos"
AT_WORK = """
SELECT 1 FROM procrastinate_jobs
WHERE status IN ('todo', 'doing') AND args->>'video_id' IS NOT NULL LIMIT 1
"""
# Of each video, what it waited for the end of the attempt that made it ready, or failed.
WAITED = """
SELECT extract(epoch FROM min(finished_at) - created_at)::float8
FROM videos JOIN attempts ON video_id = videos.id AND outcome IN ('published', 'failed')
WHERE title = %s GROUP BY videos.id ORDER BY 1
"""


async def main() -> None:
    """Measure, and print what was waited with its ratios and aims."""
    options = _options()
    with tempfile.TemporaryDirectory(prefix="portal-benchmark-") as name:
        folder = Path(name)
        film = options.film or _film(folder / "film.mp4", seconds=options.film_seconds)
        settings = {"WORKER_CONCURRENCY": "1", "WORK_DIR": str(folder / "work")}
        async with measured_portal(folder / "services", worker=True, **settings) as portal:
            await _single(portal, folder, film)
            await _batches(portal, folder, film, options.short)


async def _single(portal: LivePortal, folder: Path, film: Path) -> None:
    files = {
        "refused": run_ffmpeg(folder / "refused.mp4", *_lavfi("sine=duration=2"), "-c:a", "aac"),
        "copied": make_video(folder / "copied.mp4"),
        "phone": _phone_clip(folder / "phone.mp4", seconds=10),
    }
    keys = {
        name: [await upload(portal.base_url, file) for _ in "12"] for name, file in files.items()
    }
    for name in files:
        await _create(portal, f"{name} alone", [keys[name][0]])
        await _until_none(portal, AT_WORK)
    await _create(portal, "film", [await upload(portal.base_url, film)])
    await until_found(portal.environ["DATABASE_URL"], ENCODING, timeout_s=60)
    for name in files:
        await _create(portal, f"{name} beside", [keys[name][1]])
    await _until_none(portal, PENDING)
    [film_s] = await _waited(portal, "film")
    print(f"\nbeside a first pass of {film_s:.0f} s of a film")
    print(f"{'':10} {'alone s':>9} {'beside s':>9} {'ratio':>7}  aim")
    aims = {"refused": REFUSED_AIM_S, "copied": COPIED_AIM_S, "phone": PHONE_AIM_S}
    for name, aim_s in aims.items():
        [alone_s], [beside_s] = [
            await _waited(portal, f"{name} {when}") for when in ("alone", "beside")
        ]
        row = f"{name:10} {alone_s:9.2f} {beside_s:9.2f} {beside_s / alone_s:7.2f}"
        print(f"{row}  <= {aim_s:.0f} s  {'' if beside_s <= aim_s else 'MISSED'}", flush=True)
    await _delete_all(portal)


async def _batches(portal: LivePortal, folder: Path, film: Path, count: int) -> None:
    clip = _phone_clip(folder / "short.mp4", seconds=2)
    shorts = [await upload(portal.base_url, clip) for _ in range(2 * count)]
    films = [await upload(portal.base_url, film) for _ in range(FILMS)]
    await _create(portal, "short alone", shorts[:count])
    await _until_none(portal, AT_WORK)
    await asyncio.gather(
        _create(portal, "long", films), _create(portal, "short beside", shorts[count:])
    )
    await _until_none(portal, PENDING)
    alone_s, beside_s = [
        _p95(await _waited(portal, f"short {when}")) for when in ("alone", "beside")
    ]
    ratio = beside_s / alone_s
    print(f"\n{count} short clips at once, p95: alone {alone_s:.1f} s, with {FILMS} films", end=" ")
    print(f"{beside_s:.1f} s: {ratio:.2f}  aim <= {SHORT_AIM} ", end="")
    print("" if ratio <= SHORT_AIM else "MISSED")
    films_s = ", ".join(f"{it:.0f}" for it in await _waited(portal, "long"))
    print(f"the films themselves: {films_s} s")


async def _create(portal: LivePortal, title: str, keys: Sequence[str]) -> None:
    print(f"{title}: {len(keys)} …", file=sys.stderr)
    body = {"title": title, "description": "", "categoryIds": [1], "tags": "", "fileName": "a.mp4"}
    url = f"{portal.base_url}/api/videos"
    for key in keys:
        await call("POST", url, status=201, json={**body, "key": key})


async def _delete_all(portal: LivePortal) -> None:
    """And wait for nothing that is left to do: ladders of films take long."""
    for (video_id,) in await rows(portal.environ["DATABASE_URL"], IDS):
        await call("POST", f"{portal.base_url}/api/videos/{video_id}/deletion", status=202)
    await _until_none(portal, AT_WORK)


async def _waited(portal: LivePortal, title: str) -> list[float]:
    return [it for (it,) in await rows(portal.environ["DATABASE_URL"], WAITED, title)]


async def _until_none(portal: LivePortal, query: str) -> None:
    async def is_none() -> bool:
        return not await rows(portal.environ["DATABASE_URL"], query)

    await until(is_none, timeout_s=LIMIT_S, interval_s=POLL_S)


def _p95(values: Sequence[float]) -> float:
    return statistics.quantiles(values, n=20, method="inclusive")[-1]


def _lavfi(source: str) -> tuple[str, ...]:
    return ("-f", "lavfi", "-i", source)


def _phone_clip(path: Path, *, seconds: int) -> Path:
    """HEVC in 1080p30, upright by its matrix, with sound."""
    picture = f"testsrc2=size=1920x1080:rate=30:duration={seconds},noise=c0s=6:c0f=t"
    lying = run_ffmpeg(
        path.with_stem(f"{path.stem}-lying"),
        *(*_lavfi(picture), *_lavfi(f"sine=duration={seconds}"), "-pix_fmt", "yuv420p"),
        *("-c:v", "libx265", "-preset", "ultrafast", "-x265-params", "log-level=error"),
        *("-tag:v", "hvc1", "-c:a", "aac"),
    )
    return run_ffmpeg(path, "-display_rotation", "90", "-i", str(lying), "-c", "copy")


def _film(path: Path, *, seconds: int) -> Path:
    """4K30 in AV1 that can't be copied: two seconds over and over."""
    picture = "testsrc2=size=3840x2160:rate=30:duration=2,noise=c0s=4:c0f=t"
    codec = ("-pix_fmt", "yuv420p", "-c:v", "libsvtav1", "-preset", "12", "-b:v", "12M")
    piece = run_ffmpeg(path.with_stem("piece"), *_lavfi(picture), *codec)
    times = str(max(0, seconds // 2 - 1))
    return run_ffmpeg(path, "-stream_loop", times, "-i", str(piece), "-c", "copy")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--short", type=int, default=12, help="short clips at once")
    parser.add_argument("--film", type=Path, help="real footage; else a made film")
    parser.add_argument("--film-seconds", type=int, default=360, help="length of the made film")
    return parser.parse_args()


if __name__ == "__main__":
    asyncio.run(main())
