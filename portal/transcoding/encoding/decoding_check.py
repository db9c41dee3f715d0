"""Decode the beginning of each rendition as a player does, before it is published."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

from portal.transcoding.encoding import ffmpeg
from portal.transcoding.encoding.command import check_arguments
from portal.transcoding.encoding.segment_upload import FIRST_SEGMENT_NAME
from portal.transcoding.errors import FailCode, TranscodeFailed
from portal.transcoding.packaging.hls import INIT_NAME

_LIMIT_S = 120.0


async def check_decoding(work_dir: Path, names: Sequence[str]) -> None:
    """Raise TranscodeFailed at the first fault in any first segment."""
    files = [await asyncio.to_thread(_join_first_segment, work_dir / name) for name in names]
    try:
        await ffmpeg.run(check_arguments(files), timeout_s=_LIMIT_S)
    except TranscodeFailed as exc:
        raise TranscodeFailed(FailCode.OUTPUT_INCOMPLETE, detail=exc.detail) from exc


def _join_first_segment(folder: Path) -> Path:
    joined = folder / "check.mp4"
    parts = (INIT_NAME, FIRST_SEGMENT_NAME)
    joined.write_bytes(b"".join((folder / part).read_bytes() for part in parts))
    return joined
