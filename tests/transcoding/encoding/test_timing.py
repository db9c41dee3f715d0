"""Frame times: a constant rate is made exact, anything else stays as it was, with B-frames."""

import io
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import pytest
from decoded_media import open_media
from media_recipes import (
    COPYABLE,
    CORNERS,
    EXACT_TIMES,
    MakeMedia,
    as_yuv,
    beeps,
    card,
    jittering,
    lavfi,
    make_card,
)
from published import FolderSink, Publish, Published, joined, make_pass, playlist
from published_checks import check_published, source_times_s

from portal.transcoding.probing.probe import probe

TICK_S = 0.001
MOVING = "testsrc2=s=544x306:r={rate}:d={duration_s}"
QUICK = ("-c:v", "libx264", "-preset", "ultrafast", "-bf", "2", "-pix_fmt", "yuv422p")
# Sources with B-frames and pauses do not tell how long their last frame stands.
WITHOUT_B_FRAMES = (*QUICK, "-bf", "0")
# A random number that is the same in each run.
CHANCE = "mod(n*7919,1000)/1000"


@dataclass(frozen=True, kw_only=True, slots=True)
class Sample:
    """A coded frame as it stands in a file."""

    shown_s: float
    decoded_s: float
    length_s: float
    is_key: bool


def samples(source: Path | io.BytesIO) -> list[Sample]:
    """Those of the video, in the order in which they are decoded."""
    with open_media(source) as container:
        stream = container.streams.video[0]
        tick_s = stream.time_base
        return [
            Sample(
                shown_s=float(packet.pts * tick_s),
                decoded_s=float(packet.dts * tick_s),
                length_s=float(packet.duration * tick_s),
                is_key=packet.is_keyframe,
            )
            for packet in container.demux(stream)
            if packet.size
        ]


def written(published: Published, name: str, *segments: int) -> list[Sample]:
    return samples(io.BytesIO(joined(published.folder, name, *segments)))


def moving(
    make_media: MakeMedia,
    name: str,
    filters: str,
    *,
    rate: str = "30",
    duration_s: float = 13,
    options: Sequence[str] = QUICK,
) -> Path:
    """A picture with enough motion for B-frames, and times as a filter says."""
    inputs = lavfi(MOVING.format(rate=rate, duration_s=duration_s))
    return make_media(name, *inputs, "-vf", filters, *options, *EXACT_TIMES)


def check_decoding(all_samples: Sequence[Sample]) -> None:
    assert all(a.decoded_s < b.decoded_s for a, b in pairwise(all_samples)), "decode times fall"
    assert all(each.decoded_s <= each.shown_s + 1e-6 for each in all_samples)
    reordered = [b for a, b in pairwise(all_samples) if b.shown_s < a.shown_s]
    assert reordered, "no B-frames"


def check_joins(published: Published, name: str) -> None:
    """Each segment lasts until the next one begins, read alone."""
    starts_s = playlist(published.folder, name).starts_s
    ends_s = [*starts_s[1:], playlist(published.folder, name).duration_s]
    for number, (start_s, end_s) in enumerate(zip(starts_s, ends_s, strict=True)):
        alone = written(published, name, number)
        assert alone[0].is_key
        assert min(each.shown_s for each in alone) == pytest.approx(start_s, abs=TICK_S)
        last_s = max(each.shown_s + each.length_s for each in alone)
        assert last_s == pytest.approx(end_s, abs=TICK_S)


def irregular() -> str:
    """Between 15 and 60 a second, with times that are on no grid."""
    chosen = f"select='gte(t-prev_selected_t,0.0165+0.045*{CHANCE})+eq(n,0)'"
    return f"{chosen},settb=1/1000000,setpts='PTS+mod(N*7919,900)'"


def still() -> str:
    """Bursts of motion, and seconds in which nothing changes, one of them before the end."""
    return "select='lt(mod(t,4),0.7)+eq(n,359)'"


@pytest.mark.parametrize(
    ("kind", "filters", "rate", "options"),
    [("irregular", irregular(), "240", QUICK), ("still", still(), "30", WITHOUT_B_FRAMES)],
)
async def test_a_variable_source_keeps_all_its_times_with_b_frames(
    kind: str,
    filters: str,
    rate: str,
    options: Sequence[str],
    make_media: MakeMedia,
    publish: Publish,
) -> None:
    source = moving(make_media, f"variable {kind}.mp4", filters, rate=rate, options=options)
    assert not (await probe(str(source))).video.constant_rate

    published = await publish(source)

    expected_s = source_times_s(published)
    ends_s = max(each.shown_s + each.length_s for each in samples(source))
    for rendition in published.result.renditions:
        made = written(published, rendition.name)
        times_s = sorted(each.shown_s for each in made)
        assert len(times_s) == len(expected_s)
        assert max(abs(a - b) for a, b in zip(times_s, expected_s, strict=True)) < TICK_S
        check_decoding(made)
        check_joins(published, rendition.name)
        length_s = playlist(published.folder, rendition.name).duration_s
        assert length_s == pytest.approx(ends_s, abs=0.05)
    check_published(published)


async def test_jitter_is_taken_out_of_a_constant_rate(
    make_media: MakeMedia, publish: Publish
) -> None:
    source = moving(make_media, "jitter.mp4", jittering("null", 6000), rate="30000/1001")
    video = (await probe(str(source))).video
    assert (video.constant_rate, str(video.fps)) == (True, "30000/1001")

    published = await publish(source)

    for rendition in published.result.renditions:
        made = written(published, rendition.name)
        times_s = sorted(each.shown_s for each in made)
        assert len(times_s) == len(published.source_pictures)
        grid_s = [number * 1001 / 30_000 for number in range(len(times_s))]
        assert times_s == pytest.approx(grid_s, abs=1e-6)
        check_decoding(made)
        check_joins(published, rendition.name)


@pytest.mark.parametrize("by_us", [pytest.param(1, marks=pytest.mark.slow), 4000])
async def test_renditions_beside_a_copied_one_keep_its_times(
    by_us: int, make_media: MakeMedia, publish: Publish
) -> None:
    picture, sound = card(duration_s=14, flashes_s=(0.5, 13)), beeps(duration_s=14, at_s=(0.5, 13))
    source = make_card(
        make_media,
        f"copied jitter {by_us}.mp4",
        *(*COPYABLE, *EXACT_TIMES),
        picture=picture,
        sound=sound,
        yuv=jittering(as_yuv(), by_us),
    )

    published = await publish(source)

    assert [each.copied for each in published.result.renditions] == [False, True]
    low, top = (written(published, each.name) for each in published.result.renditions)
    low_s, top_s = (sorted(each.shown_s for each in made) for made in (low, top))
    assert low_s == pytest.approx(top_s, abs=0.0001)
    starts = [playlist(published.folder, name).starts_s for name in published.pictures]
    assert starts[0] == pytest.approx(starts[1], abs=0.0001)
    check_published(published, corners=CORNERS, in_sync=True)


@pytest.mark.parametrize(
    ("kind", "filters", "rate"),
    [
        ("jitter", jittering("null", 6000), "30000/1001"),
        pytest.param("fast jitter", jittering("null", 5000), "60", marks=pytest.mark.slow),
        pytest.param("irregular", irregular(), "240", marks=pytest.mark.slow),
        ("still", still(), "30"),
    ],
)
async def test_a_later_pass_begins_its_segments_with_the_same_frames(
    kind: str, filters: str, rate: str, make_media: MakeMedia, tmp_path: Path
) -> None:
    source = moving(make_media, f"{kind}.mp4", filters, rate=rate)
    sink = FolderSink(tmp_path / "sink")
    first, last = "240p", "306p"
    await make_pass(source, wanted=[first], sink=sink, work_dir=tmp_path / "w")
    made = playlist(sink.folder, first)

    await make_pass(source, wanted=[last], reference=made, sink=sink, work_dir=tmp_path / "w")

    assert len(made.starts_s) >= 3
    assert playlist(sink.folder, last).starts_s == pytest.approx(made.starts_s, abs=1e-4)
