"""Workers make parts of a film: those that are missing, under leases, and helpers with them."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from api_client import Client, run_sql
from passes import EARLY, ended_after, first_attempt, published_file, tools_for

from portal.database.models import Rendition, Video, VideoStatus
from portal.database.work_models import MadeSegment, PassInProgress, PassPart
from portal.features import VERSION_HOOKS
from portal.films import encoding, parts, passes
from portal.http.composition import WebContext
from portal.storage.objects import output_prefix
from portal.transcoding.errors import FailCode, TranscodeFailed
from portal.transcoding.packaging.cmaf import inspect_segment
from portal.transcoding.packaging.hls import parse_media_playlist

pytestmark = pytest.mark.usefixtures("early_first")
[EARLY_NAME] = EARLY
SEGMENTS = 10
# Makes leases expire without waiting.
EXPIRE = "UPDATE pass_parts SET lease_expires_at = now() - interval '1 s' WHERE NOT is_done"


@pytest.fixture
async def begun(client: Client, resources: WebContext, film: Path, tmp_path: Path) -> Video:
    """Return a film of which the first two segments are made."""
    video = await published_file(client, resources, film)
    await ended_after(await first_attempt(video), resources, tmp_path, segments=2)
    # The pass may have stored more segments while it was ending.
    await MadeSegment.filter(version_id=video.version_id, number__gte=2).delete()
    assert not await PassPart.filter(is_done=False).exists()
    await PassPart.all().delete()
    return video


async def finished(video: Video, resources: WebContext, work_dir: Path) -> list[str]:
    """Finish the pass; return the names of the segments, after a check that they join."""
    tools = tools_for(resources, work_dir)
    await passes.make_playable(await first_attempt(video), tools, hooks=VERSION_HOOKS)
    video = await Video.get(id=video.id)
    assert video.status is VideoStatus.READY
    assert not await PassInProgress.exists()
    assert not await PassPart.exists()
    assert not await MadeSegment.exists()
    rendition = await Rendition.get(version_id=video.version_id, name=EARLY_NAME)
    prefix = f"{output_prefix(video.id, rendition.attempt_number or 0)}{EARLY_NAME}/"
    storage = resources.storage
    playlist = parse_media_playlist((await storage.get(f"{prefix}playlist.m3u8")).decode())
    uris = [segment.uri for segment in playlist.segments]
    facts = [inspect_segment(await storage.get(prefix + uri)) for uri in uris]
    assert [segment.sample_count for segment in facts] == [20] * SEGMENTS
    assert all(a.until_ticks == b.from_ticks for a, b in pairwise(facts))
    return uris


def parts_of(uris: Sequence[str]) -> list[str]:
    """Return the prefixes of the names of segments, which tell their parts."""
    return list(dict.fromkeys(uri.partition("-")[0] for uri in uris))


async def test_helper_makes_the_parts_that_are_missing_and_free(
    begun: Video, resources: WebContext, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Each segment of this short film is a part.
    monkeypatch.setattr(parts, "LONGEST_PART_S", 1e-6)
    monkeypatch.setattr(parts, "SHORTEST_PART_S", 1e-6)
    # Another worker holds the next part, so the helper begins after it.
    other, _ = await parts.claim(begun.id, worker="test")
    assert other is not None
    await PassPart.filter(id=other.id).update(
        lease_expires_at=datetime.now(UTC) + timedelta(hours=1)
    )
    await encoding.help_with(begun.id, tools_for(resources, tmp_path))
    numbers = [row.number for row in await MadeSegment.filter(rendition=EARLY_NAME)]
    assert sorted(numbers) == [0, 1, *range(3, SEGMENTS)]
    assert await PassPart.filter(is_done=True).count() == SEGMENTS - 3
    await run_sql(resources.config.database_url, EXPIRE)
    # The helper makes the last part, too, so that the worker of the pass has none to make.
    await encoding.help_with(begun.id, tools_for(resources, tmp_path))
    uris = await finished(begun, resources, tmp_path)
    assert len(parts_of(uris)) == SEGMENTS - 1


@pytest.mark.slow
async def test_worker_begins_anew_where_helpers_fail_and_the_init_segment_is_missing(
    begun: Video, resources: WebContext, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tools = tools_for(resources, tmp_path)

    async def failing(*_: Any, **__: Any) -> None:
        raise TranscodeFailed(FailCode.FFMPEG_FAILED, detail="out of order")

    with monkeypatch.context() as patch:
        patch.setattr(encoding, "encode_part", failing)
        for _ in range(parts.MAX_FAILURES):
            with pytest.raises(TranscodeFailed):
                await encoding.help_with(begun.id, tools)
        await encoding.help_with(begun.id, tools)
    assert await MadeSegment.filter(rendition=EARLY_NAME).count() == 2
    await resources.storage.delete(f"{output_prefix(begun.id, 1)}{EARLY_NAME}/init.mp4")
    await finished(begun, resources, tmp_path)


async def test_segments_that_do_not_join_are_made_again(
    begun: Video, resources: WebContext, tmp_path: Path
) -> None:
    await encoding.help_with(begun.id, tools_for(resources, tmp_path))
    later = await MadeSegment.filter(rendition=EARLY_NAME, number__gte=2)
    await MadeSegment.filter(number=2, rendition=EARLY_NAME).update(from_ticks=0)
    uris = await finished(begun, resources, tmp_path)
    assert len(parts_of(uris)) == 1
    assert not {row.uri for row in later} & {*uris}
