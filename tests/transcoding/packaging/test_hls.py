"""Media playlists: reading, writing and signing."""

import pytest

from portal.transcoding.packaging.hls import (
    PlaylistError,
    Segment,
    bandwidths_bps,
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
    segments = [Segment(uri=f"{n}.m4s", duration_s=d) for n, d in enumerate(durations_s)]
    sizes_bytes = (1_000_000, 500_000, 100_000)
    peak_and_average = bandwidths_bps(segments, sizes_bytes=sizes_bytes, target_duration_s=4)
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
    segments = [Segment(uri=f"{n}.m4s", duration_s=d) for n, d in enumerate(durations_s)]
    assert target_duration_s(segments) == expected
