"""Playlists: read, written, and signed on the way out."""

from fractions import Fraction

import pytest

from portal.transcoding.hls import (
    AudioRendition,
    PlaylistError,
    Segment,
    Variant,
    avc_codec,
    bandwidths_bps,
    master_playlist,
    parse_media_playlist,
    sign_playlist,
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


def a_variant(height: int, bandwidth_bps: int) -> Variant:
    return Variant(
        uri=f"{height}p/playlist.m3u8",
        width=height * 16 // 9,
        height=height,
        fps=Fraction(30000, 1001),
        codecs="avc1.64001f",
        bandwidth_bps=bandwidth_bps,
        average_bandwidth_bps=bandwidth_bps // 2,
    )


def test_a_media_playlist_is_read_whole() -> None:
    playlist = parse_media_playlist(MEDIA)
    assert playlist.segments == (
        Segment(uri="00000.m4s", duration_s=4.004),
        Segment(uri="00001.m4s", duration_s=1.5),
    )
    assert playlist.map_uri == "init.mp4"
    assert playlist.target_duration_s == 4
    assert playlist.complete
    assert playlist.duration_s == pytest.approx(5.504)


def test_a_playlist_without_its_end_is_not_complete() -> None:
    assert not parse_media_playlist(MEDIA.replace("#EXT-X-ENDLIST\n", "")).complete


@pytest.mark.parametrize(
    "text", ["", "hello", "#EXTM3U\n", "#EXTM3U\n#EXT-X-TARGETDURATION:4\n00000.m4s\n"]
)
def test_what_is_no_media_playlist_is_refused(text: str) -> None:
    with pytest.raises(PlaylistError):
        parse_media_playlist(text)


def test_the_master_starts_with_a_middle_rung_and_counts_the_audio_in() -> None:
    audio = AudioRendition(
        uri="audio/playlist.m3u8", channels=2, bandwidth_bps=140_000, average_bandwidth_bps=128_000
    )
    variants = [a_variant(240, 400_000), a_variant(720, 2_000_000), a_variant(1080, 6_000_000)]
    lines = master_playlist(variants, audio=audio).splitlines()
    uris = [line for line in lines if not line.startswith("#")]
    assert uris == ["720p/playlist.m3u8", "240p/playlist.m3u8", "1080p/playlist.m3u8"]
    assert "#EXT-X-INDEPENDENT-SEGMENTS" in lines
    assert [line for line in lines if line.startswith("#EXT-X-MEDIA:")] == [
        '#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="audio",NAME="Audio",DEFAULT=YES,AUTOSELECT=YES,'
        'CHANNELS="2",URI="audio/playlist.m3u8"'
    ]
    assert (
        "#EXT-X-STREAM-INF:BANDWIDTH=2140000,AVERAGE-BANDWIDTH=1128000,"
        'CODECS="avc1.64001f,mp4a.40.2",RESOLUTION=1280x720,FRAME-RATE=29.970,AUDIO="audio"'
    ) in lines


def test_the_master_of_a_silent_video_names_no_audio() -> None:
    text = master_playlist([a_variant(2160, 20_000_000)], audio=None)
    assert "AUDIO" not in text
    assert "mp4a" not in text
    assert "2160p/playlist.m3u8" in text


def test_a_short_last_segment_does_not_set_the_peak() -> None:
    segments = [Segment(uri=f"{n}.m4s", duration_s=d) for n, d in enumerate((4.0, 4.0, 0.04))]
    peak_bps, average_bps = bandwidths_bps(
        segments, sizes_bytes=(1_000_000, 500_000, 100_000), target_duration_s=4
    )
    assert peak_bps == 2_000_000
    assert average_bps == round(1_600_000 * 8 / 8.04)


def test_a_video_shorter_than_half_a_segment_has_its_average_as_peak() -> None:
    rates = bandwidths_bps(
        [Segment(uri="0.m4s", duration_s=0.5)], sizes_bytes=(50_000,), target_duration_s=4
    )
    assert rates == (800_000, 800_000)


def test_signing_reaches_every_uri_and_nothing_else() -> None:
    signed = sign_playlist(MEDIA, lambda uri: f"https://cdn.example/{uri}?sig=a%2Fb&x=\\1")
    expected = (
        MEDIA.replace("00000.m4s", "https://cdn.example/00000.m4s?sig=a%2Fb&x=\\1")
        .replace("00001.m4s", "https://cdn.example/00001.m4s?sig=a%2Fb&x=\\1")
        .replace("init.mp4", "https://cdn.example/init.mp4?sig=a%2Fb&x=\\1")
    )
    assert signed == expected


def test_signing_reaches_the_audio_group_of_a_master() -> None:
    audio = AudioRendition(
        uri="audio/playlist.m3u8", channels=2, bandwidth_bps=1, average_bandwidth_bps=1
    )
    master = master_playlist([a_variant(720, 1)], audio=audio)
    signed = sign_playlist(master, lambda uri: f"/signed/{uri}")
    assert 'URI="/signed/audio/playlist.m3u8"' in signed
    assert "\n/signed/720p/playlist.m3u8\n" in signed
    assert 'GROUP-ID="audio"' in signed


@pytest.mark.parametrize("address", ['a"b', "a\nb", "a\u2028b", ""])
def test_a_signed_address_cannot_write_tags(address: str) -> None:
    with pytest.raises(PlaylistError):
        sign_playlist(MEDIA, lambda _: address)


def test_an_init_segment_without_avcc_is_refused() -> None:
    with pytest.raises(PlaylistError):
        avc_codec(b"....moov....avcC")
