"""Media playlists: reading, writing, cutting and signing."""

import pytest

from portal.transcoding.packaging.hls import (
    PlaylistError,
    Segment,
    bandwidths_bps,
    clip_media_playlist,
    iframe_playlist,
    media_playlist,
    parse_media_playlist,
    sign_playlist,
    target_duration_s,
)

MEDIA = """#EXTM3U
#EXT-X-VERSION:7
#EXT-X-TARGETDURATION:4
#EXT-X-PLAYLIST-TYPE:VOD
#EXT-X-MAP:URI="init.mp4"
#EXTINF:4.004000,
00000.m4s
#EXTINF:1.5,a title, with a comma
00001.m4s
#EXT-X-ENDLIST
"""


def listed(durations_s: tuple[float, ...]) -> list[Segment]:
    return [Segment(uri=f"{n}.m4s", duration_s=d) for n, d in enumerate(durations_s)]


def test_a_media_playlist_is_read_whole() -> None:
    playlist = parse_media_playlist(MEDIA)
    assert playlist.segments == (
        Segment(uri="00000.m4s", duration_s=4.004),
        Segment(uri="00001.m4s", duration_s=1.5),
    )
    assert (playlist.map_uri, playlist.target_duration_s) == ("init.mp4", 4)
    assert playlist.complete
    assert not parse_media_playlist(MEDIA.replace("#EXT-X-ENDLIST\n", "")).complete


@pytest.mark.parametrize(
    "text", ["", "hello", "#EXTM3U\n", "#EXTM3U\n#EXT-X-TARGETDURATION:4\n00000.m4s\n"]
)
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(PlaylistError):
        parse_media_playlist(text)


@pytest.mark.parametrize(
    ("durations_s", "peak_bps"),
    [
        pytest.param((4.0, 4.0, 0.04), 2_000_000, id="no last segment of a few frames"),
        pytest.param((1.0, 1.0, 1.0), 6_000_000, id="of segments together"),
    ],
)
def test_peak_is_over_at_least_half_a_target_duration(
    durations_s: tuple[float, ...], peak_bps: int
) -> None:
    sizes_bytes = (1_000_000, 500_000, 100_000)
    peak_and_average = bandwidths_bps(
        listed(durations_s), sizes_bytes=sizes_bytes, target_duration_s=4
    )
    assert peak_and_average == (peak_bps, round(1_600_000 * 8 / sum(durations_s)))


def test_signing_reaches_every_uri_and_nothing_else() -> None:
    signed = sign_playlist(MEDIA, lambda uri: f"https://cdn.example/{uri}?sig=a%2Fb&x=\\1")
    expected = MEDIA
    for uri in ("00000.m4s", "00001.m4s", "init.mp4"):
        expected = expected.replace(uri, f"https://cdn.example/{uri}?sig=a%2Fb&x=\\1")
    assert signed == expected


@pytest.mark.parametrize("address", ['a"b', "a\nb", "a\u2028b", ""])
def test_a_signed_address_cannot_write_tags(address: str) -> None:
    with pytest.raises(PlaylistError):
        sign_playlist(MEDIA, lambda _: address)


@pytest.mark.parametrize(("durations_s", "expected"), [((4.4, 1), 4), ((4.5, 1), 5), ((0.04,), 1)])
def test_no_segment_rounds_to_more_than_the_target(
    durations_s: tuple[float, ...], expected: int
) -> None:
    assert target_duration_s(listed(durations_s)) == expected


# Encoded video, its sound, and a copied stream with irregular segments.
VIDEO = (4.0, 4.0, 4.0, 1.5)
SOUND = (4.010667, 3.989333, 4.010667, 1.4)
COPIED = (2.5, 7.2, 1.1, 2.7)


@pytest.mark.parametrize(
    ("durations_s", "start_s", "end_s", "numbers", "offset_s"),
    [
        pytest.param(VIDEO, 5.25, 9, (1, 2), "1.250", id="inside segments"),
        pytest.param(VIDEO, 4, 8, (1,), None, id="at bounds"),
        pytest.param(SOUND, 4, 8, (1,), None, id="sound begins with the video"),
        pytest.param(SOUND, 5.25, 9, (1, 2), "1.239", id="sound has its own offset"),
        pytest.param(VIDEO, 6, 6.5, (1,), "2.000", id="inside one segment"),
        pytest.param(COPIED, 3, 10, (1, 2), "0.500", id="irregular segments"),
        pytest.param(COPIED, 0, 2, (0,), None, id="the beginning"),
        pytest.param(COPIED, 12, 99, (3,), "1.200", id="the end"),
        pytest.param(SOUND, 20, 30, (3,), "7.989", id="after a track that ends early"),
    ],
)
def test_a_cut_keeps_the_segments_around_a_part_and_starts_exactly(
    durations_s: tuple[float, ...],
    start_s: float,
    end_s: float,
    numbers: tuple[int, ...],
    offset_s: str | None,
) -> None:
    whole = media_playlist(listed(durations_s), target_duration_s=8)
    cut = clip_media_playlist(whole, start_s=start_s, end_s=end_s)
    playlist = parse_media_playlist(cut)
    assert [segment.uri for segment in playlist.segments] == [f"{n}.m4s" for n in numbers]
    assert playlist.duration_s == pytest.approx(sum(durations_s[n] for n in numbers))
    start = f"#EXT-X-START:TIME-OFFSET={offset_s},PRECISE=YES\n"
    assert ("EXT-X-START" in cut) is (offset_s is not None)
    assert offset_s is None or start in cut
    # The other lines are equal. The target duration stays that of all tracks.
    head = whole.partition("#EXTINF")[0]
    assert cut.replace(start, "").startswith(head)
    assert playlist.complete


def test_a_cut_keeps_the_ranges_of_key_frames() -> None:
    whole = iframe_playlist(listed(VIDEO), key_sizes_bytes=(10, 20, 30, 40), target_duration_s=4)
    cut = clip_media_playlist(whole, start_s=4, end_s=12)
    assert [line for line in cut.splitlines() if "BYTERANGE" in line] == [
        "#EXT-X-BYTERANGE:20@0",
        "#EXT-X-BYTERANGE:30@0",
    ]


def test_cut_captions_are_listed_with_the_duration_of_their_part() -> None:
    whole = media_playlist(listed((60, 60, 21.5)), target_duration_s=60, map_uri=None)
    cut = clip_media_playlist(whole, start_s=45, end_s=130.5)
    assert [segment.duration_s for segment in parse_media_playlist(cut).segments] == [15, 60, 10.5]
    within_segment = parse_media_playlist(clip_media_playlist(whole, start_s=70, end_s=80))
    assert within_segment.segments == (Segment(uri="1.m4s", duration_s=10),)
    assert "EXT-X-START" not in cut


def test_joins_are_read_as_they_were_written_and_kept_by_a_cut() -> None:
    segments = (
        Segment(uri="0.m4s", duration_s=4),
        Segment(uri="1.m4s", duration_s=2),
        Segment(uri="2.m4s", duration_s=4, is_discontinuous=True),
        Segment(uri="3.m4s", duration_s=4),
    )
    text = media_playlist(segments, target_duration_s=4, map_uri="own.mp4")
    assert parse_media_playlist(text).segments == segments

    part = parse_media_playlist(clip_media_playlist(text, start_s=5, end_s=9))
    assert part.segments == segments[1:3]
    assert part.map_uri == "own.mp4"
