"""The master playlist: what players choose from, and where they start."""

from examples import a_sound, a_text, a_video, here
from published_checks import attributes, variants


def test_it_starts_with_a_middle_rung_and_counts_the_audio_in() -> None:
    rungs = [a_video(240, 400_000), a_video(720, 2_000_000), a_video(1080, 6_000_000)]
    lines = here(*rungs, a_sound()).splitlines()
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


def test_a_silent_video_names_no_audio_and_starts_with_what_there_is() -> None:
    text = here(a_video(2160, 20_000_000))
    assert "AUDIO" not in text
    assert "mp4a" not in text
    assert list(variants(text)) == ["2160p/playlist.m3u8"]


def test_every_track_is_named_with_its_language() -> None:
    german = a_sound("audio-2", language="de", label="German", is_default=False)
    texts = [a_text("subtitles-1", "en", "English"), a_text("subtitles-2", None, "Subtitles 2")]
    text = here(a_video(360, 700_000), a_sound(language="en", label="English"), german, *texts)
    media = [attributes(line) for line in text.splitlines() if line.startswith("#EXT-X-MEDIA:")]
    assert [(m["TYPE"], m.get("LANGUAGE"), m["NAME"], m["DEFAULT"], m["URI"]) for m in media] == [
        ("AUDIO", "en", "English", "YES", "audio/playlist.m3u8"),
        ("AUDIO", "de", "German", "NO", "audio-2/playlist.m3u8"),
        ("SUBTITLES", "en", "English", "NO", "subtitles-1/playlist.m3u8"),
        ("SUBTITLES", None, "Subtitles 2", "NO", "subtitles-2/playlist.m3u8"),
    ]
    (variant,) = variants(text).values()
    assert (variant["AUDIO"], variant["SUBTITLES"]) == (media[0]["GROUP-ID"], media[2]["GROUP-ID"])
    assert "CLOSED-CAPTIONS" not in variant or variant["CLOSED-CAPTIONS"] == "NONE"


def test_the_dearest_sound_counts_and_the_subtitles_do_not() -> None:
    dear = a_sound("audio-2", bandwidth_bps=200_000, average_bandwidth_bps=190_000, label="B")
    (variant,) = variants(
        here(a_video(360, 700_000), a_sound(), dear, a_text("subtitles-1", "en", "English"))
    ).values()
    assert variant["BANDWIDTH"] == "900000"
    assert variant["AVERAGE-BANDWIDTH"] == "540000"


def test_each_video_has_its_i_frames() -> None:
    text = here(a_video(360, 700_000), a_video(240, 300_000))
    lines = [attributes(li) for li in text.splitlines() if li.startswith("#EXT-X-I-FRAME-STREAM")]
    assert [(each["URI"], each["BANDWIDTH"], each["RESOLUTION"]) for each in lines] == [
        ("240p/iframes.m3u8", "30000", "426x240"),
        ("360p/iframes.m3u8", "70000", "640x360"),
    ]
