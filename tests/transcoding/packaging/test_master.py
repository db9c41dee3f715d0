"""Master playlist: the choices of players, and the variant that they start with."""

from dataclasses import replace
from fractions import Fraction

from published_checks import attributes, variants

from portal.transcoding.packaging.master import FinishedRendition, Kind, master_playlist

SOUND = FinishedRendition(
    kind=Kind.AUDIO,
    name="audio",
    codecs="mp4a.40.2",
    bandwidth_bps=140_000,
    average_bandwidth_bps=128_000,
    size_bytes=1,
    segment_count=1,
    channels=2,
    label="Audio",
    is_default=True,
)
TEXT = replace(SOUND, kind=Kind.SUBTITLES, codecs="wvtt", bandwidth_bps=10_000_000)


def a_video(height: int, bandwidth_bps: int) -> FinishedRendition:
    return FinishedRendition(
        kind=Kind.VIDEO,
        name=f"{height}p",
        codecs="avc1.64001f",
        bandwidth_bps=bandwidth_bps,
        average_bandwidth_bps=bandwidth_bps // 2,
        size_bytes=1,
        segment_count=1,
        width=height * 16 // 9,
        height=height,
        fps=Fraction(30000, 1001),
        iframe_bandwidth_bps=bandwidth_bps // 10,
    )


def here(*renditions: FinishedRendition) -> str:
    return master_playlist([("", rendition) for rendition in renditions])


def test_it_starts_with_a_middle_rung_and_counts_the_audio_in() -> None:
    rungs = [a_video(240, 400_000), a_video(720, 2_000_000), a_video(1080, 6_000_000)]
    text = here(*rungs, SOUND)
    lines = text.splitlines()
    assert list(variants(text)) == [f"{n}p/playlist.m3u8" for n in (720, 240, 1080)]
    assert "#EXT-X-INDEPENDENT-SEGMENTS" in lines
    assert [line for line in lines if line.startswith("#EXT-X-MEDIA:")] == [
        '#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="audio",NAME="Audio",DEFAULT=YES,AUTOSELECT=YES,'
        'CHANNELS="2",URI="audio/playlist.m3u8"'
    ]
    assert (
        "#EXT-X-STREAM-INF:BANDWIDTH=2140000,AVERAGE-BANDWIDTH=1128000,"
        'CODECS="avc1.64001f,mp4a.40.2",RESOLUTION=1280x720,FRAME-RATE=29.970,AUDIO="audio"'
    ) in lines
    iframes = [attributes(line) for line in lines if line.startswith("#EXT-X-I-FRAME-STREAM")]
    assert [(tag["URI"], tag["BANDWIDTH"]) for tag in iframes] == [
        ("240p/iframes.m3u8", "40000"),
        ("720p/iframes.m3u8", "200000"),
        ("1080p/iframes.m3u8", "600000"),
    ]


def test_silent_video_names_no_audio_and_starts_with_its_only_variant() -> None:
    text = here(a_video(2160, 20_000_000))
    assert "AUDIO" not in text
    assert "mp4a" not in text
    assert list(variants(text)) == ["2160p/playlist.m3u8"]


def test_every_track_has_its_language_and_the_largest_sound_counts() -> None:
    german = replace(SOUND, name="audio-2", language="de", label="German", is_default=False)
    dear = replace(german, bandwidth_bps=200_000, average_bandwidth_bps=190_000)
    texts = [
        replace(TEXT, name="subtitles-1", language="en", label="English", is_default=False),
        replace(TEXT, name="subtitles-2", label="Subtitles 2", is_default=False),
    ]
    text = here(a_video(360, 700_000), replace(SOUND, language="en"), dear, *texts)
    media = [attributes(line) for line in text.splitlines() if line.startswith("#EXT-X-MEDIA:")]
    assert [(m["TYPE"], m.get("LANGUAGE"), m["NAME"], m["DEFAULT"], m["URI"]) for m in media] == [
        ("AUDIO", "en", "Audio", "YES", "audio/playlist.m3u8"),
        ("AUDIO", "de", "German", "NO", "audio-2/playlist.m3u8"),
        ("SUBTITLES", "en", "English", "NO", "subtitles-1/playlist.m3u8"),
        ("SUBTITLES", None, "Subtitles 2", "NO", "subtitles-2/playlist.m3u8"),
    ]
    (variant,) = variants(text).values()
    assert (variant["AUDIO"], variant["SUBTITLES"]) == (media[0]["GROUP-ID"], media[2]["GROUP-ID"])
    assert (variant["BANDWIDTH"], variant["AVERAGE-BANDWIDTH"]) == ("900000", "540000")
