"""A folder of collected files, when one is named: each is published and sound, or refused.

One of each kind (that is, of each folder) by default, all of them with `-m "soak or not soak"`.
"""

import csv
import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from published import FolderSink, Published, shown, transcode
from published_checks import check_hls, check_pictures

from portal.transcoding.errors import SourceRejected
from portal.transcoding.planning.ladder import Plan

CORPUS = os.environ.get("PORTAL_CORPUS", "")
OF_EACH_KIND = 1
_AFFORDABLE_PIXELS = 200_000_000  # three seconds of 1080p


def corpus() -> list[Any]:
    if not CORPUS:
        return []
    seen: Counter[str] = Counter()
    files = []
    with (Path(CORPUS) / "manifest.csv").open(newline="") as manifest:
        for row in csv.DictReader(manifest):
            kind = row["path"].partition("/")[0]
            seen[kind] += 1
            marks = [pytest.mark.soak] if seen[kind] > OF_EACH_KIND else []
            files.append(pytest.param(row["path"], row["expected"], marks=marks))
    return files


def affordable(plan: Plan) -> Sequence[str]:
    """The whole ladder, or the first pass of what would take minutes on a small machine."""
    top = plan.video[-1]
    pixels = top.width * top.height * top.fps * plan.duration_s
    whole = [rung.name for rung in plan.video]
    return whole if pixels < _AFFORDABLE_PIXELS else plan.first_pass(cautious=True)


@pytest.mark.skipif(not CORPUS, reason="PORTAL_CORPUS names no folder of media")
@pytest.mark.parametrize(("path", "expected"), corpus())
@pytest.mark.slow
async def test_the_corpus_is_published_or_refused(
    path: str, expected: str, sink: FolderSink, work_dir: Path
) -> None:
    source = Path(CORPUS) / path
    if expected not in {"playable", "partial"}:
        with pytest.raises(SourceRejected):
            await transcode(str(source), sink=sink, work_dir=work_dir)
        return
    result = await transcode(str(source), sink=sink, work_dir=work_dir, choose=affordable)
    published, lowest = Published(source, result, sink), result.renditions[0]
    check_hls(sink.folder, result.output)
    check_pictures(published, lowest, shown(sink.folder, lowest.name))
