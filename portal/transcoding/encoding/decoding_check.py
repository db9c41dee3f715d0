"""Decode the beginning and the middle of each rendition as players do, before it is published."""

import asyncio
from collections.abc import Collection, Sequence
from pathlib import Path

from portal.transcoding.encoding import ffmpeg
from portal.transcoding.encoding.command import check_arguments
from portal.transcoding.errors import FailCode, TranscodeFailed
from portal.transcoding.packaging.hls import INIT_NAME

_LIMIT_S = 120.0


async def check_decoding(work_dir: Path, names: Sequence[str], sampled: Collection[str]) -> None:
    """Raise TranscodeFailed at the first fault in any of the sampled segments."""
    files = [
        await asyncio.to_thread(_with_init, work_dir / name, segment)
        for name in names
        for segment in sorted(sampled)
        if (work_dir / name / segment).exists()
    ]
    if not files:
        return
    try:
        await ffmpeg.run(check_arguments(files), timeout_s=_LIMIT_S)
    except TranscodeFailed as exc:
        raise TranscodeFailed(FailCode.OUTPUT_INCOMPLETE, detail=exc.detail) from exc


def _with_init(folder: Path, segment: str) -> Path:
    joined = (folder / segment).with_suffix(".mp4")
    joined.write_bytes(b"".join((folder / part).read_bytes() for part in (INIT_NAME, segment)))
    return joined
