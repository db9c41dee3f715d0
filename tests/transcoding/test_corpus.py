"""A folder of collected files, when one is named: each is published and sound, or refused.

The smallest of each kind (that is, of each folder) by default, all with `-m "soak or not soak"`.
"""

import csv
import os
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest
from published import FolderSink, Published, shown, transcode
from published_checks import check_hls, check_pictures

from portal.transcoding.errors import CopyUndeliverable, SourceRejected

CORPUS = os.environ.get("PORTAL_CORPUS", "")


def corpus() -> list[Any]:
    if not CORPUS:
        return []
    with (Path(CORPUS) / "manifest.csv").open(newline="") as manifest:
        rows = list(csv.DictReader(manifest))
    chosen = set()
    for _, kind in groupby(rows, lambda row: row["path"].partition("/")[0]):
        files = list(kind)
        alike = [row for row in files if row["expected"] == files[0]["expected"]]
        chosen.add(min(alike, key=lambda row: int(row["bytes"]))["path"])
    return [
        pytest.param(
            row["path"],
            row["expected"],
            marks=[] if row["path"] in chosen else [pytest.mark.soak],
        )
        for row in rows
    ]


@pytest.mark.skipif(not CORPUS, reason="PORTAL_CORPUS names no folder of media")
@pytest.mark.parametrize(("path", "expected"), corpus())
@pytest.mark.slow
async def test_the_corpus_is_published_or_refused(
    path: str, expected: str, sink: FolderSink, work_dir: Path
) -> None:
    """Only the first pass is made, with the renditions that a long film gets."""
    source = Path(CORPUS) / path
    how: dict[str, Any] = {"sink": sink, "work_dir": work_dir}
    if expected not in {"playable", "partial"}:
        with pytest.raises(SourceRejected):
            await transcode(source, **how)
        return
    how["choose"] = lambda plan: plan.first_pass(cautious=True)
    try:
        result = await transcode(source, **how)
    except CopyUndeliverable:
        # The portal encodes such a file, too.
        result = await transcode(source, may_copy=False, **how)
    published = Published(source, result, sink)
    lowest = result.renditions[0]
    check_hls(sink.folder, result.output)
    check_pictures(published, lowest, shown(sink.folder, lowest.name))
