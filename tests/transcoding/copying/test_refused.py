"""What can't be delivered as it is: a video is refused with a reason, a sound track left out."""

import struct
from collections.abc import Callable
from pathlib import Path

import pytest
from copied import SOUND, VIDEO, copy
from media_recipes import MakeMedia, with_late
from published import Write

from portal.transcoding.errors import CopyUndeliverable

GROUPS = ("-g", "30", "-bf", "2")

Make = Callable[[MakeMedia, MakeMedia], Path]


def made(reason: str, name: str, *options: str, duration_s: float = 12) -> object:
    def make(video: MakeMedia, media: MakeMedia) -> Path:
        return video(f"refused {name}.mp4", *options, duration_s=duration_s, audio_s=0)

    return pytest.param(make, reason, id=name)


def starting_within_a_group(video: MakeMedia, media: MakeMedia) -> Path:
    whole = video("refused whole.mp4", *GROUPS, duration_s=4, audio_s=0)
    return media("refused trimmed.mp4", "-ss", "1.5", "-i", str(whole), "-c", "copy")


def changing_parameter_sets(video: MakeMedia, media: MakeMedia) -> Path:
    """Two recordings one after the other; the second one's parameter sets lie between frames."""
    parts = [
        video(f"refused part {size}.mp4", *GROUPS, size=size, duration_s=2, audio_s=0)
        for size in ("320x180", "640x360")
    ]
    listing = parts[0].with_name("refused parts.txt")
    listing.write_text("".join(f"file '{part}'\n" for part in parts))
    joining = ("-f", "concat", "-safe", "0", "-i", str(listing))
    return media("refused joined.mp4", *joining, "-c", "copy")


REFUSED = [
    made("long_gop", "groups of 12 s", "-g", "999", "-bf", "2"),
    made("long_gop", "open groups", "-preset", "fast", "-x264-params", "open-gop=1:keyint=30"),
    made("long_gop", "recovery points", "-x264-params", "intra-refresh=1:keyint=30"),
    made("codec", "another codec", "-c:v", "mpeg4"),
    pytest.param(starting_within_a_group, "edited", id="cut by an edit list"),
    pytest.param(changing_parameter_sets, "parameter_sets", id="changing parameter sets"),
]


@pytest.mark.parametrize(("make", "reason"), REFUSED)
async def test_a_video_that_players_stumble_over_is_refused(
    make: Make, reason: str, make_video: MakeMedia, make_media: MakeMedia, tmp_path: Path
) -> None:
    with pytest.raises(CopyUndeliverable) as caught:
        await copy(make(make_video, make_media), tmp_path)
    assert caught.value.reason == reason


def with_two_sample_entries(content: bytes) -> bytes:
    """The same file, but its second half of chunks refers to a copy of the sample entry."""
    entry_at = content.index(b"avc1", content.index(b"moov")) - 4
    size = struct.unpack_from(">I", content, entry_at)[0]
    entry = content[entry_at : entry_at + size]
    changed = content[: entry_at + size] + entry + content[entry_at + size :]
    count_at = changed.index(b"stsd") + 8
    changed = changed[:count_at] + struct.pack(">I", 2) + changed[count_at + 4 :]
    # Sample-to-chunk: after the first row comes one for the second entry.
    at = changed.index(b"stsc") + 8
    rows, first = struct.unpack_from(">I", changed, at)[0], changed[at + 4 : at + 16]
    assert rows >= 1
    chunk_count_at = changed.index(b"stco") + 8
    half = struct.unpack_from(">I", changed, chunk_count_at)[0] // 2
    kept = [struct.unpack_from(">III", changed, at + 4 + 12 * row) for row in range(rows)]
    before = [row for row in kept if row[0] < half]
    after = [(max(half, row[0]), row[1], 2) for row in [before[-1], *kept[len(before) :]]]
    table = b"".join(struct.pack(">III", *row) for row in (*before, *after))
    changed = changed[:at] + struct.pack(">I", rows + 1) + table + changed[at + 4 + 12 * rows :]
    assert first
    for kind, grown in ((b"stsd", size), (b"stsc", 12)):
        changed = _grown(changed, kind, grown)
    for kind in (b"stbl", b"minf", b"mdia", b"trak", b"moov"):
        changed = _grown(changed, kind, size + 12)
    return changed


def _grown(content: bytes, kind: bytes, by: int) -> bytes:
    at = content.index(kind, content.index(b"moov")) - 4
    size = struct.unpack_from(">I", content, at)[0] + by
    return content[:at] + struct.pack(">I", size) + content[at + 4 :]


async def test_two_sample_entries_are_refused(
    make_video: MakeMedia, write: Write, tmp_path: Path
) -> None:
    # With sound between them there are many chunks; the index lies at the end.
    source = make_video("refused entries.mp4", *GROUPS, duration_s=6)
    changed = write(with_two_sample_entries(source.read_bytes()))
    with pytest.raises(CopyUndeliverable) as caught:
        await copy(changed, tmp_path)
    assert caught.value.reason == "parameter_sets"


DROPPED = {
    "gaps": ("-af", "aselect='not(between(t,3,3.5))'"),
    "codec": ("-ac", "6"),
}


@pytest.mark.parametrize("reason", DROPPED)
async def test_sound_that_cannot_be_copied_is_left_to_be_encoded(
    make_video: MakeMedia, tmp_path: Path, reason: str
) -> None:
    source = make_video(f"dropped {reason}.mp4", *GROUPS, *DROPPED[reason], duration_s=8)
    copied = await copy(source, tmp_path)

    assert copied.report.dropped == {SOUND: reason}
    assert [unit.data for unit in copied.units(VIDEO)] == [
        unit.data for unit in copied.source_units(VIDEO)
    ]
    assert not (tmp_path / SOUND / "playlist.m3u8").exists()


async def test_sound_that_begins_late_is_left_to_be_encoded(
    make_video: MakeMedia, make_media: MakeMedia, tmp_path: Path
) -> None:
    whole = make_video("dropped whole.mp4", *GROUPS, duration_s=8)
    late = with_late(make_media, "dropped late.mp4", whole, "0:a", 1.5)
    copied = await copy(late, tmp_path)
    assert copied.report.dropped == {SOUND: "starts_late"}
